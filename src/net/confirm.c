/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Neighbours that are to be asked for (confirm.h). */
#include "config.h"

#include "net/confirm.h"

#include <errno.h>
#include <string.h>

#include "fd/right_keeper.h"
#include "net/net.h"

bool confirm_later(struct net *net, int ifindex, const struct ip_addr *addr)
{
	struct confirms *confirms = &net->confirms;

	for (unsigned i = 0; i < confirms->cnt; i++)
		if (confirms->of[i].ifindex == ifindex &&
		    ip_addr_eq(&confirms->of[i].addr, addr))
			return true;
	if (confirms->cnt == CONFIRMS_MAX)
		return false;
	confirms->of[confirms->cnt].ifindex = ifindex;
	confirms->of[confirms->cnt++].addr = *addr;
	return true;
}

static int tell(const struct net *net, int ifindex, const struct ip_addr *addr)
{
	struct keeper_request request = { .op = KEEPER_NEIGHBOUR, .ifindex = ifindex };

	memcpy(request.addr, addr, sizeof(request.addr));
	return right_keeper_tell(&request, net->netns);
}

void confirms_tell(struct net *net)
{
	struct confirms *confirms = &net->confirms;
	unsigned done = 0;

	while (done < confirms->cnt && tell(net, confirms->of[done].ifindex,
					    &confirms->of[done].addr) != -EAGAIN)
		done++;
	confirms->cnt -= done;
	memmove(confirms->of, confirms->of + done, confirms->cnt * sizeof(*confirms->of));
}
