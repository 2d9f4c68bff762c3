/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What this card does not do, and says so as a card without the feature would:
 * each row that README marks with n. Requests are made by hand, because the
 * libraries would not make most of them; of each kind there is one that is good,
 * so that what is refused is the one thing that differs. See card_test.c.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <infiniband/mlx5dv.h>
#include <netinet/in.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>
#include <rdma/rdma_user_cm.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pair.h"
#include "tests/support/test.h"

enum { PAGE = 4096, ROOM = 1024 };

/* One command: core request and response, then the provider's. */
struct request {
	uint32_t number;
	bool is_ex;
	const void *in;
	size_t in_len;
	size_t out_len;
	const void *drv_in;
	size_t drv_in_len;
};

static uint8_t response[ROOM];

static size_t pack(const struct request *r, uint8_t *buf)
{
	struct ib_uverbs_cmd_hdr hdr = { .command = r->number };
	struct ib_uverbs_ex_cmd_hdr ex = {
		.response = r->out_len ? (uintptr_t)response : 0,
		.provider_in_words = (uint16_t)(r->drv_in_len / 8),
	};
	uint64_t at = (uintptr_t)response;
	size_t len = sizeof(hdr);

	if (r->is_ex) {
		memcpy(buf + len, &ex, sizeof(ex));
		len += sizeof(ex);
	}
	memcpy(buf + len, r->in, r->in_len);
	if (!r->is_ex && r->out_len)
		memcpy(buf + len, &at, sizeof(at));
	len += r->in_len;
	if (r->drv_in_len)
		memcpy(buf + len, r->drv_in, r->drv_in_len);
	len += r->drv_in_len;
	if (r->is_ex) {
		hdr.command |= IB_USER_VERBS_CMD_FLAG_EXTENDED;
		hdr.in_words = (uint16_t)(r->in_len / 8);
		hdr.out_words = (uint16_t)(r->out_len / 8);
	} else {
		hdr.in_words = (uint16_t)(len / 4);
		hdr.out_words = (uint16_t)(ROOM / 4);
	}
	memcpy(buf, &hdr, sizeof(hdr));
	return len;
}

/* 0 or errno. */
static int ask_fd(int fd, const struct request *r)
{
	uint8_t buf[ROOM];
	size_t len = pack(r, buf);

	memset(response, 0, sizeof(response));
	return write(fd, buf, len) == (ssize_t)len ? 0 : errno;
}

static int ask(const struct request *r)
{
	return ask_fd(pair_b.ctx->cmd_fd, r);
}

/* The first word of the last answer: the handle of what was made. */
static uint32_t made(void)
{
	uint32_t handle;

	memcpy(&handle, response, sizeof(handle));
	return handle;
}

/* The card is as good as before. */
static void still_works(void)
{
	struct rig_flow flow = pair_flow();
	struct ibv_flow *rule = rig_flow(&pair_b, &flow);

	pair_send(0, 0);
	CHECK_EQ(rig_next_wc(pair_b.recv_cq).status, IBV_WC_SUCCESS);
	CHECK_EQ(ibv_destroy_flow(rule), 0);
}

static const char *error_text(int error)
{
	return error ? strerrorname_np(error) : "accepted";
}

#define EXPECT(what, got, want)                                           \
	do {                                                              \
		int got_ = (got), want_ = (want);                         \
		if (got_ != want_)                                        \
			FAIL("%s: %s, expected %s", what,                 \
			     error_text(got_), error_text(want_));        \
	} while (0)

TEST(unknown_commands)
{
	static const struct {
		const char *what;
		uint32_t number;
		bool is_ex;
	} rows[] = {
#define PLAIN(name) { #name, IB_USER_VERBS_CMD_##name, false }
#define EX(name) { #name, IB_USER_VERBS_EX_CMD_##name, true }
		PLAIN(CREATE_AH), PLAIN(MODIFY_AH), PLAIN(QUERY_AH),
		PLAIN(DESTROY_AH), PLAIN(REG_SMR), PLAIN(REREG_MR),
		PLAIN(QUERY_MR), PLAIN(ALLOC_MW), PLAIN(BIND_MW),
		PLAIN(DEALLOC_MW), PLAIN(RESIZE_CQ), PLAIN(POLL_CQ),
		PLAIN(PEEK_CQ), PLAIN(REQ_NOTIFY_CQ), PLAIN(POST_SEND),
		PLAIN(POST_RECV), PLAIN(ATTACH_MCAST), PLAIN(DETACH_MCAST),
		PLAIN(CREATE_SRQ), PLAIN(MODIFY_SRQ), PLAIN(QUERY_SRQ),
		PLAIN(DESTROY_SRQ), PLAIN(POST_SRQ_RECV), PLAIN(OPEN_XRCD),
		PLAIN(CLOSE_XRCD), PLAIN(CREATE_XSRQ), PLAIN(OPEN_QP),
		EX(CREATE_WQ), EX(MODIFY_WQ), EX(DESTROY_WQ),
		EX(CREATE_RWQ_IND_TBL), EX(DESTROY_RWQ_IND_TBL),
#undef PLAIN
#undef EX
		{ "a number beyond all", 255, false },
		{ "an extended number beyond all", 255, true },
	};
	static const uint8_t zeros[128];

	pair_open(NULL, NULL);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct request r = {
			.number = rows[i].number,
			.is_ex = rows[i].is_ex,
			.in = zeros,
			.in_len = sizeof(zeros),
		};

		EXPECT(rows[i].what, ask(&r), EOPNOTSUPP);
	}
	still_works();
	pair_close();
}

