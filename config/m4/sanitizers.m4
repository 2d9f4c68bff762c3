# --enable-sanitizers: the whole tree, tests included, under the compiler's
# sanitizers. The preloaded library needs the run-time library before it; the
# tests see to that themselves (tests/support/preload.sh).
AC_DEFUN([VMA_PROBE_SANITIZERS], [
  AC_ARG_ENABLE([sanitizers],
    [AS_HELP_STRING([--enable-sanitizers=LIST], [build with -fsanitize: address,undefined or thread])],
    [], [enable_sanitizers=no])
  SAN_LDFLAGS=
  AS_CASE([$enable_sanitizers],
    [no], [SAN_CFLAGS=; vma_sanitizers=none],
    [yes], [SAN_CFLAGS="-fsanitize=address,undefined"],
    [address|undefined|thread|address,undefined|undefined,address],
    [SAN_CFLAGS="-fsanitize=$enable_sanitizers"],
    [AC_MSG_ERROR([--enable-sanitizers=$enable_sanitizers: must be address, undefined, address,undefined or thread])])
  AS_IF([test -n "$SAN_CFLAGS"], [
    vma_sanitizers=${SAN_CFLAGS#-fsanitize=}
    SAN_CFLAGS="$SAN_CFLAGS -fno-omit-frame-pointer -g"
    # clang would put the run-time library into each program, out of reach of
    # what else is preloaded there; gcc shares it anyway.
    vma_runtime=`$CC -print-file-name=libclang_rt.asan-$host_cpu.so`
    AS_CASE([$vma_runtime], [/*],
      [SAN_LDFLAGS="-shared-libasan -Wl,-rpath,`dirname $vma_runtime`"])
    vma_saved=$CFLAGS
    CFLAGS="$CFLAGS $SAN_CFLAGS $SAN_LDFLAGS"
    AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])], [],
      [AC_MSG_ERROR([$CC cannot link with $SAN_CFLAGS])])
    CFLAGS=$vma_saved])
  AC_SUBST([SAN_CFLAGS])
  AC_SUBST([SAN_LDFLAGS])
  AC_SUBST([SANITIZERS], [$vma_sanitizers])
  AM_CONDITIONAL([SANITIZED], [test "$vma_sanitizers" != none])
])

dnl The fuzz targets with clang's fuzzer in place of their replay: `make fuzz`.
AC_DEFUN([VMA_PROBE_FUZZING], [
  AC_ARG_ENABLE([fuzzing],
    [AS_HELP_STRING([--enable-fuzzing], [make fuzzers of the fuzz targets, by clang, with the sanitizers of --enable-sanitizers])],
    [], [enable_fuzzing=no])
  FUZZ_LDFLAGS=
  AS_IF([test "$enable_fuzzing" != no], [
    FUZZ_LDFLAGS=-fsanitize=fuzzer
    vma_saved=$CFLAGS
    CFLAGS="$CFLAGS $SAN_CFLAGS $FUZZ_LDFLAGS"
    AC_LINK_IFELSE(
      [AC_LANG_SOURCE([int LLVMFuzzerTestOneInput(void) { return 0; }])], [],
      [AC_MSG_ERROR([$CC cannot link with -fsanitize=fuzzer])])
    CFLAGS=$vma_saved
    # what a fuzzer does not need: one run-time library for all that is preloaded
    SAN_LDFLAGS=
    SAN_CFLAGS="$SAN_CFLAGS -fsanitize=fuzzer-no-link -fno-sanitize-recover=all"])
  AC_SUBST([FUZZ_LDFLAGS])
  AM_CONDITIONAL([FUZZING], [test "$enable_fuzzing" != no])
])
