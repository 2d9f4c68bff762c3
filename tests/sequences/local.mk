# Tier 3, too: random programs on libc and under libvma-test.so.
check_PROGRAMS += %D%/sequences
%C%_sequences_SOURCES = \
	%D%/sequence.h %D%/ops.def %D%/draw.c %D%/play.h %D%/play.c %D%/process.c %D%/sequences.c
%C%_sequences_LDADD = src/base/libbase-debug.a
shim_scripts += %D%/sequences.sh %D%/sequences_tcp.sh %D%/sequences_processes.sh \
	%D%/sequences_tcp_processes.sh
