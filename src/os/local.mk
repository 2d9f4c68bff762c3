os_sources = %D%/calls.def %D%/clean_up.h %D%/drop_program.h %D%/event_fd.h %D%/event_fd.c %D%/file.h %D%/file.c %D%/filter.h %D%/filter.c %D%/keeper_abi.h \
	%D%/inside.h %D%/kernel_types.h %D%/kernel_types.c %D%/log_out.h %D%/log_out.c %D%/module.h %D%/netns.h %D%/own_thread.h \
	%D%/own_thread.c %D%/pidns.h %D%/pidns.c %D%/real.h %D%/real.c %D%/rights.h %D%/services.h %D%/services.def \
	%D%/signals.h %D%/signals.c %D%/thread.h

noinst_LIBRARIES += %D%/libos.a %D%/libos-debug.a
%C%_libos_a_SOURCES = $(os_sources)
%C%_libos_a_CFLAGS = $(release_pic)
%C%_libos_debug_a_SOURCES = $(os_sources)
%C%_libos_debug_a_CFLAGS = $(debug_pic)
