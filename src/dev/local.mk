# The contract is a header; each back end is a folder.
dev_headers = %D%/backend.h %D%/pass_program.h %D%/ring.h %D%/dev_services.h \
	%D%/dev_services.def

# What takes rights for the listeners of the network.
hand_over_sources = %D%/hand_over_load.h %D%/hand_over_load.c

# Several devices as one, which the network makes of what a back end drives.
bond_sources = %D%/ring_fill.c %D%/bond/bond.h %D%/bond/bond.c %D%/bond/bond_hash.h \
	%D%/bond/bond_priv.h %D%/bond/bond_ring.c

# In memory, for tests alone, and its bad links, which other simulations use, too. The ops
# that it leaves out are those of the network's ring_fill.c.
impair_sources = %D%/fake/impair.h %D%/fake/impair.c
fake_sources = $(dev_headers) $(impair_sources) %D%/fake/fake.h %D%/fake/fake.c
check_LIBRARIES += %D%/fake/libimpair-debug.a %D%/fake/libfake-debug.a
%C%_fake_libimpair_debug_a_SOURCES = $(impair_sources)
%C%_fake_libimpair_debug_a_CFLAGS = $(debug_pic)
%C%_fake_libfake_debug_a_SOURCES = $(fake_sources)
%C%_fake_libfake_debug_a_CFLAGS = $(debug_pic)

# What each module has a copy of; of the sums, too, since the data path calls them
# without a pointer.
module_sources = $(dev_headers) src/base/checksum.c src/os/services.c \
	%D%/dev_services.c %D%/module.c %D%/ring_fill.c %D%/ring_tx.h %D%/ring_tx.c

# AF_XDP, a module: built with the libraries' and the debug build's locks.
if HAVE_XDP
%D%/xdp/steer.bpf.o: %D%/xdp/steer.bpf.c %D%/xdp/steer.h
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(CLANG) -target bpf -mcpu=v2 -O2 -g \
		-I$(top_srcdir)/src -I/usr/include/$(host_cpu)-linux-gnu \
		-c $(top_srcdir)/%D%/xdp/steer.bpf.c -o $@ && \
		$(LLVM_STRIP) -g $@
# As an array, so that it travels in the module.
%D%/xdp/steer_object.c: %D%/xdp/steer.bpf.o
	$(AM_V_GEN){ echo '#include "dev/xdp/steer_object.h"' && \
		echo 'const uint8_t steer_object[] = {' && \
		od -An -v -tx1 %D%/xdp/steer.bpf.o | \
		sed 's/ \(..\)/0x\1,/g' && echo '};' && \
		echo 'const size_t steer_object_size = sizeof(steer_object);'; } >$@
CLEANFILES += %D%/xdp/steer.bpf.o %D%/xdp/steer_object.c

xdp_sources = \
	$(module_sources) %D%/xdp/dev.c \
	%D%/xdp/ethtool.h %D%/xdp/ethtool.c %D%/xdp/queues.h %D%/xdp/queues.c \
	src/base/btf.c src/os/kernel_types.c %D%/xdp/kernel_btf.h %D%/xdp/kernel_btf.c \
	%D%/xdp/owner.h %D%/xdp/owner.c %D%/xdp/ring.c %D%/xdp/steer.h \
	%D%/xdp/steer.c %D%/xdp/steer_load.h %D%/xdp/steer_load.c \
	%D%/xdp/steer_object.h %D%/xdp/tags.h %D%/xdp/tags.c %D%/xdp/xdp.h \
	%D%/xdp/xdp_priv.h %D%/xdp/xsk.h %D%/xdp/xsk.c
xdp_cppflags = $(AM_CPPFLAGS) $(XDP_CFLAGS) -DBACKEND_NAME='"xdp"'
xdp_ldflags = $(AM_LDFLAGS) -module -avoid-version -Wl,-z,defs \
	-Wl,-z,relro -Wl,-z,now -Wl,--as-needed

