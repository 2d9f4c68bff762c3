/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Two cards and a cable; see pair.h. */
#include "config.h"

#include "pair.h"

#include <netinet/in.h>
#include <string.h>

struct rig pair_a, pair_b;

void pair_open(const struct rig_params *pa, const struct rig_params *pb)
{
	struct rig_params params_a = pa ? *pa : (struct rig_params){ 0 };
	struct rig_params params_b = pb ? *pb : (struct rig_params){ 0 };

	params_a.dev = "mlx5_0";
	params_b.dev = "mlx5_1";
	rig_open(&pair_a, &params_a);
	rig_open(&pair_b, &params_b);
}

void pair_close(void)
{
	rig_close(&pair_a);
	rig_close(&pair_b);
}

struct rig_flow pair_flow(void)
{
	struct rig_flow flow = {
		.src_ip = pair_ip_a,
		.dst_ip = pair_ip_b,
		.src_port = PAIR_PORT_A,
		.dst_port = PAIR_PORT_B,
		.proto = IPPROTO_UDP,
	};

	memcpy(flow.dst_mac, pair_b.mac, 6);
	return flow;
}

struct rig_frame pair_frame(void)
{
	struct rig_frame frame = {
		.src_ip = pair_ip_a,
		.dst_ip = pair_ip_b,
		.src_port = PAIR_PORT_A,
		.dst_port = PAIR_PORT_B,
		.proto = IPPROTO_UDP,
	};

	memcpy(frame.dst_mac, pair_b.mac, 6);
	memcpy(frame.src_mac, pair_a.mac, 6);
	return frame;
}

uint32_t pair_put(uint32_t i, const struct rig_frame *f, uint32_t len)
{
	uint8_t data[1600];

	for (uint32_t k = 0; k < len; k++)
		data[k] = (uint8_t)(k * 7 + i);
	return rig_build(rig_send_slot(&pair_a, i), f, data, len);
}

void pair_send(uint32_t i, unsigned int flags)
{
	struct rig_frame f = pair_frame();

	rig_post_send(&pair_a, i, pair_put(i, &f, PAIR_DATA), flags);
}
