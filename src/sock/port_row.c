/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "config.h"

#include "sock/port_row.h"

#include <endian.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The number of the line, both names, and six columns between them and the inode, of
 * which the first is the state. */
enum { COLUMNS_TO_INODE = 6, STATE_LISTEN = 10 };

/* Eight digits: four bytes of an address as this machine's processor has them. */
static bool take_word(const char **at, uint32_t *out)
{
	char digits[9] = "", *end;

	for (int i = 0; i < 8 && (*at)[i]; i++)
		digits[i] = (*at)[i];
	*out = (uint32_t)strtoul(digits, &end, 16);
	*at += end - digits;
	return end == digits + 8;
}

static bool take_addr(const char **at, struct ip_addr *out)
{
	uint32_t first;

	if (!take_word(at, &first))
		return false;
	*out = ip_addr_from_v4(first);
	if (**at == ':')
		return true;
	out->word[0] = first;
	for (int i = 1; i < 4; i++)
		if (!take_word(at, &out->word[i]))
			return false;
	/* :: takes IPv4 as well, unless that was switched off, which is not
	 * shown */
	if (ip_addr_is_any(out))
		*out = ip_addr_from_v4(0);
	return **at == ':';
}

static bool take_name(const char **at, struct ip_addr *addr, __be16 *port)
{
	char *end;

	*at += strspn(*at, " ");
	if (!take_addr(at, addr))
		return false;
	*port = htobe16((uint16_t)strtoul(*at + 1, &end, 16));
	*at = end;
	return *end == ' ';
}

bool port_row_parse(const char *line, struct port_row *out)
{
	const char *at = strchr(line, ':');
	char *end;

	if (!at)
		return false;
	at++;
	out->is_ipv6 = strcspn(at + strspn(at, " "), ":") > 8;
	if (!take_name(&at, &out->key.local, &out->key.local_port) ||
	    !take_name(&at, &out->key.remote, &out->key.remote_port))
		return false;
	out->listens = strtoul(at, NULL, 16) == STATE_LISTEN;
	for (int i = 0; i < COLUMNS_TO_INODE; i++) {
		at += strspn(at, " ");
		at += strcspn(at, " ");
	}
	out->inode = strtoul(at, &end, 10);
	return end != at && out->key.local_port;
}

static bool is_same_peer(const struct flow_key *a, const struct flow_key *b)
{
	return a->remote_port == b->remote_port &&
	       ip_addr_eq(&a->remote, &b->remote);
}

bool port_row_competes(const struct port_row *row, const struct flow_key *key)
{
	const struct flow_key *other = &row->key;

	if (other->local_port != key->local_port)
		return false;
	/* Who is connected hears its peer, whoever else has the port. */
	if (key->remote_port && !is_same_peer(other, key))
		return false;
	if (ip_addr_eq(&other->local, &key->local))
		return true;
	/* no rule of ours is for groups, or for IPv6 */
	return ip_addr_is_any(&key->local) && ip_addr_is_v4(&other->local) &&
	       !ip_addr_is_multicast(&other->local) &&
	       !ip_addr_is_loopback(&other->local);
}
