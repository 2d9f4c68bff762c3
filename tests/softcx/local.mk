# The software ConnectX: libsoftcx.so, which runs after the library under test,
# and the programs that show what it does. `make softcx` builds all of it.
if HAVE_MLX5
softcx_library = %D%/libsoftcx.la
check_LTLIBRARIES += $(softcx_library)
softcx_programs += %D%/card_test %D%/steer_test %D%/offload_test \
	%D%/fault_test %D%/refused_test %D%/rules_test %D%/exchange \
	%D%/bystander %D%/cm_test %D%/env_test %D%/umem_test \
	%D%/idle_test %D%/wqe_test
unit_programs += %D%/clock_test

endif

softcx: $(softcx_library) $(softcx_programs)

%C%_libsoftcx_la_SOURCES = \
	%D%/api.c \
	%D%/card.c %D%/card.h \
	%D%/chan.c %D%/chan.h \
	%D%/check.c %D%/check.h \
	%D%/cmd.c %D%/cmd.h \
	%D%/cmd_cq.c \
	%D%/cmd_ioctl.c \
	%D%/cmd_qp.c \
	%D%/cmd_query.c \
	%D%/conf.c %D%/conf.h \
	%D%/counters.def \
	%D%/cq.c %D%/cq.h \
	%D%/ctx.c %D%/ctx.h \
	%D%/dm.c %D%/dm.h \
	%D%/dma.h \
	%D%/files.c %D%/files.h \
	%D%/filter.c %D%/filter.h \
	%D%/frame.c %D%/frame.h \
	%D%/guard.c %D%/guard.h \
	%D%/hca_clock.c %D%/hca_clock.h \
	%D%/idtab.c %D%/idtab.h \
	%D%/mr.c %D%/mr.h \
	%D%/neigh.c %D%/neigh.h \
	%D%/netdev.c %D%/netdev.h \
	%D%/obj.c %D%/obj.h \
	%D%/preload.c \
	%D%/qp.c %D%/qp.h \
	%D%/rdma_cm.c %D%/rdma_cm.h \
	%D%/rq.c \
	%D%/sight.c %D%/sight.h \
	%D%/softcx.h \
	%D%/sq.c \
	%D%/steer.c %D%/steer.h \
	%D%/sys.h \
	%D%/tree.c %D%/tree.h \
	%D%/uar.c %D%/uar.h \
	%D%/umem.c %D%/umem.h \
	%D%/uverbs.c %D%/uverbs.h \
	%D%/wire.c %D%/wire.h tests/support/pcap.h tests/support/pcap.c
# Flags of its own, for objects of its own beside those of programs.
%C%_libsoftcx_la_CFLAGS = $(AM_CFLAGS)
# -rpath makes it a shared object, which nobody installs.
%C%_libsoftcx_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared \
	-rpath /nowhere $(defs_flags) -pthread $(softcx_parts:%=-Wl,%)
EXTRA_%C%_libsoftcx_la_DEPENDENCIES = $(softcx_parts)
softcx_parts = src/dev/fake/libimpair-debug.a src/base/libbase-debug.a

EXTRA_DIST += %D%/pyverbs_run.py %D%/lab.sh %D%/README contrib/softcx-run \
	tests/contract/softcx.tsv
softcx_scripts += %D%/card.sh %D%/steer.sh %D%/offload.sh %D%/fault.sh \
	%D%/refused.sh %D%/rules.sh %D%/exchange.sh \
	%D%/programs.sh %D%/cm.sh %D%/env.sh %D%/run.sh \
	%D%/umem.sh %D%/idle.sh %D%/wqe.sh %D%/pyverbs.sh
softcx_test_libs = tests/support/libtest.a src/base/libbase-debug.a

softcx_pair = %D%/pair.c %D%/pair.h %D%/rig.c %D%/rig.h
%C%_card_test_SOURCES = %D%/card_test.c $(softcx_pair)
%C%_card_test_LDADD = $(softcx_test_libs) -libverbs -lmlx5
%C%_steer_test_SOURCES = %D%/steer_test.c $(softcx_pair)
%C%_steer_test_LDADD = $(softcx_test_libs) -libverbs -lmlx5
%C%_offload_test_SOURCES = %D%/offload_test.c $(softcx_pair)
%C%_offload_test_LDADD = $(softcx_test_libs) -libverbs -lmlx5
%C%_fault_test_SOURCES = %D%/fault_test.c $(softcx_pair)
%C%_fault_test_LDADD = $(softcx_test_libs) -libverbs -lmlx5
%C%_refused_test_SOURCES = %D%/refused_test.c $(softcx_pair)
%C%_refused_test_LDADD = $(softcx_test_libs) -libverbs -lmlx5
%C%_rules_test_SOURCES = %D%/rules_test.c %D%/rig.c %D%/rig.h \
	%D%/direct.c %D%/direct.h
%C%_rules_test_LDADD = $(softcx_test_libs) -libverbs -lmlx5
%C%_env_test_SOURCES = %D%/env_test.c $(softcx_pair)
%C%_env_test_LDADD = $(softcx_test_libs) -libverbs -lmlx5
%C%_umem_test_SOURCES = %D%/umem_test.c $(softcx_pair)
%C%_umem_test_LDADD = $(softcx_test_libs) -libverbs -lmlx5
%C%_idle_test_SOURCES = %D%/idle_test.c $(softcx_pair)
%C%_idle_test_LDADD = $(softcx_test_libs) -libverbs -lmlx5
%C%_wqe_test_SOURCES = %D%/wqe_test.c $(softcx_pair) \
	%D%/direct.c %D%/direct.h
%C%_wqe_test_LDADD = $(softcx_test_libs) -libverbs -lmlx5
%C%_exchange_SOURCES = %D%/exchange.c %D%/rig.c %D%/rig.h \
	%D%/direct.c %D%/direct.h
%C%_exchange_LDADD = src/base/libbase-debug.a -libverbs -lmlx5
%C%_cm_test_LDADD = $(softcx_test_libs) -lrdmacm -libverbs
%C%_clock_test_SOURCES = %D%/clock_test.c %D%/hca_clock.c %D%/hca_clock.h
%C%_clock_test_LDADD = $(softcx_test_libs)

# Ten million frames by each client: a campaign, not a check.
check-softcx-long: softcx
	$(campaign) $(MAKE) check TESTS='%D%/exchange.sh' EXCHANGE_FRAMES=10000000

# The same tests, with a tenth of the frames, under the sanitizers.
check-softcx-asan:
	@EXCHANGE_FRAMES=100000 $(variant) '$(softcx_scripts)' CC='$(CC)' \
		--enable-sanitizers=address,undefined CFLAGS='-O1 -g -Werror'
check-softcx-tsan:
	@EXCHANGE_FRAMES=100000 $(variant) '$(softcx_scripts)' CC=gcc \
		--enable-sanitizers=thread CFLAGS='-O1 -g -Werror'
