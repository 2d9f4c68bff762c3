include tools/vma_conf/local.mk
include tools/vma_stats/local.mk
include tools/vma_way_back/local.mk
