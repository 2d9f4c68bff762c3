nl_test_libs = tests/support/libtest.a src/nl/libnl-debug.a \
	src/os/libos-debug.a src/base/libbase-debug.a

unit_programs += %D%/addr_tab %D%/bpf_hooks %D%/firewall %D%/link_tab %D%/neigh_tab \
	%D%/net_feed %D%/net_view %D%/netlink %D%/path_mtu_tab %D%/policy_tab %D%/route_tab
%C%_addr_tab_LDADD = $(nl_test_libs)
%C%_bpf_hooks_LDADD = $(nl_test_libs)
%C%_firewall_LDADD = $(nl_test_libs)
%C%_link_tab_LDADD = $(nl_test_libs)
%C%_neigh_tab_LDADD = $(nl_test_libs)
%C%_net_feed_LDADD = $(nl_test_libs)
%C%_net_view_LDADD = $(nl_test_libs)
%C%_netlink_LDADD = $(nl_test_libs)
%C%_path_mtu_tab_LDADD = $(nl_test_libs)
%C%_policy_tab_LDADD = $(nl_test_libs)
%C%_route_tab_LDADD = $(nl_test_libs)
noinst_HEADERS += %D%/build.h %D%/libnl/read.h

# The module's sources, linked: what opens it is not tested here.
if HAVE_NL
libnl_test_libs = src/nl/libnl/libconn-debug.a $(nl_test_libs) $(NL_LIBS)
fd_services = tests/support/fd_services.c

unit_programs += %D%/libnl/conn %D%/libnl/firewall %D%/libnl/form \
	%D%/libnl/links %D%/libnl/rows
%C%_libnl_conn_CPPFLAGS = $(libnl_cppflags)
%C%_libnl_conn_LDADD = $(libnl_test_libs)
%C%_libnl_firewall_SOURCES = %D%/libnl/firewall.c $(fd_services)
%C%_libnl_firewall_CPPFLAGS = $(libnl_cppflags)
%C%_libnl_firewall_LDADD = $(libnl_test_libs)
%C%_libnl_form_SOURCES = %D%/libnl/form.c $(fd_services)
%C%_libnl_form_CPPFLAGS = $(libnl_cppflags)
%C%_libnl_form_LDADD = $(libnl_test_libs)
%C%_libnl_links_SOURCES = %D%/libnl/links.c $(fd_services)
%C%_libnl_links_CPPFLAGS = $(libnl_cppflags)
%C%_libnl_links_LDADD = $(libnl_test_libs)
%C%_libnl_rows_SOURCES = %D%/libnl/rows.c $(fd_services)
%C%_libnl_rows_CPPFLAGS = $(libnl_cppflags)
%C%_libnl_rows_LDADD = $(libnl_test_libs)
endif
