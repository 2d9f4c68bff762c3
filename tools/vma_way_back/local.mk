# The library finds it beside itself, so it is installed there.
waybackdir = $(libdir)
wayback_PROGRAMS = %D%/vma_way_back
%C%_vma_way_back_SOURCES = %D%/vma_way_back.c
%C%_vma_way_back_CFLAGS = $(release_cflags)
