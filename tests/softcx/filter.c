/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The BPF programs, assembled here so that neither a BPF compiler nor a loader
 * is needed; see filter.h. They build a frame_key as frame_parse does. For each
 * mask in use ("shape") they look the masked key up in a hash of rules.
 */
#include "config.h"

#include "filter.h"

#include <linux/bpf.h>
#include <stddef.h>
#include <string.h>

#include "check.h"
#include "sight.h"
#include "sys.h"

enum {
	/* Newer than the distribution's linux/bpf.h. */
	ATTACH_TCX_INGRESS = 46,
	ATTACH_TCX_EGRESS = 47,
	VERDICT_NEXT = -1,
	VERDICT_DROP = 2,

	MAX_INSNS = 1024,
	MAX_RULES = 65536,

	/* The frame of the programs, below r10. */
	KEY = -64,          /* struct frame_key */
	PROBE = -136,       /* masked key and number of the shape */
	PROBE_SIZE = 72,
	HDR = -176,         /* the header in hand */
	INDEX = -184,
};

#define K(member) (KEY + (int)offsetof(struct frame_key, member))

/* What a rule's entry says. */
enum { RULE_COPY = 0, RULE_TRAP = 1 };

/* The only element of the array map. */
struct shapes {
	uint64_t n;
	struct frame_key masks[FILTER_MAX_SHAPES];
};

/* So many bytes of metadata are in front of a frame that the program under test has
 * given back to the kernel (dev/ring.h). */
enum { GIVEN_BACK_META = 12 };

struct probe {
	struct frame_key key;
	uint64_t shape;
};
_Static_assert(sizeof(struct probe) == PROBE_SIZE, "the programs rely on it");

/* Places that jumps go to. */
enum label { L_MATCH, L_MISS, L_HIT, L_IPV6, L_L4, L_NEW, N_LABELS };

struct assembler {
	struct bpf_insn insns[MAX_INSNS];
	int n;
	struct {
		int at;
		enum label to;
	} fixups[128];
	int n_fixups;
	int places[N_LABELS];
};

static void emit(struct assembler *as, uint8_t code, uint8_t dst, uint8_t src,
		 int16_t off, int32_t imm)
{
	INVARIANT(as->n < MAX_INSNS, "the programs are of fixed size");
	as->insns[as->n++] = (struct bpf_insn){
		.code = code,
		.dst_reg = dst & 15u,
		.src_reg = src & 15u,
		.off = off,
		.imm = imm,
	};
}

static void mov_imm(struct assembler *as, int dst, int32_t imm)
{
	emit(as, BPF_ALU64 | BPF_MOV | BPF_K, (uint8_t)dst, 0, 0, imm);
}

static void mov(struct assembler *as, int dst, int src)
{
	emit(as, BPF_ALU64 | BPF_MOV | BPF_X, (uint8_t)dst, (uint8_t)src, 0, 0);
}

static void alu_imm(struct assembler *as, int op, int dst, int32_t imm)
{
	emit(as, (uint8_t)(BPF_ALU64 | op | BPF_K), (uint8_t)dst, 0, 0, imm);
}

static void alu(struct assembler *as, int op, int dst, int src)
{
	emit(as, (uint8_t)(BPF_ALU64 | op | BPF_X), (uint8_t)dst, (uint8_t)src,
	     0, 0);
}

/* dst = *(size *)(src + off) */
static void load(struct assembler *as, int size, int dst, int src, int off)
{
	emit(as, (uint8_t)(BPF_LDX | BPF_MEM | size), (uint8_t)dst,
	     (uint8_t)src, (int16_t)off, 0);
}

/* *(size *)(r10 + off) = src */
static void store(struct assembler *as, int size, int off, int src)
{
	emit(as, (uint8_t)(BPF_STX | BPF_MEM | size), BPF_REG_10, (uint8_t)src,
	     (int16_t)off, 0);
}

static void big_endian(struct assembler *as, int dst, int bits)
{
	emit(as, BPF_ALU | BPF_END | BPF_TO_BE, (uint8_t)dst, 0, 0, bits);
}

static void call(struct assembler *as, int helper)
{
	emit(as, BPF_JMP | BPF_CALL, 0, 0, 0, helper);
}

