# The portable RDMA back end.
AC_DEFUN([VMA_PROBE_VERBS], [
  VMA_PROBE_BACKEND([verbs], [the back end for RDMA cards], [libibverbs])
])
