/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The byte string that a pcb becomes, between tcp_export.c and tcp_import.c. All
 * numbers are little-endian:
 *
 *   magic, version, length of the whole
 *   addresses and ports, as they are
 *   the members of tcp_export.def, our time stamp clock, the window of CUBIC
 *   entries of the send queue: count, then length, flags, times sent, when;
 *   FIN has no length
 *   runs out of order: count, then sequence number, length, FIN
 *   bytes received in order: their number
 *   all the bytes: of the entries, of the runs, received
 */
#ifndef TCP_TCP_EXPORT_PRIV_H
#define TCP_TCP_EXPORT_PRIV_H

#include <stdint.h>

#define TCP_EXPORT_MAGIC UINT32_C(0x50435476)

/* A moment is written as its distance from now, plus this; 0 is none. */
#define TCP_EXPORT_NOW (UINT64_C(1) << 62)

#endif
