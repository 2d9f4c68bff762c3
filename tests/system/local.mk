# Tier 4: real programs, in network namespaces of their own; needs root.
system_scripts += %D%/programs.sh %D%/python.sh
EXTRA_DIST += %D%/compare.sh
