# Tier 4: real programs, in network namespaces of their own; needs root. The long
# ones first.
system_scripts += %D%/asyncio.sh %D%/python.sh %D%/programs.sh
EXTRA_DIST += %D%/compare.sh %D%/python_tests.sh
