# The AF_XDP back end, on libbpf; the BPF object needs clang at build time.
AC_DEFUN([VMA_PROBE_XDP], [
  VMA_PROBE_BACKEND([xdp], [the AF_XDP back end], [libbpf >= 1.0 libxdp >= 1.2])
])
