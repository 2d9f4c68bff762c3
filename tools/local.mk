include tools/vma_conf/local.mk
