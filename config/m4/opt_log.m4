# --enable-opt-log: which log levels are compiled into libvma.so. The more are
# left out, the fewer tests on the data path.
AC_DEFUN([VMA_PROBE_OPT_LOG], [
  AC_ARG_ENABLE([opt-log],
    [AS_HELP_STRING([--enable-opt-log=none|medium|high], [compile out log levels: none of them; those above DEBUG (medium, the default); those above DETAILS (high)])],
    [], [enable_opt_log=medium])
  AS_CASE([$enable_opt_log],
    [none|no], [vma_log_max=8; vma_log_max_name=ALL],
    [medium|yes], [vma_log_max=5; vma_log_max_name=DEBUG],
    [high], [vma_log_max=4; vma_log_max_name=DETAILS],
    [AC_MSG_ERROR([--enable-opt-log=$enable_opt_log: must be none, medium or high])])
  AS_IF([test "$vma_debug" = yes], [vma_log_max=8; vma_log_max_name=ALL])
  AC_DEFINE_UNQUOTED([VMA_LOG_LEVEL_MAX], [$vma_log_max], [Highest log level compiled into a release build.])
])
