sbin_PROGRAMS += %D%/vma_conf
%C%_vma_conf_SOURCES = %D%/vma_conf.c %D%/option_list.c %D%/option_list.h
%C%_vma_conf_CFLAGS = $(release_cflags)
%C%_vma_conf_LDADD = src/conf/libconf.a src/base/libbase.a
