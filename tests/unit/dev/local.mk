unit_programs += %D%/impair
%C%_impair_LDADD = src/dev/fake/libimpair-debug.a src/base/libbase-debug.a \
	tests/support/libtest.a
unit_programs += %D%/fake
%C%_fake_SOURCES = %D%/fake.c src/dev/ring_fill.c
%C%_fake_LDADD = src/dev/fake/libfake-debug.a src/pkt/libpkt-debug.a \
	src/stats/libstats-debug.a src/os/libos-debug.a \
	src/base/libbase-debug.a tests/support/libtest.a
# Bonds of devices in memory.
unit_programs += %D%/bond %D%/bond_hash %D%/bond_ring
bond_lab_sources = %D%/bond_lab.h %D%/bond_lab.c src/dev/bond/bond.c \
	src/dev/bond/bond_ring.c src/dev/ring_fill.c
bond_lab_libs = src/dev/fake/libfake-debug.a src/pkt/libpkt-debug.a \
	src/stats/libstats-debug.a src/os/libos-debug.a \
	src/base/libbase-debug.a tests/support/libtest.a
%C%_bond_SOURCES = %D%/bond.c $(bond_lab_sources)
%C%_bond_LDADD = $(bond_lab_libs)
%C%_bond_hash_SOURCES = %D%/bond_hash.c $(bond_lab_sources)
%C%_bond_hash_LDADD = $(bond_lab_libs)
%C%_bond_ring_SOURCES = %D%/bond_ring.c $(bond_lab_sources)
%C%_bond_ring_LDADD = $(bond_lab_libs)
unit_programs += %D%/ring_tx
%C%_ring_tx_SOURCES = %D%/ring_tx.c %D%/run.h src/dev/ring_tx.c
%C%_ring_tx_LDADD = src/pkt/libpkt-debug.a src/stats/libstats-debug.a \
	src/os/libos-debug.a src/base/libbase-debug.a tests/support/libtest.a
if HAVE_XDP
unit_programs += %D%/xdp/ring %D%/xdp/ring_tx
xdp_played = %D%/xdp/played.h src/dev/ring_fill.c src/dev/ring_tx.c
xdp_played_libs = src/pkt/libpkt-debug.a src/stats/libstats-debug.a \
	src/os/libos-debug.a src/base/libbase-debug.a tests/support/libtest.a
%C%_xdp_ring_SOURCES = %D%/xdp/ring.c $(xdp_played)
%C%_xdp_ring_CPPFLAGS = $(AM_CPPFLAGS) $(XDP_CFLAGS)
%C%_xdp_ring_LDADD = $(xdp_played_libs)
%C%_xdp_ring_tx_SOURCES = %D%/xdp/ring_tx.c $(xdp_played)
%C%_xdp_ring_tx_CPPFLAGS = $(AM_CPPFLAGS) $(XDP_CFLAGS)
%C%_xdp_ring_tx_LDADD = $(xdp_played_libs)
unit_programs += %D%/xdp/steer
nodist_%C%_xdp_steer_SOURCES = src/dev/xdp/steer_object.c
%C%_xdp_steer_SOURCES = %D%/xdp/steer.c src/dev/xdp/kernel_btf.c
%C%_xdp_steer_CPPFLAGS = $(AM_CPPFLAGS) $(XDP_CFLAGS)
%C%_xdp_steer_LDADD = src/os/libos-debug.a src/base/libbase-debug.a \
	tests/support/libtest.a $(XDP_LIBS)
unit_programs += %D%/xdp/ethtool
%C%_xdp_ethtool_SOURCES = %D%/xdp/ethtool.c src/dev/xdp/ethtool.c
%C%_xdp_ethtool_LDADD = src/os/libos-debug.a src/base/libbase-debug.a \
	tests/support/libtest.a
unit_programs += %D%/xdp/queues
%C%_xdp_queues_SOURCES = %D%/xdp/queues.c src/dev/xdp/queues.c
%C%_xdp_queues_LDADD = src/base/libbase-debug.a tests/support/libtest.a
unit_programs += %D%/xdp/dev
%C%_xdp_dev_SOURCES = %D%/xdp/dev.c src/dev/ring_fill.c
%C%_xdp_dev_CPPFLAGS = $(AM_CPPFLAGS) $(XDP_CFLAGS)
%C%_xdp_dev_LDADD = src/fd/libfd-debug.a src/pkt/libpkt-debug.a \
	src/stats/libstats-debug.a src/os/libos-debug.a src/base/libbase-debug.a \
	tests/support/libtest.a
unit_programs += %D%/xdp/owner
%C%_xdp_owner_SOURCES = %D%/xdp/owner.c
%C%_xdp_owner_CPPFLAGS = $(AM_CPPFLAGS) $(XDP_CFLAGS)
%C%_xdp_owner_LDADD = src/os/libos-debug.a src/base/libbase-debug.a \
	tests/support/libtest.a
unit_programs += %D%/xdp/tags
%C%_xdp_tags_SOURCES = %D%/xdp/tags.c src/dev/xdp/tags.c
%C%_xdp_tags_LDADD = src/os/libos-debug.a src/base/libbase-debug.a \
	tests/support/libtest.a
unit_programs += %D%/xdp/kernel_btf
%C%_xdp_kernel_btf_SOURCES = %D%/xdp/kernel_btf.c src/dev/xdp/kernel_btf.c
%C%_xdp_kernel_btf_LDADD = src/base/libbase-debug.a tests/support/libtest.a
unit_programs += %D%/xdp/program
nodist_%C%_xdp_program_SOURCES = src/dev/xdp/steer_object.c
%C%_xdp_program_SOURCES = %D%/xdp/program.c src/dev/xdp/kernel_btf.c \
	src/dev/xdp/steer_load.c src/dev/xdp/xsk.c src/net/give_back.c
