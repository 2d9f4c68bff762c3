EXTRA_DIST += tests/contract/shim.tsv
