# VMA_PROBE_BACKEND(name, what it is, pkg-config modules): --with-name=auto|yes|no.
# auto builds the module when its libraries are there, yes insists.
AC_DEFUN([VMA_PROBE_BACKEND], [
  AC_ARG_WITH([$1],
    [AS_HELP_STRING([--with-$1=auto|yes|no], [$2 (default auto: when its libraries are found)])],
    [], [with_$1=auto])
  AS_CASE([$with_$1], [auto|yes|no], [],
    [AC_MSG_ERROR([--with-$1=$with_$1: must be auto, yes or no])])
  vma_have_$1=no
  AS_IF([test "$with_$1" != no],
    [PKG_CHECK_MODULES(m4_toupper([$1]), [$3], [vma_have_$1=yes],
      [AS_IF([test "$with_$1" = yes],
        [AC_MSG_ERROR([--with-$1=yes, but $3 was not found; install it or use --with-$1=no])])
      vma_have_$1="no ($3 not found)"])],
    [vma_have_$1="no (switched off)"])
  AM_CONDITIONAL([HAVE_]m4_toupper([$1]), [test "$vma_have_$1" = yes])
])