/* The libraries' own calls for them fail, and nothing crashes. */
TEST(calls_that_need_them_fail)
{
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 1,
						   .max_sge = 1 } };
	struct ibv_wq_init_attr wq = { .wq_type = IBV_WQT_RQ, .max_wr = 1,
				       .max_sge = 1 };
	struct ibv_xrcd_init_attr xrcd = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	struct ibv_ah_attr ah = { .port_num = 1, .is_global = 1 };
	uint8_t in[64] = { 0 }, out[64];
	union ibv_gid gid = { 0 };

	pair_open(NULL, NULL);
	wq.pd = pair_b.pd;
	wq.cq = pair_b.recv_cq;
	CHECK(!ibv_create_srq(pair_b.pd, &srq));
	CHECK(!ibv_create_wq(pair_b.ctx, &wq));
	CHECK(!ibv_open_xrcd(pair_b.ctx, &xrcd));
	CHECK(!ibv_create_ah(pair_b.pd, &ah));
	CHECK(!ibv_alloc_mw(pair_b.pd, IBV_MW_TYPE_1));
	CHECK(ibv_resize_cq(pair_b.recv_cq, 500) != 0);
	CHECK(ibv_rereg_mr(pair_b.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			   0) != 0);
	CHECK(ibv_attach_mcast(pair_b.qp, &gid, 0) != 0);
	CHECK(!mlx5dv_devx_obj_create(pair_b.ctx, in, sizeof(in), out,
				      sizeof(out)));
	CHECK(mlx5dv_devx_general_cmd(pair_b.ctx, in, sizeof(in), out,
				      sizeof(out)) != 0);
	CHECK(!mlx5dv_devx_umem_reg(pair_b.ctx, pair_b.slots, PAGE, 0));
	errno = 0;
	CHECK(!mlx5dv_pp_alloc(pair_b.ctx, sizeof(in), in, 0));
	CHECK_EQ(errno, EPROTONOSUPPORT);
	still_works();
	pair_close();
}

TEST(capabilities_are_not_claimed)
{
	struct mlx5dv_context dv = {
		.comp_mask = MLX5DV_CONTEXT_MASK_CQE_COMPRESION |
			     MLX5DV_CONTEXT_MASK_SWP |
			     MLX5DV_CONTEXT_MASK_STRIDING_RQ |
			     MLX5DV_CONTEXT_MASK_TUNNEL_OFFLOADS |
			     MLX5DV_CONTEXT_MASK_DCI_STREAMS,
	};
	struct ibv_device_attr_ex attr;

	pair_open(NULL, NULL);
	CHECK_EQ(mlx5dv_query_device(pair_b.ctx, &dv), 0);
	CHECK(!(dv.flags & (MLX5DV_CONTEXT_FLAGS_MPW_ALLOWED |
			    MLX5DV_CONTEXT_FLAGS_ENHANCED_MPW |
			    MLX5DV_CONTEXT_FLAGS_CQE_128B_PAD |
			    MLX5DV_CONTEXT_FLAGS_CQE_128B_COMP)));
	CHECK_EQ(dv.cqe_comp_caps.supported_format, MLX5DV_CQE_RES_FORMAT_HASH);
	CHECK_EQ(dv.sw_parsing_caps.sw_parsing_offloads, 0);
	CHECK_EQ(dv.striding_rq_caps.max_single_stride_log_num_of_bytes, 0);
	CHECK_EQ(dv.tunnel_offloads_caps, 0);
	CHECK_EQ(ibv_query_device_ex(pair_b.ctx, NULL, &attr), 0);
	CHECK_EQ(attr.rss_caps.supported_qpts, 0);
	CHECK_EQ(attr.max_wq_type_rq, 0);
	CHECK_EQ(attr.odp_caps.general_caps, 0);
	CHECK_EQ(attr.tm_caps.max_num_tags, 0);
	CHECK_EQ(attr.orig_attr.max_srq, 0);
	CHECK_EQ(attr.orig_attr.max_mw, 0);
	CHECK_EQ(attr.orig_attr.max_mcast_grp, 0);
	CHECK_EQ(attr.raw_packet_caps & ~(unsigned)
		 (IBV_RAW_PACKET_CAP_CVLAN_STRIPPING |
		  IBV_RAW_PACKET_CAP_IP_CSUM), 0);
	pair_close();
}