lib_LTLIBRARIES += %D%/xdp/libvma-xdp.la
%C%_xdp_libvma_xdp_la_SOURCES = $(xdp_sources)
nodist_%C%_xdp_libvma_xdp_la_SOURCES = %D%/xdp/steer_object.c
%C%_xdp_libvma_xdp_la_CPPFLAGS = $(xdp_cppflags)
%C%_xdp_libvma_xdp_la_CFLAGS = $(release_cflags)
%C%_xdp_libvma_xdp_la_LDFLAGS = $(xdp_ldflags)
%C%_xdp_libvma_xdp_la_LIBADD = $(XDP_LIBS)

# Not installed, like libvma-debug.so.
noinst_LTLIBRARIES += %D%/xdp/libvma-xdp-debug.la
%C%_xdp_libvma_xdp_debug_la_SOURCES = $(xdp_sources)
nodist_%C%_xdp_libvma_xdp_debug_la_SOURCES = %D%/xdp/steer_object.c
%C%_xdp_libvma_xdp_debug_la_CPPFLAGS = $(xdp_cppflags)
%C%_xdp_libvma_xdp_debug_la_CFLAGS = $(debug_cflags)
%C%_xdp_libvma_xdp_debug_la_LDFLAGS = $(xdp_ldflags) -rpath $(libdir)
%C%_xdp_libvma_xdp_debug_la_LIBADD = $(XDP_LIBS)
endif
EXTRA_DIST += %D%/xdp/steer.bpf.c

# RDMA devices, a module, too: by libibverbs, and ConnectX by its own queues.
if HAVE_VERBS
rdma_sources = \
	$(module_sources) %D%/rdma/aim.h %D%/rdma/aim.c \
	%D%/rdma/card_clock.h %D%/rdma/card_clock.c %D%/rdma/dev.c %D%/rdma/find.h \
	%D%/rdma/find.c %D%/rdma/followed.c %D%/rdma/queues.c %D%/rdma/rdma.h \
	%D%/rdma/rdma_priv.h %D%/rdma/rule.h %D%/rdma/rule.c \
	%D%/rdma/stamps.h %D%/rdma/stamps.c %D%/rdma/verbs_ring.c %D%/rdma/vlan.c
rdma_cppflags = $(AM_CPPFLAGS) $(VERBS_CFLAGS) -DBACKEND_NAME='"rdma"'
rdma_libs = $(VERBS_LIBS)
if HAVE_MLX5
rdma_sources += %D%/rdma/cqe.h %D%/rdma/dev_mem.h %D%/rdma/dev_mem.c \
	%D%/rdma/mlx5_priv.h %D%/rdma/mlx5_ring.c \
	%D%/rdma/mlx5_tx.c %D%/rdma/mmio.h %D%/rdma/wqe.h
rdma_cppflags += $(MLX5_CFLAGS) -DRDMA_HAS_MLX5
rdma_libs += $(MLX5_LIBS)
endif
rdma_ldflags = $(AM_LDFLAGS) -module -avoid-version -Wl,-z,defs \
	-Wl,-z,relro -Wl,-z,now -Wl,--as-needed

lib_LTLIBRARIES += %D%/rdma/libvma-rdma.la
%C%_rdma_libvma_rdma_la_SOURCES = $(rdma_sources)
%C%_rdma_libvma_rdma_la_CPPFLAGS = $(rdma_cppflags)
%C%_rdma_libvma_rdma_la_CFLAGS = $(release_cflags)
%C%_rdma_libvma_rdma_la_LDFLAGS = $(rdma_ldflags)
%C%_rdma_libvma_rdma_la_LIBADD = $(rdma_libs)

noinst_LTLIBRARIES += %D%/rdma/libvma-rdma-debug.la
%C%_rdma_libvma_rdma_debug_la_SOURCES = $(rdma_sources)
%C%_rdma_libvma_rdma_debug_la_CPPFLAGS = $(rdma_cppflags)
%C%_rdma_libvma_rdma_debug_la_CFLAGS = $(debug_cflags)
%C%_rdma_libvma_rdma_debug_la_LDFLAGS = $(rdma_ldflags) -rpath $(libdir)
%C%_rdma_libvma_rdma_debug_la_LIBADD = $(rdma_libs)
endif