static void load_map(struct assembler *as, int dst, int fd)
{
	emit(as, BPF_LD | BPF_DW | BPF_IMM, (uint8_t)dst, BPF_PSEUDO_MAP_FD, 0,
	     fd);
	emit(as, 0, 0, 0, 0, 0);
}

static void fixup(struct assembler *as, enum label to)
{
	INVARIANT((size_t)as->n_fixups < ARRAY_LEN(as->fixups),
		  "the programs are of fixed size");
	as->fixups[as->n_fixups].at = as->n;
	as->fixups[as->n_fixups++].to = to;
}

static void jump_imm(struct assembler *as, int op, int dst, int32_t imm,
		     enum label to)
{
	fixup(as, to);
	emit(as, (uint8_t)(BPF_JMP | op | BPF_K), (uint8_t)dst, 0, 0, imm);
}

static void jump_reg(struct assembler *as, int op, int dst, int src,
		     enum label to)
{
	fixup(as, to);
	emit(as, (uint8_t)(BPF_JMP | op | BPF_X), (uint8_t)dst, (uint8_t)src, 0,
	     0);
}

static void jump(struct assembler *as, enum label to)
{
	jump_imm(as, BPF_JA, 0, 0, to);
}

static void place(struct assembler *as, enum label label)
{
	as->places[label] = as->n;
}

static void resolve(struct assembler *as)
{
	for (int i = 0; i < as->n_fixups; i++) {
		int at = as->fixups[i].at;
		int to = as->places[as->fixups[i].to];

		as->insns[at].off = (int16_t)(to - at - 1);
	}
}

/* Reads `len` bytes of the frame at offset r2 (already set) into HDR. */
static void load_header(struct assembler *as, int len, enum label on_failure)
{
	mov(as, BPF_REG_1, BPF_REG_6);
	mov(as, BPF_REG_3, BPF_REG_10);
	alu_imm(as, BPF_ADD, BPF_REG_3, HDR);
	mov_imm(as, BPF_REG_4, len);
	call(as, BPF_FUNC_skb_load_bytes);
	jump_imm(as, BPF_JNE, BPF_REG_0, 0, on_failure);
}

/* Moves bytes of the header in hand into the key. */
static void take(struct assembler *as, int size, int key, int hdr)
{
	load(as, size, BPF_REG_1, BPF_REG_10, HDR + hdr);
	store(as, size, key, BPF_REG_1);
}

static void store_const(struct assembler *as, int key, int32_t value)
{
	mov_imm(as, BPF_REG_1, value);
	store(as, BPF_B, key, BPF_REG_1);
}

/* The kernel has moved the outer tag into the frame's metadata. */
static void assemble_ethernet(struct assembler *as)
{
	int without_tag;

	mov(as, BPF_REG_6, BPF_REG_1);
	load(as, BPF_W, BPF_REG_9, BPF_REG_6, offsetof(struct __sk_buff, len));
	mov_imm(as, BPF_REG_1, 0);
	for (int i = 0; i < FRAME_KEY_WORDS; i++)
		store(as, BPF_DW, KEY + 8 * i, BPF_REG_1);
	mov_imm(as, BPF_REG_2, 0);
	load_header(as, FRAME_ETH_LEN, L_MISS);
	take(as, BPF_W, K(dmac), 0);
	take(as, BPF_H, K(dmac) + 4, 4);
	take(as, BPF_H, K(smac), 6);
	take(as, BPF_H, K(smac) + 2, 8);
	take(as, BPF_H, K(smac) + 4, 10);
	take(as, BPF_H, K(ether_type_be), 12);

	load(as, BPF_W, BPF_REG_1, BPF_REG_6,
	     offsetof(struct __sk_buff, vlan_present));
	without_tag = as->n;
	emit(as, BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_1, 0, 0, 0);
	load(as, BPF_W, BPF_REG_1, BPF_REG_6,
	     offsetof(struct __sk_buff, vlan_tci));
	alu_imm(as, BPF_AND, BPF_REG_1, 0xefff);
	big_endian(as, BPF_REG_1, 16);
	store(as, BPF_H, K(vlan_be), BPF_REG_1);
	store_const(as, K(has_vlan), 1);
	as->insns[without_tag].off = (int16_t)(as->n - without_tag - 1);
}

