# Tier 1: one program for each source file, linking that folder and those below
# it. No root, no network, milliseconds.
include tests/unit/base/local.mk
include tests/unit/conf/local.mk
include tests/unit/core/local.mk
include tests/unit/dev/local.mk
include tests/unit/event/local.mk
include tests/unit/fd/local.mk
include tests/unit/iomux/local.mk
include tests/unit/ip/local.mk
include tests/unit/nl/local.mk
include tests/unit/pkt/local.mk
include tests/unit/net/local.mk
include tests/unit/os/local.mk
include tests/unit/sock/local.mk
include tests/unit/stats/local.mk
include tests/unit/tcp/local.mk

unit_programs += %D%/support/pcap
%C%_support_pcap_LDADD = tests/support/libtest.a src/base/libbase-debug.a
unit_scripts += %D%/support/verdict.sh %D%/support/bounded.sh %D%/support/setup.sh
