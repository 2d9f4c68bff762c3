# Which build this is: PRJ_RELEASE from the environment (0: a development
# snapshot), the commit when built from git, the date from SOURCE_DATE_EPOCH
# when a packager wants the same bytes twice.
AC_DEFUN([VMA_PROBE_RELEASE], [
  AC_ARG_VAR([PRJ_RELEASE], [release number of a packaged build (default 0)])
  : ${PRJ_RELEASE:=0}
  AS_CASE([$PRJ_RELEASE], [*@<:@!0-9@:>@*],
    [AC_MSG_ERROR([PRJ_RELEASE=$PRJ_RELEASE: must be a whole number])])
  GIT_COMMIT=$(git -C "$srcdir" rev-parse --short=12 HEAD 2>/dev/null)
  AS_IF([test -n "$GIT_COMMIT" && test -n "$(git -C "$srcdir" status --porcelain --untracked-files=no 2>/dev/null)"],
    [GIT_COMMIT="$GIT_COMMIT-dirty"])
  AS_IF([test -n "$SOURCE_DATE_EPOCH"],
    [vma_built=$(LC_ALL=C date -u -d "@$SOURCE_DATE_EPOCH" '+%b %d %Y %H:%M:%S')],
    [vma_built=$(LC_ALL=C date '+%b %d %Y %H:%M:%S')])
  AC_SUBST([GIT_COMMIT])
  AC_DEFINE_UNQUOTED([VMA_RELEASE], [$PRJ_RELEASE], [Release number; 0 is a development snapshot.])
  AC_DEFINE_UNQUOTED([VMA_COMMIT], ["$GIT_COMMIT"], [Commit built from, or empty.])
  AC_DEFINE_UNQUOTED([VMA_BUILT], ["$vma_built"], [Date and time of the build.])
])
