if HAVE_XDP
unit_programs += %D%/xdp/ring
%C%_xdp_ring_CPPFLAGS = $(AM_CPPFLAGS) $(XDP_CFLAGS)
%C%_xdp_ring_LDADD = src/pkt/libpkt-debug.la src/stats/libstats-debug.la \
	src/os/libos-debug.la src/base/libbase-debug.la tests/support/libtest.la
endif