/* What libmlx5 says of itself when it opens a device. */
TEST(context_of_an_older_library)
{
	struct ib_uverbs_get_context in = { 0 };
	struct mlx5_ib_alloc_ucontext_req_v2 drv = {
		.max_cqe_version = 1,
		.lib_caps = MLX5_LIB_CAP_DYN_UAR,
	};
	struct request r = {
		.number = IB_USER_VERBS_CMD_GET_CONTEXT,
		.in = &in, .in_len = sizeof(in),
		.out_len = sizeof(struct ib_uverbs_get_context_resp),
		.drv_in = &drv, .drv_in_len = sizeof(drv),
	};
	int fd = open("/dev/infiniband/uverbs1", O_RDWR | O_CLOEXEC);

	CHECK(fd >= 0);
	drv.lib_caps = 0;
	EXPECT("no dynamic UARs", ask_fd(fd, &r), EOPNOTSUPP);
	drv.lib_caps = MLX5_LIB_CAP_DYN_UAR;
	drv.max_cqe_version = 0;
	EXPECT("old completions", ask_fd(fd, &r), EOPNOTSUPP);
	drv.max_cqe_version = 1;
	drv.flags = MLX5_IB_ALLOC_UCTX_DEVX;
	EXPECT("a current one, with DEVX", ask_fd(fd, &r), 0);
	/* The descriptor of its events came with it. */
	close((int)made());
	close(fd);
}

TEST(query_with_unknown_extensions)
{
	struct ib_uverbs_ex_query_device in = { 0 };
	struct request r = {
		.number = IB_USER_VERBS_EX_CMD_QUERY_DEVICE, .is_ex = true,
		.in = &in, .in_len = sizeof(in),
		.out_len = sizeof(struct ib_uverbs_ex_query_device_resp),
	};

	pair_open(NULL, NULL);
	EXPECT("comp_mask 0", ask(&r), 0);
	in.comp_mask = 1;
	EXPECT("comp_mask 1", ask(&r), EINVAL);
	pair_close();
}

TEST(memory_access)
{
	static const struct {
		const char *what;
		uint32_t access;
		int error;
	} rows[] = {
		{ "remote rights", IBV_ACCESS_LOCAL_WRITE |
		  IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		  IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_RELAXED_ORDERING, 0 },
		{ "on demand", IBV_ACCESS_ON_DEMAND, EOPNOTSUPP },
		{ "memory windows", IBV_ACCESS_MW_BIND, EOPNOTSUPP },
		{ "zero based", IBV_ACCESS_ZERO_BASED, EOPNOTSUPP },
		{ "a bit unknown", 1u << 31, EOPNOTSUPP },
	};
	struct ib_uverbs_reg_mr in = { .length = PAGE };
	struct request r = {
		.number = IB_USER_VERBS_CMD_REG_MR,
		.in = &in, .in_len = sizeof(in),
		.out_len = sizeof(struct ib_uverbs_reg_mr_resp),
	};
	struct ib_uverbs_dereg_mr undo = { 0 };
	struct request back = { .number = IB_USER_VERBS_CMD_DEREG_MR,
				.in = &undo, .in_len = sizeof(undo) };

	pair_open(NULL, NULL);
	in.start = in.hca_va = (uintptr_t)pair_b.slots;
	in.pd_handle = pair_b.pd->handle;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		in.access_flags = rows[i].access;
		EXPECT(rows[i].what, ask(&r), rows[i].error);
		if (rows[i].error)
			continue;
		undo.mr_handle = made();
		EXPECT("dereg_mr", ask(&back), 0);
	}
	pair_close();
}

/* A queue of entries and its record, for commands by hand. */
static uint8_t ring[16 * PAGE] __attribute__((aligned(4096)));
static uint32_t record[2] __attribute__((aligned(8)));

