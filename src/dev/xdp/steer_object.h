/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The compiled steering program, an ELF object (made from steer.bpf.c). */
#ifndef DEV_XDP_STEER_OBJECT_H
#define DEV_XDP_STEER_OBJECT_H

#include <stddef.h>
#include <stdint.h>

extern const uint8_t steer_object[];
extern const size_t steer_object_size;

#endif