/* What was given back is the kernel's, whatever the rules say. */
static void assemble_returns(struct assembler *as)
{
	mov(as, BPF_REG_6, BPF_REG_1);
	load(as, BPF_W, BPF_REG_1, BPF_REG_6, offsetof(struct __sk_buff, data));
	load(as, BPF_W, BPF_REG_2, BPF_REG_6,
	     offsetof(struct __sk_buff, data_meta));
	alu(as, BPF_SUB, BPF_REG_1, BPF_REG_2);
	jump_imm(as, BPF_JEQ, BPF_REG_1, GIVEN_BACK_META, L_MISS);
	mov(as, BPF_REG_1, BPF_REG_6);
}

/* Nor does the card see it: on a wire it would not come by again. A socket's program is not
 * shown where metadata begins, so it reads its length where the kernel has it. */
static void assemble_unseen(struct assembler *as, const struct sight *sight)
{
	mov(as, BPF_REG_6, BPF_REG_1);
	mov_imm(as, BPF_REG_1, 0);
	store(as, BPF_DW, HDR, BPF_REG_1);
	mov(as, BPF_REG_1, BPF_REG_6);
	emit(as, BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_KFUNC_CALL, 0, sight->cast);
	load(as, BPF_DW, BPF_REG_3, BPF_REG_0, sight->head);
	load(as, BPF_W, BPF_REG_1, BPF_REG_0, sight->end);
	alu(as, BPF_ADD, BPF_REG_3, BPF_REG_1);
	alu_imm(as, BPF_ADD, BPF_REG_3, sight->meta_len);
	mov(as, BPF_REG_1, BPF_REG_10);
	alu_imm(as, BPF_ADD, BPF_REG_1, HDR);
	mov_imm(as, BPF_REG_2, 1);
	call(as, BPF_FUNC_probe_read_kernel);
	load(as, BPF_B, BPF_REG_1, BPF_REG_10, HDR);
	jump_imm(as, BPF_JEQ, BPF_REG_1, GIVEN_BACK_META, L_MISS);
	mov(as, BPF_REG_1, BPF_REG_6);
}

/* Leaves the end of the packet in r8 and the start of the transport in r7. */
static void assemble_ipv4(struct assembler *as)
{
	load(as, BPF_H, BPF_REG_1, BPF_REG_10, K(ether_type_be));
	big_endian(as, BPF_REG_1, 16);
	jump_imm(as, BPF_JNE, BPF_REG_1, 0x0800, L_IPV6);
	mov_imm(as, BPF_REG_2, FRAME_ETH_LEN);
	load_header(as, 20, L_MATCH);
	load(as, BPF_B, BPF_REG_7, BPF_REG_10, HDR);
	mov(as, BPF_REG_1, BPF_REG_7);
	alu_imm(as, BPF_RSH, BPF_REG_1, 4);
	jump_imm(as, BPF_JNE, BPF_REG_1, 4, L_MATCH);
	alu_imm(as, BPF_AND, BPF_REG_7, 15);
	alu_imm(as, BPF_LSH, BPF_REG_7, 2);
	jump_imm(as, BPF_JLT, BPF_REG_7, 20, L_MATCH);
	alu_imm(as, BPF_ADD, BPF_REG_7, FRAME_ETH_LEN);
	jump_reg(as, BPF_JGT, BPF_REG_7, BPF_REG_9, L_MATCH);

	store_const(as, K(l3), FRAME_L3_IPV4);
	take(as, BPF_W, K(src), 12);
	take(as, BPF_W, K(dst), 16);
	take(as, BPF_B, K(proto), 9);
	take(as, BPF_B, K(tos), 1);
	take(as, BPF_B, K(ttl), 8);
	load(as, BPF_H, BPF_REG_8, BPF_REG_10, HDR + 2);
	big_endian(as, BPF_REG_8, 16);
	alu_imm(as, BPF_ADD, BPF_REG_8, FRAME_ETH_LEN);
	load(as, BPF_H, BPF_REG_1, BPF_REG_10, HDR + 6);
	big_endian(as, BPF_REG_1, 16);
	alu_imm(as, BPF_AND, BPF_REG_1, 0x3fff);
	jump_imm(as, BPF_JNE, BPF_REG_1, 0, L_MATCH);
	jump(as, L_L4);
}

