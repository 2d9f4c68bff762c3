# The contract is a header; each back end is a folder.
dev_headers = %D%/ring.h

# In memory, for tests alone.
fake_sources = $(dev_headers) %D%/fake/fake.h %D%/fake/fake.c
check_LTLIBRARIES += %D%/fake/libfake-debug.la
%C%_fake_libfake_debug_la_SOURCES = $(fake_sources)
%C%_fake_libfake_debug_la_CFLAGS = $(debug_cflags)