TEST(completion_queues)
{
	static const struct {
		const char *what;
		uint32_t flags, comp_mask;
		uint16_t drv_flags;
		uint8_t is_compressed;
		int error;
	} rows[] = {
		{ "time stamps", IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION, 0,
		  MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX, 0, 0 },
		{ "overrun ignored", IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN, 0,
		  MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX, 0, EOPNOTSUPP },
		{ "extensions", 0, 1, MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX, 0,
		  EINVAL },
		{ "compression without a format", 0, 0, MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX,
		  1, EOPNOTSUPP },
		{ "padding", 0, 0, MLX5_IB_CREATE_CQ_FLAGS_CQE_128B_PAD, 0,
		  EOPNOTSUPP },
		{ "real time", 0, 0, MLX5_IB_CREATE_CQ_FLAGS_REAL_TIME_TS, 0,
		  EOPNOTSUPP },
	};
	struct ib_uverbs_ex_create_cq in = { .cqe = 63, .comp_channel = -1 };
	struct mlx5_ib_create_cq drv = { .cqe_size = 64 };
	struct request r = {
		.number = IB_USER_VERBS_EX_CMD_CREATE_CQ, .is_ex = true,
		.in = &in, .in_len = sizeof(in),
		.out_len = sizeof(struct ib_uverbs_ex_create_cq_resp),
		.drv_in = &drv, .drv_in_len = sizeof(drv),
	};
	struct ib_uverbs_destroy_cq undo = { 0 };
	struct mlx5dv_devx_uar *uar;
	struct request back = {
		.number = IB_USER_VERBS_CMD_DESTROY_CQ,
		.in = &undo, .in_len = sizeof(undo),
		.out_len = sizeof(struct ib_uverbs_destroy_cq_resp),
	};

	pair_open(NULL, NULL);
	drv.buf_addr = (uintptr_t)ring;
	drv.db_addr = (uintptr_t)record;
	uar = mlx5dv_devx_alloc_uar(pair_b.ctx, MLX5DV_UAR_ALLOC_TYPE_NC);
	CHECK(uar);
	drv.uar_page_index = (uint16_t)uar->page_id;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		in.flags = rows[i].flags;
		in.comp_mask = rows[i].comp_mask;
		drv.flags = rows[i].drv_flags;
		drv.cqe_comp_en = rows[i].is_compressed;
		EXPECT(rows[i].what, ask(&r), rows[i].error);
		if (rows[i].error)
			continue;
		undo.cq_handle = made();
		EXPECT("destroy_cq", ask(&back), 0);
	}
	mlx5dv_devx_free_uar(uar);
	pair_close();
}

/* Rings and records are the program's memory as well. */
TEST(queues_in_memory_that_is_not_there)
{
	struct ib_uverbs_create_cq cq = { .cqe = 63, .comp_channel = -1 };
	struct mlx5_ib_create_cq cq_drv = {
		.cqe_size = 64,
		.flags = MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX,
	};
	struct request make_cq = {
		.number = IB_USER_VERBS_CMD_CREATE_CQ,
		.in = &cq, .in_len = sizeof(cq),
		.out_len = sizeof(struct ib_uverbs_create_cq_resp),
		.drv_in = &cq_drv, .drv_in_len = sizeof(cq_drv),
	};
	struct ib_uverbs_ex_create_qp qp = { .max_recv_wr = 64,
					     .max_recv_sge = 1,
					     .qp_type = IBV_QPT_RAW_PACKET };
	struct mlx5_ib_create_qp qp_drv = { .rq_wqe_count = 64,
					    .rq_wqe_shift = 6 };
	struct request make_qp = {
		.number = IB_USER_VERBS_EX_CMD_CREATE_QP, .is_ex = true,
		.in = &qp, .in_len = sizeof(qp),
		.out_len = sizeof(struct ib_uverbs_ex_create_qp_resp),
		.drv_in = &qp_drv, .drv_in_len = sizeof(qp_drv),
	};
	uint8_t *at = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct mlx5dv_devx_uar *uar;

	CHECK(at != MAP_FAILED);
	CHECK_EQ(mprotect(at + PAGE, PAGE, PROT_NONE), 0);
	pair_open(NULL, NULL);
	uar = mlx5dv_devx_alloc_uar(pair_b.ctx, MLX5DV_UAR_ALLOC_TYPE_NC);
	CHECK(uar);
	cq_drv.uar_page_index = (uint16_t)uar->page_id;
	cq_drv.db_addr = (uintptr_t)record;
	cq_drv.buf_addr = (uintptr_t)at + 64;
	EXPECT("ring of completions", ask(&make_cq), EFAULT);
	cq_drv.buf_addr = (uintptr_t)ring;
	cq_drv.db_addr = (uintptr_t)at + PAGE;
	EXPECT("record of completions", ask(&make_cq), EFAULT);
	qp.pd_handle = pair_b.pd->handle;
	qp.send_cq_handle = pair_b.send_cq->handle;
	qp.recv_cq_handle = pair_b.recv_cq->handle;
	qp_drv.db_addr = (uintptr_t)record;
	qp_drv.buf_addr = (uintptr_t)at + 64;
	EXPECT("receive queue", ask(&make_qp), EFAULT);
	qp_drv.buf_addr = (uintptr_t)ring;
	qp_drv.db_addr = (uintptr_t)at + PAGE;
	EXPECT("record", ask(&make_qp), EFAULT);
	qp_drv.db_addr = (uintptr_t)record;
	qp_drv.sq_wqe_count = 64;
	qp_drv.sq_buf_addr = (uintptr_t)at + 64;
	qp_drv.bfreg_index = uar->page_id;
	EXPECT("send queue", ask(&make_qp), EFAULT);
	mlx5dv_devx_free_uar(uar);
	munmap(at, 2 * PAGE);
	pair_close();
}

