# The library finds it beside itself, so it is installed there.
waybackdir = $(libdir)
wayback_PROGRAMS = %D%/vma_way_back
%C%_vma_way_back_SOURCES = %D%/vma_way_back.c %D%/steering.h %D%/neighbour.h \
	%D%/neighbour.c src/base/btf.c src/os/kernel_types.c \
	src/dev/hand_over_load.h src/dev/hand_over_load.c
%C%_vma_way_back_CFLAGS = $(release_cflags)
if HAVE_XDP
%C%_vma_way_back_SOURCES += %D%/steering.c src/dev/xdp/kernel_btf.c src/dev/xdp/steer_load.c
nodist_%C%_vma_way_back_SOURCES = src/dev/xdp/steer_object.c
%C%_vma_way_back_CPPFLAGS = $(AM_CPPFLAGS) $(XDP_CFLAGS)
%C%_vma_way_back_LDADD = $(XDP_LIBS)
else
%C%_vma_way_back_SOURCES += %D%/no_steering.c
endif
EXTRA_DIST += %D%/steering.c %D%/no_steering.c
