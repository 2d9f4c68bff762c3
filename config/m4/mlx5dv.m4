# The ConnectX back end: direct work queues.
AC_DEFUN([VMA_PROBE_MLX5], [
  VMA_PROBE_BACKEND([mlx5], [the back end for ConnectX cards], [libmlx5])
])
