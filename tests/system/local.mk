# Tier 4: real programs, in network namespaces of their own; needs root. The long
# ones first.
system_scripts += %D%/asyncio.sh %D%/python.sh %D%/programs.sh
EXTRA_DIST += %D%/compare.sh %D%/python_tests.sh

nl_system_libs = tests/support/libtest.la src/nl/libnl-debug.la \
	src/os/libos-debug.la src/base/libbase-debug.la
netns_sources = %D%/netns.h %D%/netns.c

system_programs += %D%/net_view_routes_test
system_scripts += %D%/net_view_routes.sh
%C%_net_view_routes_test_SOURCES = %D%/net_view_routes_test.c $(netns_sources)
%C%_net_view_routes_test_LDADD = $(nl_system_libs)

system_programs += %D%/net_view_test
system_scripts += %D%/net_view.sh
%C%_net_view_test_SOURCES = %D%/net_view_test.c $(netns_sources)
%C%_net_view_test_LDADD = $(nl_system_libs)
