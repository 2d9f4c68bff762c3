# The module that reads the kernel's tables, on libnl. Without it nothing is
# accelerated, so that its absence is worth a warning.
AC_DEFUN([VMA_PROBE_NL], [
  VMA_PROBE_BACKEND([nl], [the netlink module], [libnl-3.0 >= 3.7 libnl-route-3.0 >= 3.7])
  AS_IF([test "$vma_have_nl" != yes],
    [AC_MSG_WARN([no netlink module: $vma_have_nl. All sockets will stay with the kernel.])])
])
