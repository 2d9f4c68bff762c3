/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Goes through the preprocessor to become the linker's version script. */
{
global:
#define CALL_NAME(name) name;
#include "os/calls.def"
#ifdef VMA_TEST
	vma_test_*;
#endif
local:
	*;
};
