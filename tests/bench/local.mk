# Benchmarks report; nothing here fails on a time, and nothing runs in make check.
EXTRA_PROGRAMS += %D%/shim
%C%_shim_CFLAGS = $(release_cflags)
CLEANFILES += bench.json $(EXTRA_PROGRAMS)

bench: %D%/shim src/libvma.la
	%D%/shim src/.libs/libvma.so bench.json
	@size src/.libs/libvma.so
.PHONY: bench
