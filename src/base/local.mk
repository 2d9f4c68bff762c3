base_sources = %D%/bpf_program.h %D%/btf.h %D%/btf.c %D%/checksum.h %D%/checksum.c %D%/clock.h %D%/compiler.h \
	%D%/hash.h %D%/hash.c %D%/hash_tab.h %D%/hash_tab.c \
	%D%/ipaddr.h %D%/ipaddr.c %D%/linux_compat.h %D%/list.h \
	%D%/lock.h %D%/lock.c %D%/lock_rank.h \
	%D%/log.h %D%/log.c %D%/mem_pool.h %D%/mem_pool.c %D%/pages.h %D%/pages.c %D%/rand.h %D%/rand.c \
	%D%/syscall_raw.h %D%/text.h %D%/text.c \
	%D%/tick_clock.h %D%/tick_clock.c

noinst_LIBRARIES += %D%/libbase.a %D%/libbase-debug.a
%C%_libbase_a_SOURCES = $(base_sources)
%C%_libbase_a_CFLAGS = $(release_pic)
%C%_libbase_debug_a_SOURCES = $(base_sources)
%C%_libbase_debug_a_CFLAGS = $(debug_pic)