%C%_xdp_program_CPPFLAGS = $(AM_CPPFLAGS) $(XDP_CFLAGS)
%C%_xdp_program_LDADD = src/fd/libfd-debug.a src/os/libos-debug.a src/base/libbase-debug.a \
	tests/support/libtest.a $(XDP_LIBS)
endif
if HAVE_VERBS
unit_programs += %D%/rdma/find %D%/rdma/rule
%C%_rdma_find_SOURCES = %D%/rdma/find.c src/dev/rdma/find.c
%C%_rdma_find_LDADD = src/os/libos-debug.a src/base/libbase-debug.a \
	tests/support/libtest.a
%C%_rdma_rule_SOURCES = %D%/rdma/rule.c src/dev/rdma/rule.c
%C%_rdma_rule_CPPFLAGS = $(AM_CPPFLAGS) $(VERBS_CFLAGS)
%C%_rdma_rule_LDADD = src/base/libbase-debug.a tests/support/libtest.a
unit_programs += %D%/rdma/aim
%C%_rdma_aim_SOURCES = %D%/rdma/aim.c src/dev/rdma/aim.c
%C%_rdma_aim_LDADD = src/base/libbase-debug.a tests/support/libtest.a
unit_programs += %D%/rdma/card_clock
%C%_rdma_card_clock_SOURCES = %D%/rdma/card_clock.c src/dev/rdma/card_clock.c
%C%_rdma_card_clock_LDADD = src/base/libbase-debug.a tests/support/libtest.a
unit_programs += %D%/rdma/vlan
%C%_rdma_vlan_CPPFLAGS = $(AM_CPPFLAGS) $(VERBS_CFLAGS)
%C%_rdma_vlan_LDADD = src/pkt/libpkt-debug.a src/base/libbase-debug.a \
	tests/support/libtest.a
unit_programs += %D%/rdma/queues
%C%_rdma_queues_CPPFLAGS = $(AM_CPPFLAGS) $(VERBS_CFLAGS)
%C%_rdma_queues_LDADD = tests/support/libtest.a src/fd/libfd-debug.a \
	src/stats/libstats-debug.a src/os/libos-debug.a \
	src/base/libbase-debug.a $(VERBS_LIBS)
unit_programs += %D%/rdma/verbs_ring
%C%_rdma_verbs_ring_SOURCES = %D%/rdma/verbs_ring.c \
	src/dev/rdma/followed.c src/dev/ring_fill.c src/dev/ring_tx.c
%C%_rdma_verbs_ring_CPPFLAGS = $(AM_CPPFLAGS) $(VERBS_CFLAGS)
%C%_rdma_verbs_ring_LDADD = src/pkt/libpkt-debug.a src/stats/libstats-debug.a \
	src/os/libos-debug.a src/base/libbase-debug.a tests/support/libtest.a
endif
if HAVE_MLX5
unit_programs += %D%/rdma/cqe %D%/rdma/wqe %D%/rdma/mlx5_ring %D%/rdma/stamps
unit_programs += %D%/rdma/dev_mem %D%/rdma/mlx5_followed
%C%_rdma_dev_mem_CPPFLAGS = $(AM_CPPFLAGS) $(MLX5_CFLAGS) -DRDMA_HAS_MLX5
%C%_rdma_dev_mem_LDADD = src/base/libbase-debug.a tests/support/libtest.a
%C%_rdma_stamps_SOURCES = %D%/rdma/stamps.c src/dev/rdma/stamps.c \
	src/dev/rdma/card_clock.c
%C%_rdma_stamps_CPPFLAGS = $(AM_CPPFLAGS) $(MLX5_CFLAGS) -DRDMA_HAS_MLX5
%C%_rdma_stamps_LDADD = src/base/libbase-debug.a tests/support/libtest.a
mlx5_card = %D%/rdma/mlx5_card.h src/dev/rdma/mlx5_tx.c src/dev/rdma/dev_mem.c \
	src/dev/rdma/followed.c src/dev/ring_fill.c src/dev/ring_tx.c
%C%_rdma_mlx5_followed_SOURCES = %D%/rdma/mlx5_followed.c $(mlx5_card)
%C%_rdma_mlx5_followed_CPPFLAGS = $(AM_CPPFLAGS) $(MLX5_CFLAGS)
%C%_rdma_mlx5_followed_LDADD = src/pkt/libpkt-debug.a src/stats/libstats-debug.a \
	src/os/libos-debug.a src/base/libbase-debug.a tests/support/libtest.a
%C%_rdma_mlx5_ring_SOURCES = %D%/rdma/mlx5_ring.c %D%/run.h $(mlx5_card)
%C%_rdma_mlx5_ring_CPPFLAGS = $(AM_CPPFLAGS) $(MLX5_CFLAGS)
%C%_rdma_mlx5_ring_LDADD = src/pkt/libpkt-debug.a src/stats/libstats-debug.a \
	src/os/libos-debug.a src/base/libbase-debug.a tests/support/libtest.a
%C%_rdma_cqe_CPPFLAGS = $(AM_CPPFLAGS) $(MLX5_CFLAGS)
%C%_rdma_cqe_LDADD = src/base/libbase-debug.a tests/support/libtest.a
%C%_rdma_wqe_CPPFLAGS = $(AM_CPPFLAGS) $(MLX5_CFLAGS)
%C%_rdma_wqe_LDADD = src/base/libbase-debug.a tests/support/libtest.a
endif
