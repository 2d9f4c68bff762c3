/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Commands about the device and its port: what this card is. See cmd.h. */
#include "config.h"

#include <endian.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#include "card.h"
#include "cmd.h"
#include "cq.h"
#include "ctx.h"
#include "dm.h"
#include "qp.h"
#include "tree.h"

enum {
	N_COMP_VECTORS = 4,
	LOG_UAR_SIZE = 12,
	BF_REG_SIZE = 512,
	MAX_DYN_UARS = 1024,
	MAX_WQE_BYTES = 960,
	VENDOR_ID = 0x02c9,     /* of its IEEE numbers, not of PCI */
	PART_ID = 0x1017,       /* ConnectX-5 */
	QP_TAB_SIZE = 1 << 18,
	GID_TAB_LEN = 16,
	IB_MTU_256 = 1,
	IB_MTU_4096 = 5,
	IB_WIDTH_4X = 2,
	IB_SPEED_EDR = 32,
	IB_PHYS_DISABLED = 3,
	IB_PHYS_LINK_UP = 5,
	MAX_MODERATION_US = 4095,
};

static const uint64_t fw_ver = UINT64_C(16) << 32 | 28 << 16 | 2006;
static const uint32_t raw_packet_qpt = 1u << IBV_QPT_RAW_PACKET;

int cmd_get_context(const struct cmd *cmd)
{
	struct ib_uverbs_get_context_resp resp = {
		.num_comp_vectors = N_COMP_VECTORS,
	};
	struct mlx5_ib_alloc_ucontext_resp drv = {
		.qp_tab_size = QP_TAB_SIZE,
		.bf_reg_size = BF_REG_SIZE,
		.tot_bfregs = 0,   /* UAR pages are asked for one by one */
		.cache_line_size = CACHE_LINE,
		.max_sq_desc_sz = MAX_WQE_BYTES,
		.max_rq_desc_sz = 512,
		.max_send_wqebb = QP_MAX_SEND_BBS,
		.max_recv_wr = QP_MAX_RECV_WRS,
		.max_srq_recv_wr = 0,
		.num_ports = 1,
		.comp_mask =
			MLX5_IB_ALLOC_UCONTEXT_RESP_MASK_CORE_CLOCK_OFFSET,
		.response_length = sizeof(drv),
		.cqe_version = 1,
		.cmds_supp_uhw = MLX5_USER_CMDS_SUPP_UHW_QUERY_DEVICE |
				 MLX5_USER_CMDS_SUPP_UHW_CREATE_AH,
		.eth_min_inline = the_card->conf.min_inline ?
					  MLX5_USER_INLINE_MODE_L2 :
					  MLX5_USER_INLINE_MODE_NONE,
		.clock_info_versions = 1 << MLX5_IB_CLOCK_INFO_V1,
		.hca_core_clock_offset = 0,
		.log_uar_size = LOG_UAR_SIZE,
		.num_uars_per_page = 1,
		.num_dyn_bfregs = 0,
	};
	struct mlx5_ib_alloc_ucontext_req_v2 req;
	int fd, ret;

	cmd_take_drv(cmd, &req, sizeof(req));
	if (!(req.lib_caps & MLX5_LIB_CAP_DYN_UAR))
		return -EOPNOTSUPP;
	if (!req.max_cqe_version)
		return -EOPNOTSUPP;
	ret = ctx_open_async(cmd->ctx, &fd);
	if (ret)
		return ret;
	resp.async_fd = (uint32_t)fd;
	cmd_reply(cmd, &resp, sizeof(resp));
	cmd_reply_drv(cmd, &drv, sizeof(drv));
	return 0;
}

static struct ib_uverbs_query_device_resp describe_device(const struct dev *dev)
{
	uint64_t guid = htobe64(tree_guid(dev->netdev.mac));