TEST(queue_pairs)
{
	static const struct {
		const char *what;
		uint8_t type, is_srq;
		uint32_t comp_mask, flags, source_qpn, drv_flags;
		int error;
	} rows[] = {
#define RAW IBV_QPT_RAW_PACKET, 0
		{ "raw packets", RAW, 0, 0, 0, 0, 0 },
		{ "VLAN stripping", RAW, 0, IBV_QP_CREATE_CVLAN_STRIPPING, 0, 0,
		  0 },
		{ "RC", IBV_QPT_RC, 0, 0, 0, 0, 0, EOPNOTSUPP },
		{ "UC", IBV_QPT_UC, 0, 0, 0, 0, 0, EOPNOTSUPP },
		{ "UD", IBV_QPT_UD, 0, 0, 0, 0, 0, EOPNOTSUPP },
		{ "XRC", IBV_QPT_XRC_SEND, 0, 0, 0, 0, 0, EOPNOTSUPP },
		{ "driver's", IBV_QPT_DRIVER, 0, 0, 0, 0, 0, EOPNOTSUPP },
		{ "SRQ", IBV_QPT_RAW_PACKET, 1, 0, 0, 0, 0, EOPNOTSUPP },
		{ "RSS", RAW, IB_UVERBS_CREATE_QP_MASK_IND_TABLE, 0, 0, 0,
		  EOPNOTSUPP },
		{ "FCS", RAW, 0, IBV_QP_CREATE_SCATTER_FCS, 0, 0, EOPNOTSUPP },
		{ "source number", RAW, 0, IBV_QP_CREATE_SOURCE_QPN, 7, 0,
		  EOPNOTSUPP },
		{ "padding at the end", RAW, 0, IBV_QP_CREATE_PCI_WRITE_END_PADDING,
		  0, 0, EOPNOTSUPP },
		{ "signatures", RAW, 0, 0, 0, MLX5_QP_FLAG_SIGNATURE,
		  EOPNOTSUPP },
		{ "tunnels", RAW, 0, 0, 0, MLX5_QP_FLAG_TUNNEL_OFFLOADS,
		  EOPNOTSUPP },
#undef RAW
	};
	struct ib_uverbs_ex_create_qp in = { .max_recv_wr = 64,
					     .max_recv_sge = 1 };
	struct mlx5_ib_create_qp drv = { .rq_wqe_count = 64,
					 .rq_wqe_shift = 4 };
	struct request r = {
		.number = IB_USER_VERBS_EX_CMD_CREATE_QP, .is_ex = true,
		.in = &in, .in_len = sizeof(in),
		.out_len = sizeof(struct ib_uverbs_ex_create_qp_resp),
		.drv_in = &drv, .drv_in_len = sizeof(drv),
	};
	struct ib_uverbs_destroy_qp undo = { 0 };
	struct request back = {
		.number = IB_USER_VERBS_CMD_DESTROY_QP,
		.in = &undo, .in_len = sizeof(undo),
		.out_len = sizeof(struct ib_uverbs_destroy_qp_resp),
	};

	pair_open(NULL, NULL);
	in.pd_handle = pair_b.pd->handle;
	in.send_cq_handle = pair_b.send_cq->handle;
	in.recv_cq_handle = pair_b.recv_cq->handle;
	drv.buf_addr = (uintptr_t)ring;
	drv.db_addr = (uintptr_t)record;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		in.qp_type = rows[i].type;
		in.is_srq = rows[i].is_srq;
		in.comp_mask = rows[i].comp_mask;
		in.create_flags = rows[i].flags;
		in.source_qpn = rows[i].source_qpn;
		drv.flags = rows[i].drv_flags;
		EXPECT(rows[i].what, ask(&r), rows[i].error);
		if (rows[i].error)
			continue;
		undo.qp_handle = made();
		EXPECT("destroy_qp", ask(&back), 0);
	}
	pair_close();
}

