# --enable-debug: libvma.so itself is built like libvma-debug.so (asserts, lock
# ranks, all log levels, no optimisation), for work on the library.
AC_DEFUN([VMA_PROBE_DEBUG], [
  AC_ARG_ENABLE([debug],
    [AS_HELP_STRING([--enable-debug], [build libvma.so with asserts, lock rank checks and -O0 (libvma-debug.so always has the first two)])],
    [], [enable_debug=no])
  AS_CASE([$enable_debug],
    [yes], [RELEASE_CFLAGS="-DVMA_DEBUG=1 -O0 -g"; vma_debug=yes],
    [no], [RELEASE_CFLAGS="-DNDEBUG"; vma_debug=no],
    [AC_MSG_ERROR([--enable-debug=$enable_debug: must be yes or no])])
  DEBUG_CFLAGS="-DVMA_DEBUG=1"
  AC_SUBST([RELEASE_CFLAGS])
  AC_SUBST([DEBUG_CFLAGS])
])
