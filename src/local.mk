include src/dev/local.mk
include src/net/local.mk
include src/fd/local.mk
include src/sock/local.mk
include src/iomux/local.mk
include src/core/local.mk
include src/sock-redirect/local.mk

# The library itself, and the same with asserts, lock ranks and all log levels.
release_folders = src/core/libcore.a src/iomux/libiomux.a \
	src/sock/libsock.a src/net/libnet.a src/nl/libnl.a src/tcp/libtcp.a src/ip/libip.a src/fd/libfd.a \
	src/event/libevent.a src/pkt/libpkt.a src/stats/libstats.a \
	src/conf/libconf.a src/os/libos.a src/base/libbase.a
debug_folders = src/core/libcore-debug.a src/iomux/libiomux-debug.a \
	src/sock/libsock-debug.a src/net/libnet-debug.a \
	src/nl/libnl-debug.a src/tcp/libtcp-debug.a src/ip/libip-debug.a src/fd/libfd-debug.a \
	src/event/libevent-debug.a src/pkt/libpkt-debug.a \
	src/stats/libstats-debug.a src/conf/libconf-debug.a \
	src/os/libos-debug.a src/base/libbase-debug.a
# clang leaves the sanitizers' run-time library to the program.
if !SANITIZED
defs_flags = -Wl,-z,defs
endif
export_flags = $(defs_flags) -Wl,-z,relro -Wl,-z,now -Wl,--as-needed \
	-Wl,--version-script=

libvma_parts = src/sock-redirect/libsock-redirect.a $(release_folders)
libvma_debug_parts = src/sock-redirect/libsock-redirect-debug.a $(debug_folders)

# Of archives the linker alone would take what is asked for. Libtool keeps the order of what it
# passes on, and of that alone.
release_whole = -Wl,--whole-archive $(libvma_parts:%=-Wl,%) -Wl,--no-whole-archive
debug_whole = -Wl,--whole-archive $(libvma_debug_parts:%=-Wl,%) -Wl,--no-whole-archive

lib_LTLIBRARIES += src/libvma.la
src_libvma_la_SOURCES =
src_libvma_la_LDFLAGS = $(AM_LDFLAGS) \
	-version-number $(VMA_MAJOR):$(VMA_MINOR):$(VMA_REVISION) \
	$(export_flags)src/sock-redirect/export.map $(release_whole)
EXTRA_src_libvma_la_DEPENDENCIES = src/sock-redirect/export.map $(libvma_parts)

# Not installed by make install, hence the -rpath that makes libtool link it.
noinst_LTLIBRARIES += src/libvma-debug.la
src_libvma_debug_la_SOURCES =
src_libvma_debug_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version \
	-rpath $(libdir) $(export_flags)src/sock-redirect/export.map $(debug_whole)
EXTRA_src_libvma_debug_la_DEPENDENCIES = src/sock-redirect/export.map $(libvma_debug_parts)
