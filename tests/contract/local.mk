EXTRA_DIST += tests/contract/shim.tsv
EXTRA_DIST += tests/contract/options.tsv tests/contract/rules.tsv
EXTRA_DIST += tests/contract/tcp.tsv tests/contract/tcp_sockets.tsv
EXTRA_DIST += tests/contract/udp.tsv
EXTRA_DIST += tests/contract/net.tsv
EXTRA_DIST += tests/contract/stats.tsv tests/contract/way_back.tsv
EXTRA_DIST += tests/contract/card.tsv