static void assemble_ipv6(struct assembler *as)
{
	place(as, L_IPV6);
	jump_imm(as, BPF_JNE, BPF_REG_1, 0x86dd, L_MATCH);
	mov_imm(as, BPF_REG_2, FRAME_ETH_LEN);
	load_header(as, 40, L_MATCH);
	load(as, BPF_H, BPF_REG_2, BPF_REG_10, HDR);
	big_endian(as, BPF_REG_2, 16);
	mov(as, BPF_REG_1, BPF_REG_2);
	alu_imm(as, BPF_RSH, BPF_REG_1, 12);
	jump_imm(as, BPF_JNE, BPF_REG_1, 6, L_MATCH);
	alu_imm(as, BPF_RSH, BPF_REG_2, 4);
	store(as, BPF_B, K(tos), BPF_REG_2);
	store_const(as, K(l3), FRAME_L3_IPV6);
	/* The header lies at a multiple of eight on our stack. */
	take(as, BPF_DW, K(src), 8);
	take(as, BPF_DW, K(src) + 8, 16);
	take(as, BPF_DW, K(dst), 24);
	take(as, BPF_DW, K(dst) + 8, 32);
	take(as, BPF_B, K(proto), 6);
	take(as, BPF_B, K(ttl), 7);
	load(as, BPF_H, BPF_REG_8, BPF_REG_10, HDR + 4);
	big_endian(as, BPF_REG_8, 16);
	alu_imm(as, BPF_ADD, BPF_REG_8, FRAME_ETH_LEN + 40);
	mov_imm(as, BPF_REG_7, FRAME_ETH_LEN + 40);
}

static void assemble_l4(struct assembler *as)
{
	place(as, L_L4);
	/* r2: the end of the header; r3: which it is */
	mov(as, BPF_REG_2, BPF_REG_7);
	mov_imm(as, BPF_REG_3, FRAME_L4_TCP);
	load(as, BPF_B, BPF_REG_1, BPF_REG_10, K(proto));
	alu_imm(as, BPF_ADD, BPF_REG_2, 20);
	emit(as, BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_1, 0, 3, 6);
	alu_imm(as, BPF_SUB, BPF_REG_2, 12);
	mov_imm(as, BPF_REG_3, FRAME_L4_UDP);
	jump_imm(as, BPF_JNE, BPF_REG_1, 17, L_MATCH);
	jump_reg(as, BPF_JGT, BPF_REG_2, BPF_REG_9, L_MATCH);
	jump_reg(as, BPF_JGT, BPF_REG_2, BPF_REG_8, L_MATCH);
	mov(as, BPF_REG_8, BPF_REG_3);
	mov(as, BPF_REG_2, BPF_REG_7);
	load_header(as, 4, L_MATCH);
	take(as, BPF_H, K(sport_be), 0);
	take(as, BPF_H, K(dport_be), 2);
	store(as, BPF_B, K(l4), BPF_REG_8);
}

/* One shape: r7 points to struct shapes. */
static void assemble_probe(struct assembler *as, int rules_fd, int i,
			   bool any_rule_hits)
{
	int masks = (int)offsetof(struct shapes, masks) +
		    i * (int)sizeof(struct frame_key);

	load(as, BPF_DW, BPF_REG_1, BPF_REG_7, 0);
	jump_imm(as, BPF_JLE, BPF_REG_1, i, L_MISS);
	for (int w = 0; w < FRAME_KEY_WORDS; w++) {
		load(as, BPF_DW, BPF_REG_1, BPF_REG_10, KEY + 8 * w);
		load(as, BPF_DW, BPF_REG_2, BPF_REG_7, masks + 8 * w);
		alu(as, BPF_AND, BPF_REG_1, BPF_REG_2);
		store(as, BPF_DW, PROBE + 8 * w, BPF_REG_1);
	}
	mov_imm(as, BPF_REG_1, i);
	store(as, BPF_DW, PROBE + 8 * FRAME_KEY_WORDS, BPF_REG_1);
	load_map(as, BPF_REG_1, rules_fd);
	mov(as, BPF_REG_2, BPF_REG_10);
	alu_imm(as, BPF_ADD, BPF_REG_2, PROBE);
	call(as, BPF_FUNC_map_lookup_elem);
	if (any_rule_hits) {
		jump_imm(as, BPF_JNE, BPF_REG_0, 0, L_HIT);
		return;
	}
	emit(as, BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_0, 0, 2, 0);
	load(as, BPF_DW, BPF_REG_1, BPF_REG_0, 0);
	jump_imm(as, BPF_JEQ, BPF_REG_1, RULE_TRAP, L_HIT);
}

