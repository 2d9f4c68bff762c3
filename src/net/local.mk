net_sources = $(dev_headers) $(bond_sources) $(hand_over_sources) %D%/alignment.h %D%/alignment.c \
	%D%/confirm.h %D%/confirm.c %D%/demux.h %D%/demux.c %D%/dst.h %D%/dst.c \
	%D%/dst_lookup.h %D%/dst_lookup.c %D%/endpoint.h %D%/flow.h %D%/flow.c \
	%D%/give_back.h %D%/give_back.c %D%/hand_over.h %D%/hand_over.c %D%/net.h %D%/net.c \
	%D%/netif.h %D%/netif.c %D%/paced.h %D%/paced.c %D%/path_news.h %D%/path_news.c \
	%D%/rpf.h %D%/rpf.c %D%/spill.h %D%/spill.c %D%/stack.h %D%/stack.c \
	%D%/strays.h %D%/strays.c \
	%D%/stack_engine.c %D%/stack_lock.h %D%/stack_lock.c %D%/stack_unlock.c %D%/wait.h %D%/wait.c

noinst_LIBRARIES += %D%/libnet.a %D%/libnet-debug.a
%C%_libnet_a_SOURCES = $(net_sources)
%C%_libnet_a_CFLAGS = $(release_pic)
%C%_libnet_debug_a_SOURCES = $(net_sources)
%C%_libnet_debug_a_CFLAGS = $(debug_pic)
