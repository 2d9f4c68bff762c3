/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Calls that install signal handlers; os/signals.h is behind them. */
#include "config.h"

#include "os/signals.h"
#include "sock-redirect/call.h"

int shim_sigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
	CALL_ENTERED(sigaction);
	return signals_sigaction(sig, act, old);
}

sighandler_t shim_signal(int sig, sighandler_t handler)
{
	CALL_ENTERED(signal);
	return signals_signal(sig, handler);
}

sighandler_t shim_bsd_signal(int sig, sighandler_t handler)
{
	CALL_ENTERED(bsd_signal);
	return signals_signal(sig, handler);
}

sighandler_t shim_sysv_signal(int sig, sighandler_t handler)
{
	CALL_ENTERED(sysv_signal);
	return signals_sysv_signal(sig, handler);
}

sighandler_t shim___sysv_signal(int sig, sighandler_t handler)
{
	CALL_ENTERED(__sysv_signal);
	return signals_sysv_signal(sig, handler);
}

sighandler_t shim_sigset(int sig, sighandler_t disposition)
{
	CALL_ENTERED(sigset);
	return signals_sigset(sig, disposition);
}

int shim_siginterrupt(int sig, int is_interrupting)
{
	CALL_ENTERED(siginterrupt);
	return signals_siginterrupt(sig, is_interrupting);
}

int shim_sigvec(int sig, const struct sigvec_compat *vec,
		struct sigvec_compat *old)
{
	CALL_ENTERED(sigvec);
	return signals_sigvec(sig, vec, old);
}
