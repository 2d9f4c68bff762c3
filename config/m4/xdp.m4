# The AF_XDP back end, on libbpf; the steering program is compiled with clang.
AC_DEFUN([VMA_PROBE_XDP], [
  AC_PATH_PROGS([CLANG], [clang clang-19 clang-16 clang-14], [])
  AC_PATH_PROGS([LLVM_STRIP], [llvm-strip llvm-strip-19 llvm-strip-16 llvm-strip-14], [])
  VMA_PROBE_BACKEND([xdp], [the AF_XDP back end], [libbpf >= 1.0])
  AS_IF([test "$vma_have_xdp" = yes && { test -z "$CLANG" || test -z "$LLVM_STRIP"; }],
    [AS_IF([test "$with_xdp" = yes],
      [AC_MSG_ERROR([--with-xdp=yes, but clang and llvm-strip are needed to compile the steering program])])
     vma_have_xdp="no (clang or llvm-strip not found)"])
  AM_CONDITIONAL([HAVE_XDP], [test "$vma_have_xdp" = yes])
])
