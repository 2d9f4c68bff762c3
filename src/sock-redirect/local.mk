sock_redirect_sources = %D%/aio_calls.h %D%/aio_calls.c %D%/call.h %D%/call.c %D%/fd_calls.c %D%/load.c \
	%D%/mux_calls.c %D%/process_calls.c %D%/signal_calls.c %D%/stdio_calls.c \
	%D%/bpf_call.h %D%/bpf_call.c %D%/syscall_call.c %D%/syscall_mux.h %D%/syscall_mux.c %D%/table_calls.c

# A third variant counts the entries of each wrapper, for the shim tests.
noinst_LIBRARIES += %D%/libsock-redirect.a %D%/libsock-redirect-debug.a \
	%D%/libsock-redirect-test.a
%C%_libsock_redirect_a_SOURCES = $(sock_redirect_sources)
%C%_libsock_redirect_a_CFLAGS = $(release_pic)
%C%_libsock_redirect_debug_a_SOURCES = $(sock_redirect_sources)
%C%_libsock_redirect_debug_a_CFLAGS = $(debug_pic)
%C%_libsock_redirect_test_a_SOURCES = $(sock_redirect_sources)
%C%_libsock_redirect_test_a_CPPFLAGS = $(AM_CPPFLAGS) -DVMA_TEST
%C%_libsock_redirect_test_a_CFLAGS = $(debug_pic)

# What libvma.so exports: the names of calls.def and nothing else.
EXTRA_DIST += %D%/export.map.h
%D%/export.map: %D%/export.map.h src/os/calls.def
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(CC) -E -P -x c \
		-I$(top_srcdir)/src $(top_srcdir)/%D%/export.map.h >$@
%D%/export-test.map: %D%/export.map.h src/os/calls.def
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(CC) -E -P -x c -DVMA_TEST \
		-I$(top_srcdir)/src $(top_srcdir)/%D%/export.map.h >$@
CLEANFILES += %D%/export.map %D%/export-test.map