TEST(attributes_and_states)
{
	static const struct {
		const char *what;
		uint32_t mask;
		uint8_t state;
		int error;
	} rows[] = {
		{ "nothing", 0, 0, 0 },
		{ "partition key", IBV_QP_PKEY_INDEX, 0, EINVAL },
		{ "queue key", IBV_QP_QKEY, 0, EINVAL },
		{ "address vector", IBV_QP_AV, 0, EINVAL },
		{ "path MTU", IBV_QP_PATH_MTU, 0, EINVAL },
		{ "retries", IBV_QP_RETRY_CNT, 0, EINVAL },
		{ "destination", IBV_QP_DEST_QPN, 0, EINVAL },
		{ "access", IBV_QP_ACCESS_FLAGS, 0, EINVAL },
		{ "sizes", IBV_QP_CAP, 0, EINVAL },
		{ "SQD", IBV_QP_STATE, IBV_QPS_SQD, EOPNOTSUPP },
	};
	struct ib_uverbs_modify_qp in = { 0 };
	struct request r = { .number = IB_USER_VERBS_CMD_MODIFY_QP,
			     .in = &in, .in_len = sizeof(in) };

	pair_open(NULL, NULL);
	in.qp_handle = pair_b.qp->handle;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		in.attr_mask = rows[i].mask;
		in.qp_state = rows[i].state;
		EXPECT(rows[i].what, ask(&r), rows[i].error);
	}
	still_works();
	pair_close();
}

/* A rule by hand: the destination's MAC, and perhaps one specification more. */
struct flow_request {
	uint8_t specs[256];
	struct ib_uverbs_create_flow core;
};

/* A specification whose value is zero and whose mask has one byte set. */
static void add_spec(struct flow_request *flow, uint32_t type, size_t half,
		     size_t mask_at)
{
	struct ib_uverbs_flow_attr *attr = &flow->core.flow_attr;
	struct ib_uverbs_flow_spec_hdr hdr = {
		.type = type,
		.size = (uint16_t)(sizeof(hdr) + 2 * half),
	};
	uint8_t *at = flow->specs + attr->size;

	memcpy(at, &hdr, sizeof(hdr));
	if (mask_at < half)
		at[sizeof(hdr) + half + mask_at] = 0xff;
	attr->size += hdr.size;
	attr->num_of_specs++;
}

static struct flow_request flow_request(void)
{
	struct flow_request flow = { .core = {
		.qp_handle = pair_b.qp->handle,
		.flow_attr = { .type = IBV_FLOW_ATTR_NORMAL, .port = 1 },
	} };

	add_spec(&flow, IBV_FLOW_SPEC_ETH,
		 sizeof(struct ib_uverbs_flow_eth_filter), 0);
	return flow;
}

static int create_flow(const struct flow_request *flow, uint32_t *handle_out)
{
	uint8_t in[sizeof(flow->core) + sizeof(flow->specs)];
	struct ib_uverbs_create_flow_resp resp;
	struct request r = {
		.number = IB_USER_VERBS_EX_CMD_CREATE_FLOW, .is_ex = true,
		.in = in,
		.in_len = sizeof(flow->core) +
			  ((flow->core.flow_attr.size + 7u) & ~7u),
		.out_len = sizeof(resp),
	};
	int error;

	memcpy(in, &flow->core, sizeof(flow->core));
	memcpy(in + sizeof(flow->core), flow->specs, sizeof(flow->specs));
	error = ask(&r);
	memcpy(&resp, response, sizeof(resp));
	*handle_out = resp.flow_handle;
	return error;
}

static void destroy_flow(uint32_t handle)
{
	struct ib_uverbs_destroy_flow undo = { .flow_handle = handle };
	struct request back = { .number = IB_USER_VERBS_EX_CMD_DESTROY_FLOW,
				.is_ex = true, .in = &undo,
				.in_len = sizeof(undo) };

	EXPECT("destroy_flow", ask(&back), 0);
}

