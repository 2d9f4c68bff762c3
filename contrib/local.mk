lint_scripts += contrib/lint/contract.sh contrib/lint/exports.sh \
	contrib/lint/headers.sh contrib/lint/layers.sh contrib/lint/lists.sh \
	contrib/lint/manual.sh contrib/lint/rfcs.sh
EXTRA_DIST += contrib/lint/layers.txt contrib/check contrib/parts contrib/quickstart \
	contrib/setup.sh contrib/variant contrib/analyse \
	contrib/analyse.base contrib/verdict.sh contrib/rfc-table tests/support/skips.txt \
	contrib/packages.txt contrib/card-bench .ci/run

# What the static analysers say beyond what is known.
analyse:
	@srcdir='$(srcdir)' builddir='$(builddir)' $(srcdir)/contrib/analyse
.PHONY: analyse