/* `sight`: for the wire's socket. */
static void assemble(struct assembler *as, const struct filter *filter,
		     const struct sight *sight, bool any_rule_hits, int hit, int miss)
{
	as->n = 0;
	as->n_fixups = 0;
	if (sight)
		assemble_unseen(as, sight);
	else
		assemble_returns(as);
	assemble_ethernet(as);
	assemble_ipv4(as);
	assemble_ipv6(as);
	assemble_l4(as);
	place(as, L_MATCH);
	mov_imm(as, BPF_REG_1, 0);
	store(as, BPF_W, INDEX, BPF_REG_1);
	load_map(as, BPF_REG_1, filter->shapes_fd);
	mov(as, BPF_REG_2, BPF_REG_10);
	alu_imm(as, BPF_ADD, BPF_REG_2, INDEX);
	call(as, BPF_FUNC_map_lookup_elem);
	jump_imm(as, BPF_JEQ, BPF_REG_0, 0, L_MISS);
	mov(as, BPF_REG_7, BPF_REG_0);
	for (int i = 0; i < FILTER_MAX_SHAPES; i++)
		assemble_probe(as, filter->rules_fd, i, any_rule_hits);
	place(as, L_MISS);
	mov_imm(as, BPF_REG_0, miss);
	emit(as, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
	place(as, L_HIT);
	mov_imm(as, BPF_REG_0, hit);
	emit(as, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
	resolve(as);
}

/* On the way out: what is for the port's own MAC comes in again, for all queues
 * and processes on the port and for the kernel. So does a copy of what a card
 * sends to a group; the kernel's own frames to groups must not come back to it. */
static void assemble_loop(struct assembler *as, int ifindex,
			  const uint8_t mac[6])
{
	uint32_t first;
	uint16_t last;

	as->n = 0;
	as->n_fixups = 0;
	memcpy(&first, mac, sizeof(first));
	memcpy(&last, mac + sizeof(first), sizeof(last));
	mov(as, BPF_REG_6, BPF_REG_1);
	mov_imm(as, BPF_REG_2, 0);
	mov(as, BPF_REG_3, BPF_REG_10);
	alu_imm(as, BPF_ADD, BPF_REG_3, HDR);
	mov_imm(as, BPF_REG_4, 6);
	call(as, BPF_FUNC_skb_load_bytes);
	jump_imm(as, BPF_JNE, BPF_REG_0, 0, L_MISS);
	load(as, BPF_B, BPF_REG_1, BPF_REG_10, HDR);
	alu_imm(as, BPF_AND, BPF_REG_1, 1);
	jump_imm(as, BPF_JEQ, BPF_REG_1, 0, L_MATCH);
	load(as, BPF_W, BPF_REG_1, BPF_REG_6,
	     (int)offsetof(struct __sk_buff, mark));
	jump_imm(as, BPF_JNE, BPF_REG_1, FILTER_CARD_MARK, L_MISS);
	mov(as, BPF_REG_1, BPF_REG_6);
	mov_imm(as, BPF_REG_2, ifindex);
	mov_imm(as, BPF_REG_3, BPF_F_INGRESS);
	call(as, BPF_FUNC_clone_redirect);
	jump(as, L_MISS);
	place(as, L_MATCH);
	/* 32-bit compares: an immediate is extended by its sign in others. */
	load(as, BPF_W, BPF_REG_1, BPF_REG_10, HDR);
	emit(as, BPF_ALU | BPF_XOR | BPF_K, BPF_REG_1, 0, 0, (int32_t)first);
	load(as, BPF_H, BPF_REG_2, BPF_REG_10, HDR + (int)sizeof(first));
	emit(as, BPF_ALU | BPF_XOR | BPF_K, BPF_REG_2, 0, 0, last);
	alu(as, BPF_OR, BPF_REG_1, BPF_REG_2);
	jump_imm(as, BPF_JNE, BPF_REG_1, 0, L_MISS);
	mov_imm(as, BPF_REG_1, ifindex);
	mov_imm(as, BPF_REG_2, BPF_F_INGRESS);
	call(as, BPF_FUNC_redirect);
	emit(as, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
	place(as, L_MISS);
	mov_imm(as, BPF_REG_0, VERDICT_NEXT);
	emit(as, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
	resolve(as);
}

/* The verifier gives up for a signal, which is handled on the way back from the call. */
enum { LOADS_MAX = 100 };

static int bpf(int cmd, union bpf_attr *attr)
{
	int ret, tries = 0;

	do
		ret = (int)SYS(__NR_bpf, cmd, attr, sizeof(*attr));
	while (ret == -EAGAIN && cmd == BPF_PROG_LOAD && ++tries < LOADS_MAX);
	return ret;
}

static int create_map(uint32_t type, uint32_t key_size, uint32_t value_size,
		      uint32_t n, uint32_t flags)
{
	union bpf_attr attr = { 0 };

	attr.map_type = type;
	attr.key_size = key_size;
	attr.value_size = value_size;
	attr.max_entries = n;
	attr.map_flags = flags;
	return bpf(BPF_MAP_CREATE, &attr);
}

static int load_program(const struct assembler *as, const char *name,
			uint32_t type, uint32_t attach_type)
{
	static char log[16384];
	union bpf_attr attr = { 0 };
	int fd;

	attr.prog_type = type;
	strcpy(attr.prog_name, name);
	attr.expected_attach_type = attach_type;
	attr.insns = (uintptr_t)as->insns;
	attr.insn_cnt = (uint32_t)as->n;
	attr.license = (uintptr_t)"Dual BSD/GPL";
	fd = bpf(BPF_PROG_LOAD, &attr);
	if (fd != -EACCES && fd != -EINVAL)
		return fd;
	/* Once more, for the verifier's reason. */
	attr.log_buf = (uintptr_t)log;
	attr.log_size = sizeof(log);
	attr.log_level = 1;
	fd = bpf(BPF_PROG_LOAD, &attr);
	if (fd < 0)
		check_say("the kernel refuses a filter program: %.400s", log);
	return fd;
}

static int load_programs(struct filter *filter, int ifindex,
			 const uint8_t mac[6])
{
	static struct assembler as;
	struct sight sight;
	int fd = sight_find(&sight);

	if (fd < 0)
		return fd;
	assemble(&as, filter, &sight, true, -1, 0);
	fd = load_program(&as, "softcx_wire", BPF_PROG_TYPE_SOCKET_FILTER, 0);
	if (fd < 0)
		return fd;
	filter->wire_prog_fd = fd;
	assemble(&as, filter, NULL, false, VERDICT_DROP, VERDICT_NEXT);
	fd = load_program(&as, "softcx_drop", BPF_PROG_TYPE_SCHED_CLS,
			  ATTACH_TCX_INGRESS);
	/* An older kernel does not know that way of attaching. */
	if (fd == -EINVAL)
		return -ENOTSUP;
	if (fd < 0)
		return fd;
	filter->drop_prog_fd = fd;
	assemble_loop(&as, ifindex, mac);
	fd = load_program(&as, "softcx_loop", BPF_PROG_TYPE_SCHED_CLS,
			  ATTACH_TCX_EGRESS);
	if (fd < 0)
		return fd;
	filter->loop_prog_fd = fd;
	return 0;
}

static int attach(int prog_fd, int ifindex, int type, int *link_fd_out)
{
	union bpf_attr attr = { 0 };
	int fd;

	attr.link_create.prog_fd = (uint32_t)prog_fd;
	attr.link_create.target_ifindex = (uint32_t)ifindex;
	attr.link_create.attach_type = (uint32_t)type;
	fd = bpf(BPF_LINK_CREATE, &attr);
	if (fd == -EINVAL)
		return -ENOTSUP;
	if (fd < 0)
		return fd;
	*link_fd_out = fd;
	return 0;
}

static int open_all(struct filter *filter, int ifindex, const uint8_t mac[6])
{
	int ret = create_map(BPF_MAP_TYPE_ARRAY, 4, sizeof(struct shapes), 1, 0);

	if (ret < 0)
		return ret;
	filter->shapes_fd = ret;
	ret = create_map(BPF_MAP_TYPE_HASH, PROBE_SIZE, 8, MAX_RULES,
			 BPF_F_NO_PREALLOC);
	if (ret < 0)
		return ret;
	filter->rules_fd = ret;
	ret = load_programs(filter, ifindex, mac);
	if (ret)
		return ret;
	ret = attach(filter->drop_prog_fd, ifindex, ATTACH_TCX_INGRESS,
		     &filter->link_fd);
	if (ret)
		return ret;
	return attach(filter->loop_prog_fd, ifindex, ATTACH_TCX_EGRESS,
		      &filter->loop_link_fd);
}

int filter_open(struct filter *filter, int ifindex, const uint8_t mac[6])
{
	int ret;

	*filter = (struct filter){
		.shapes_fd = -1,
		.rules_fd = -1,
		.link_fd = -1,
		.wire_prog_fd = -1,
		.drop_prog_fd = -1,
		.loop_prog_fd = -1,
		.loop_link_fd = -1,
	};
	ret = open_all(filter, ifindex, mac);
	if (ret)
		filter_close(filter);
	return ret;
}

void filter_close(struct filter *filter)
{
	int *const fds[] = {
		&filter->loop_link_fd, &filter->loop_prog_fd,
		&filter->link_fd, &filter->drop_prog_fd, &filter->wire_prog_fd,
		&filter->rules_fd, &filter->shapes_fd,
	};

	for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
		if (*fds[i] >= 0)
			sys_close(*fds[i]);
		*fds[i] = -1;
	}
}

static int update(int cmd, int fd, const void *key, const void *value)
{
	union bpf_attr attr = { 0 };

	attr.map_fd = (uint32_t)fd;
	attr.key = (uintptr_t)key;
	attr.value = (uintptr_t)value;
	return bpf(cmd, &attr);
}

static int publish_shapes(const struct filter *filter)
{
	struct shapes shapes = { .n = filter->n_shapes };
	uint32_t zero = 0;

	memcpy(shapes.masks, filter->shapes, sizeof(shapes.masks));
	return update(BPF_MAP_UPDATE_ELEM, filter->shapes_fd, &zero, &shapes);
}

/* The number of the shape, an unused one if the mask is new, or -ENOSPC. */
static int find_shape(const struct filter *filter, const struct frame_key *mask)
{
	int free_shape = -ENOSPC;

	for (int i = 0; i < FILTER_MAX_SHAPES; i++) {
		if (!filter->n_users[i]) {
			if (free_shape < 0)
				free_shape = i;
			continue;
		}
		if (memcmp(&filter->shapes[i], mask, sizeof(*mask)) == 0)
			return i;
	}
	return free_shape;
}

static void make_probe(struct probe *probe, const struct frame_key *value,
		       int shape)
{
	memset(probe, 0, sizeof(*probe));
	probe->key = *value;
	probe->shape = (uint64_t)shape;
}

int filter_add(struct filter *filter, const struct frame_key *value,
	       const struct frame_key *mask, bool is_trap)
{
	int shape = find_shape(filter, mask), ret;
	uint64_t verdict = is_trap ? RULE_TRAP : RULE_COPY;
	struct probe probe;

	if (shape < 0)
		return shape;
	make_probe(&probe, value, shape);
	ret = update(BPF_MAP_UPDATE_ELEM, filter->rules_fd, &probe, &verdict);
	if (ret)
		return ret;
	if (filter->n_users[shape]++)
		return 0;
	filter->shapes[shape] = *mask;
	filter->n_shapes = MAX(filter->n_shapes, (unsigned int)shape + 1);
	return publish_shapes(filter);
}

void filter_remove(struct filter *filter, const struct frame_key *value,
		   const struct frame_key *mask)
{
	int shape = find_shape(filter, mask);
	struct probe probe;

	if (shape < 0 || !filter->n_users[shape])
		return;
	make_probe(&probe, value, shape);
	update(BPF_MAP_DELETE_ELEM, filter->rules_fd, &probe, NULL);
	filter->n_users[shape]--;
}

int filter_try(struct filter *filter, const void *frame, size_t len)
{
	union bpf_attr attr = { 0 };
	int ret;

	attr.test.prog_fd = (uint32_t)filter->drop_prog_fd;
	attr.test.data_in = (uintptr_t)frame;
	attr.test.data_size_in = (uint32_t)len;
	attr.test.repeat = 1;
	ret = bpf(BPF_PROG_TEST_RUN, &attr);
	if (ret)
		return ret;
	return attr.test.retval == VERDICT_DROP;
}