TEST(flow_rules)
{
	enum { NONE = 99 };
	static const struct {
		const char *what;
		uint32_t type, flags;
		uint32_t spec; /* 0: only the MAC */
		size_t half, mask_at;
		int error;
	} rows[] = {
#define NORMAL IBV_FLOW_ATTR_NORMAL, 0
		{ "the MAC", NORMAL, 0, 0, 0, 0 },
		{ "sniffer", IBV_FLOW_ATTR_SNIFFER, 0, 0, 0, 0, EOPNOTSUPP },
		{ "egress", IBV_FLOW_ATTR_NORMAL, IBV_FLOW_ATTR_FLAGS_EGRESS, 0,
		  0, 0, EOPNOTSUPP },
		{ "IPv4 TTL", NORMAL, IBV_FLOW_SPEC_IPV4_EXT, 12, 10, 0 },
		{ "IPv4 flags", NORMAL, IBV_FLOW_SPEC_IPV4_EXT, 12, 11,
		  EOPNOTSUPP },
		{ "IPv6 hop limit", NORMAL, IBV_FLOW_SPEC_IPV6, 40, 38, 0 },
		{ "IPv6 flow label", NORMAL, IBV_FLOW_SPEC_IPV6, 40, 34,
		  EOPNOTSUPP },
		{ "ESP", NORMAL, IBV_FLOW_SPEC_ESP, 8, 0, EOPNOTSUPP },
		{ "VXLAN", NORMAL, IBV_FLOW_SPEC_VXLAN_TUNNEL, 4, 0,
		  EOPNOTSUPP },
		{ "GRE", NORMAL, IBV_FLOW_SPEC_GRE, 8, 0, EOPNOTSUPP },
		{ "MPLS", NORMAL, IBV_FLOW_SPEC_MPLS, 4, 0, EOPNOTSUPP },
		{ "inner MAC", NORMAL, IBV_FLOW_SPEC_INNER | IBV_FLOW_SPEC_ETH,
		  16, 0, EOPNOTSUPP },
		{ "inner IPv4", NORMAL,
		  IBV_FLOW_SPEC_INNER | IBV_FLOW_SPEC_IPV4, 8, 0, EOPNOTSUPP },
		{ "tag", NORMAL, IBV_FLOW_SPEC_ACTION_TAG, 4, NONE, 0 },
		{ "action by handle", NORMAL, IBV_FLOW_SPEC_ACTION_HANDLE, 4,
		  NONE, EOPNOTSUPP },
		{ "counters", NORMAL, IBV_FLOW_SPEC_ACTION_COUNT, 4, NONE,
		  EOPNOTSUPP },
#undef NORMAL
	};

	pair_open(NULL, NULL);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct flow_request flow = flow_request();
		uint32_t handle;

		flow.core.flow_attr.type = rows[i].type;
		flow.core.flow_attr.flags = rows[i].flags;
		if (rows[i].spec)
			add_spec(&flow, rows[i].spec, rows[i].half,
				 rows[i].mask_at);
		EXPECT(rows[i].what, create_flow(&flow, &handle),
		       rows[i].error);
		if (!rows[i].error)
			destroy_flow(handle);
	}
	still_works();
	pair_close();
}

/* Sixteen masks of one card; the rule of a seventeenth has no room. */
TEST(seventeenth_mask)
{
	enum { MASKS = 16 };
	uint32_t handles[MASKS + 1];

	pair_open(NULL, NULL);
	for (unsigned int i = 0; i <= MASKS; i++) {
		struct flow_request flow = flow_request();
		uint8_t *mask = flow.specs +
				sizeof(struct ib_uverbs_flow_spec_hdr) +
				sizeof(struct ib_uverbs_flow_eth_filter);

		mask[0] = 0xff;
		mask[1] = (uint8_t)(i + 1);
		EXPECT("one mask more", create_flow(&flow, &handles[i]),
		       i < MASKS ? 0 : ENOSPC);
	}
	for (unsigned int i = 0; i < MASKS; i++)
		destroy_flow(handles[i]);
	still_works();
	pair_close();
}

/* An ioctl without attributes. */
static int call(uint16_t object, uint16_t method)
{
	struct ib_uverbs_ioctl_hdr hdr = {
		.length = sizeof(hdr),
		.object_id = object,
		.method_id = method,
	};

	return ioctl(pair_b.ctx->cmd_fd, RDMA_VERBS_IOCTL, &hdr) ? errno : 0;
}

static bool is_implemented(uint16_t object, uint16_t method)
{
	return (object == MLX5_IB_OBJECT_UAR &&
		(method == MLX5_IB_METHOD_UAR_OBJ_ALLOC ||
		 method == MLX5_IB_METHOD_UAR_OBJ_DESTROY)) ||
	       (object == UVERBS_OBJECT_DM &&
		(method == UVERBS_METHOD_DM_ALLOC ||
		 method == UVERBS_METHOD_DM_FREE)) ||
	       (object == UVERBS_OBJECT_MR &&
		method == UVERBS_METHOD_DM_MR_REG);
}

/* All objects of the core and of the driver, with all their methods. */
TEST(ioctl_methods)
{
	enum { OBJECTS = 64, METHODS = 16, SPACES = 2 };
	unsigned int n_implemented = 0;

	pair_open(NULL, NULL);
	for (unsigned int i = 0; i < SPACES * OBJECTS; i++) {
		uint16_t object = (uint16_t)(i % OBJECTS +
			(i < OBJECTS ? 0 : 1u << UVERBS_ID_NS_SHIFT));

		for (unsigned int j = 0; j < SPACES * METHODS; j++) {
			uint16_t method = (uint16_t)(j % METHODS +
				(j < METHODS ? 0 : 1u << UVERBS_ID_NS_SHIFT));
			bool has = is_implemented(object, method);

			n_implemented += has;
			if (call(object, method) !=
			    (has ? EINVAL : EPROTONOSUPPORT))
				FAIL("object %#x method %#x: %s", object,
				     method, strerrorname_np(errno));
		}
	}
	CHECK_EQ(n_implemented, 5);
	CHECK(ioctl(pair_b.ctx->cmd_fd, FIONREAD, &n_implemented) == -1);
	CHECK_EQ(errno, ENOTTY);
	still_works();
	pair_close();
}

