# The warnings every file is clean under, with gcc and with clang; CI adds
# -Werror through CFLAGS. clang also checks the lock annotations.
AC_DEFUN([VMA_PROBE_WARNINGS], [
  WARN_CFLAGS="-Wall -Wextra -Wshadow -Wmissing-prototypes -Wstrict-prototypes"
  for vma_flag in -Wthread-safety -Wvla; do
    AC_MSG_CHECKING([whether $CC accepts $vma_flag])
    vma_saved=$CFLAGS
    CFLAGS="$CFLAGS -Werror $vma_flag"
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([], [])],
      [WARN_CFLAGS="$WARN_CFLAGS $vma_flag"; AC_MSG_RESULT([yes])],
      [AC_MSG_RESULT([no])])
    CFLAGS=$vma_saved
  done
  AC_SUBST([WARN_CFLAGS])
])
