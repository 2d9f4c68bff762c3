include src/dev/local.mk
include src/net/local.mk
include src/fd/local.mk
include src/sock/local.mk
include src/iomux/local.mk
include src/core/local.mk
include src/sock-redirect/local.mk

# The library itself, and the same with asserts, lock ranks and all log levels.
release_folders = src/core/libcore.la src/iomux/libiomux.la \
	src/sock/libsock.la src/net/libnet.la src/nl/libnl.la src/tcp/libtcp.la src/ip/libip.la src/fd/libfd.la \
	src/event/libevent.la src/pkt/libpkt.la src/stats/libstats.la \
	src/conf/libconf.la src/os/libos.la src/base/libbase.la
debug_folders = src/core/libcore-debug.la src/iomux/libiomux-debug.la \
	src/sock/libsock-debug.la src/net/libnet-debug.la \
	src/nl/libnl-debug.la src/tcp/libtcp-debug.la src/ip/libip-debug.la src/fd/libfd-debug.la \
	src/event/libevent-debug.la src/pkt/libpkt-debug.la \
	src/stats/libstats-debug.la src/conf/libconf-debug.la \
	src/os/libos-debug.la src/base/libbase-debug.la
# clang leaves the sanitizers' run-time library to the program.
if !SANITIZED
defs_flags = -Wl,-z,defs
endif
export_flags = $(defs_flags) -Wl,-z,relro -Wl,-z,now -Wl,--as-needed \
	-Wl,--version-script=

lib_LTLIBRARIES += src/libvma.la
src_libvma_la_SOURCES =
src_libvma_la_LIBADD = src/sock-redirect/libsock-redirect.la \
	$(release_folders)
src_libvma_la_LDFLAGS = $(AM_LDFLAGS) \
	-version-number $(VMA_MAJOR):$(VMA_MINOR):$(VMA_REVISION) \
	$(export_flags)src/sock-redirect/export.map
EXTRA_src_libvma_la_DEPENDENCIES = src/sock-redirect/export.map

# Not installed by make install, hence the -rpath that makes libtool link it.
noinst_LTLIBRARIES += src/libvma-debug.la
src_libvma_debug_la_SOURCES =
src_libvma_debug_la_LIBADD = src/sock-redirect/libsock-redirect-debug.la \
	$(debug_folders)
src_libvma_debug_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version \
	-rpath $(libdir) $(export_flags)src/sock-redirect/export.map
EXTRA_src_libvma_debug_la_DEPENDENCIES = src/sock-redirect/export.map