static int alloc_dm(uint8_t type)
{
	const struct ib_uverbs_attr attrs[] = {
		{ .attr_id = UVERBS_ATTR_ALLOC_DM_HANDLE },
		{ .attr_id = UVERBS_ATTR_ALLOC_DM_LENGTH, .len = 8,
		  .data = PAGE },
		{ .attr_id = MLX5_IB_ATTR_ALLOC_DM_REQ_TYPE, .len = 1,
		  .data = type },
	};
	uint64_t room[(sizeof(struct ib_uverbs_ioctl_hdr) + sizeof(attrs)) / 8];
	struct ib_uverbs_ioctl_hdr *hdr = (void *)room;

	memset(room, 0, sizeof(room));
	hdr->length = sizeof(room);
	hdr->object_id = UVERBS_OBJECT_DM;
	hdr->method_id = UVERBS_METHOD_DM_ALLOC;
	hdr->num_attrs = ARRAY_LEN(attrs);
	memcpy(hdr->attrs, attrs, sizeof(attrs));
	return ioctl(pair_b.ctx->cmd_fd, RDMA_VERBS_IOCTL, hdr) ? errno : 0;
}

/* On demand, as memory of the program may not be either. */
TEST(access_to_device_memory)
{
	struct ibv_alloc_dm_attr attr = { .length = PAGE };
	const uint32_t good = IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE;
	struct ibv_dm *dm;
	struct ibv_mr *mr;

	pair_open(NULL, NULL);
	dm = ibv_alloc_dm(pair_b.ctx, &attr);
	CHECK(dm);
	mr = ibv_reg_dm_mr(pair_b.pd, dm, 0, PAGE, good);
	CHECK(mr);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK(!ibv_reg_dm_mr(pair_b.pd, dm, 0, PAGE,
			     good | IBV_ACCESS_ON_DEMAND));
	CHECK_EQ(ibv_free_dm(dm), 0);
	pair_close();
}

/* Memory of the card for anything but the program's bytes. */
TEST(device_memory_of_another_type)
{
	pair_open(NULL, NULL);
	EXPECT("steering", alloc_dm(MLX5_IB_UAPI_DM_TYPE_STEERING_SW_ICM),
	       EOPNOTSUPP);
	EXPECT("headers", alloc_dm(MLX5_IB_UAPI_DM_TYPE_HEADER_MODIFY_SW_ICM),
	       EOPNOTSUPP);
	EXPECT("bytes", alloc_dm(MLX5_IB_UAPI_DM_TYPE_MEMIC), 0);
	pair_close();
}

static int map_at(unsigned int command, int prot)
{
	void *at = mmap(NULL, PAGE, prot, MAP_SHARED, pair_b.ctx->cmd_fd,
			(off_t)command << 8 << 12);

	if (at == MAP_FAILED)
		return errno;
	munmap(at, PAGE);
	return 0;
}

TEST(maps_of_other_things)
{
	pair_open(NULL, NULL);
	EXPECT("the clock", map_at(MLX5_IB_MMAP_CORE_CLOCK, PROT_READ), 0);
	EXPECT("the clock, to write",
	       map_at(MLX5_IB_MMAP_CORE_CLOCK, PROT_READ | PROT_WRITE), EINVAL);
	EXPECT("clock info", map_at(MLX5_IB_MMAP_CLOCK_INFO, PROT_READ), 0);
	for (unsigned int command = 0; command < 16; command++) {
		if (command == MLX5_IB_MMAP_CORE_CLOCK ||
		    command == MLX5_IB_MMAP_CLOCK_INFO)
			continue;
		EXPECT("another page", map_at(command, PROT_READ), EINVAL);
	}
	pair_close();
}

TEST(connections_multicast_and_migration)
{
	static const uint32_t commands[] = {
		RDMA_USER_CM_CMD_CONNECT, RDMA_USER_CM_CMD_ACCEPT,
		RDMA_USER_CM_CMD_REJECT, RDMA_USER_CM_CMD_DISCONNECT,
		RDMA_USER_CM_CMD_INIT_QP_ATTR, RDMA_USER_CM_CMD_GET_OPTION,
		RDMA_USER_CM_CMD_NOTIFY, RDMA_USER_CM_CMD_JOIN_IP_MCAST,
		RDMA_USER_CM_CMD_LEAVE_MCAST, RDMA_USER_CM_CMD_MIGRATE_ID,
		RDMA_USER_CM_CMD_JOIN_MCAST,
	};
	struct {
		struct rdma_ucm_cmd_hdr hdr;
		uint8_t in[256];
	} cmd = { .hdr = { .in = sizeof(cmd.in) } };
	int fd = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);

	CHECK(fd >= 0);
	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		cmd.hdr.cmd = commands[i];
		CHECK_EQ(write(fd, &cmd, sizeof(cmd)), -1);
		CHECK_EQ(errno, ENOSYS);
	}
	close(fd);
}
