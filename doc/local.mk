dist_man_MANS += %D%/libvma.7 %D%/libvma.conf.5 %D%/vma.7 %D%/vma_conf.8 \
	%D%/vma_stats.8
EXTRA_DIST += %D%/tcp-rfcs.in %D%/tcp-rfcs.txt %D%/card-packets.txt \
	%D%/tcp-calls.txt

# The sections of libvma(7) that are made from options.def, put where they are;
# contrib/lint/manual.sh finds out when this was forgotten.
update-man: tools/vma_conf/vma_conf
	{ sed '/^\.\\" BEGIN OPTIONS/q' $(srcdir)/doc/libvma.7 && \
	  tools/vma_conf/vma_conf --options=man && \
	  sed -n '/^\.\\" END OPTIONS/,$$p' $(srcdir)/doc/libvma.7; \
	} >libvma.7.new
	mv libvma.7.new $(srcdir)/doc/libvma.7

.PHONY: update-man
