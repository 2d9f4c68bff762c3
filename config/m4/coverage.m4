# --enable-coverage: count which lines run; `make coverage` makes the report.
AC_DEFUN([VMA_PROBE_COVERAGE], [
  AC_ARG_ENABLE([coverage],
    [AS_HELP_STRING([--enable-coverage], [count executed lines, for make coverage])],
    [], [enable_coverage=no])
  AS_CASE([$enable_coverage],
    [yes], [COV_CFLAGS="--coverage -fprofile-update=atomic -O0 -g"],
    [no], [COV_CFLAGS=],
    [AC_MSG_ERROR([--enable-coverage=$enable_coverage: must be yes or no])])
  AC_SUBST([COV_CFLAGS])
  AM_CONDITIONAL([COVERAGE], [test "$enable_coverage" = yes])
])
