# The netlink module: links, addresses, routes and neighbours.
AC_DEFUN([VMA_PROBE_LIBNL], [
  VMA_PROBE_BACKEND([nl], [the netlink module], [libnl-3.0 libnl-route-3.0])
])