	return (struct ib_uverbs_query_device_resp){
		.fw_ver = fw_ver,
		.node_guid = guid,
		.sys_image_guid = guid,
		.max_mr_size = UINT64_MAX,
		.page_size_cap = 0xfffff000,
		.vendor_id = VENDOR_ID,
		.vendor_part_id = PART_ID,
		.max_qp = QP_TAB_SIZE,
		.max_qp_wr = QP_MAX_SEND_BBS,
		.device_cap_flags = IBV_DEVICE_PORT_ACTIVE_EVENT |
				    IBV_DEVICE_SYS_IMAGE_GUID |
				    IBV_DEVICE_UD_IP_CSUM |
				    IBV_DEVICE_RAW_IP_CSUM |
				    IBV_DEVICE_MANAGED_FLOW_STEERING,
		.max_sge = QP_MAX_SGE,
		.max_sge_rd = QP_MAX_SGE,
		.max_cq = 1 << 16,
		.max_cqe = CQ_MAX_ENTRIES - 1,
		.max_mr = 1 << 20,
		.max_pd = 1 << 16,
		.max_raw_ethy_qp = QP_TAB_SIZE,
		.max_pkeys = 128,
		.local_ca_ack_delay = 16,
		.phys_port_cnt = 1,
	};
}

int cmd_query_device(const struct cmd *cmd)
{
	struct ib_uverbs_query_device_resp resp =
		describe_device(cmd->ctx->dev);

	cmd_reply(cmd, &resp, sizeof(resp));
	return 0;
}

int cmd_query_device_ex(const struct cmd *cmd)
{
	const struct ib_uverbs_ex_query_device *req = cmd->in;
	struct ib_uverbs_ex_query_device_resp resp = {
		.base = describe_device(cmd->ctx->dev),
		.response_length =
			(uint32_t)MIN(sizeof(resp), cmd->out_len),
		.timestamp_mask = INT64_MAX,
		.hca_core_clock = the_card->conf.clock_khz,
		.raw_packet_caps = IBV_RAW_PACKET_CAP_CVLAN_STRIPPING |
				   IBV_RAW_PACKET_CAP_IP_CSUM,
		.cq_moderation_caps = {
			.max_cq_moderation_count = UINT16_MAX,
			.max_cq_moderation_period = MAX_MODERATION_US,
		},
		.max_dm_size = DM_MAX_SIZE,
	};
	struct mlx5_ib_query_device_resp drv = {
		.response_length =
			(uint32_t)MIN(sizeof(drv), cmd->drv_out_len),
		.cqe_comp_caps = {
			.max_num = CQ_MAX_RUN,
			.supported_format = MLX5_IB_CQE_RES_FORMAT_HASH,
		},
		.tso_caps = {
			.max_tso = the_card->conf.has_tso ? QP_MAX_TSO : 0,
			.supported_qpts =
				the_card->conf.has_tso ? raw_packet_qpt : 0,
		},
		.packet_pacing_caps = {
			.qp_rate_limit_min = 1,
			.qp_rate_limit_max = 100u * 1000 * 1000,
			.supported_qpts = raw_packet_qpt,
			.cap_flags = MLX5_IB_PP_SUPPORT_BURST,
		},
	};

	if (!the_card->conf.min_inline)
		drv.mlx5_ib_support_multi_pkt_send_wqes = MLX5_IB_SUPPORT_EMPW;
	if (req->comp_mask)
		return -EINVAL;
	resp.device_cap_flags_ex = resp.base.device_cap_flags;
	cmd_reply(cmd, &resp, sizeof(resp));
	cmd_reply_drv(cmd, &drv, sizeof(drv));
	return 0;
}

/* The largest InfiniBand MTU that fits an Ethernet one, with its headers. */
static uint8_t ib_mtu(unsigned int mtu)
{
	enum { ROCE_HEADERS = 58 };
	uint8_t code = IB_MTU_256;

	while (code < IB_MTU_4096 && (256u << code) + ROCE_HEADERS <= mtu)
		code++;
	return code;
}

int cmd_query_port(const struct cmd *cmd)
{
	const struct ib_uverbs_query_port *req = cmd->in;
	const struct dev *dev = cmd->ctx->dev;
	struct ib_uverbs_query_port_resp resp = {
		.port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS,
		.max_msg_sz = 1 << 30,
		.gid_tbl_len = GID_TAB_LEN,
		.pkey_tbl_len = 1,
		.state = dev->is_port_up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN,
		.max_mtu = IB_MTU_4096,
		.active_mtu = ib_mtu(dev->netdev.mtu),
		.max_vl_num = 1,
		.active_width = IB_WIDTH_4X,
		.active_speed = IB_SPEED_EDR,
		.phys_state = dev->is_port_up ? IB_PHYS_LINK_UP :
						IB_PHYS_DISABLED,
		.link_layer = IBV_LINK_LAYER_ETHERNET,
	};

	if (req->port_num != 1)
		return -EINVAL;
	cmd_reply(cmd, &resp, sizeof(resp));
	return 0;
}
