# Tables that need no netlink, and the contract of the module that has it.
nl_sources = %D%/addr_tab.h %D%/addr_tab.c %D%/bpf_hooks.h %D%/bpf_hooks.c \
	%D%/firewall.h %D%/firewall.c \
	%D%/link_tab.h %D%/link_tab.c %D%/neigh_tab.h %D%/neigh_tab.c \
	%D%/net_feed.h %D%/net_feed.c %D%/net_flow.h %D%/net_row.h \
	%D%/net_view.h %D%/net_view.c %D%/netlink.h %D%/netlink.c \
	%D%/path_mtu_tab.h %D%/path_mtu_tab.c \
	%D%/policy_tab.h %D%/policy_tab.c %D%/route_tab.h %D%/route_tab.c \
	%D%/rpf_tab.h %D%/rpf_tab.c

noinst_LIBRARIES += %D%/libnl.a %D%/libnl-debug.a
%C%_libnl_a_SOURCES = $(nl_sources)
%C%_libnl_a_CFLAGS = $(release_pic)
%C%_libnl_debug_a_SOURCES = $(nl_sources)
%C%_libnl_debug_a_CFLAGS = $(debug_pic)

# The module, on libnl-3 and libnl-route-3.
libnl_sources = %D%/libnl/conn.h %D%/libnl/conn.c %D%/libnl/firewall.c \
	%D%/libnl/form.h %D%/libnl/form.c %D%/libnl/rows.h %D%/libnl/rows.c \
	%D%/libnl/rows_link.c %D%/libnl/rows_policy.c %D%/libnl/rows_route.c
libnl_module_sources = $(libnl_sources) %D%/libnl/module.c src/os/services.c
libnl_cppflags = $(AM_CPPFLAGS) $(NL_CFLAGS)
libnl_ldflags = $(AM_LDFLAGS) -module -avoid-version $(defs_flags) \
	-Wl,-z,relro -Wl,-z,now -Wl,--as-needed

if HAVE_NL
lib_LTLIBRARIES += %D%/libnl/libvma-nl.la
%C%_libnl_libvma_nl_la_SOURCES = $(libnl_module_sources)
%C%_libnl_libvma_nl_la_CPPFLAGS = $(libnl_cppflags)
%C%_libnl_libvma_nl_la_CFLAGS = $(release_cflags)
%C%_libnl_libvma_nl_la_LDFLAGS = $(libnl_ldflags)
%C%_libnl_libvma_nl_la_LIBADD = $(NL_LIBS)

# Not installed, like libvma-debug.so.
noinst_LTLIBRARIES += %D%/libnl/libvma-nl-debug.la
%C%_libnl_libvma_nl_debug_la_SOURCES = $(libnl_module_sources)
%C%_libnl_libvma_nl_debug_la_CPPFLAGS = $(libnl_cppflags)
%C%_libnl_libvma_nl_debug_la_CFLAGS = $(debug_cflags)
%C%_libnl_libvma_nl_debug_la_LDFLAGS = $(libnl_ldflags) -rpath $(libdir)
%C%_libnl_libvma_nl_debug_la_LIBADD = $(NL_LIBS)

# For tests, without the module's side of the services.
check_LIBRARIES += %D%/libnl/libconn-debug.a
%C%_libnl_libconn_debug_a_SOURCES = $(libnl_sources)
%C%_libnl_libconn_debug_a_CPPFLAGS = $(libnl_cppflags)
%C%_libnl_libconn_debug_a_CFLAGS = $(debug_pic)
endif
