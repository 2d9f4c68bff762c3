/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What vma_conf --options prints. */
#ifndef VMA_CONF_OPTION_LIST_H
#define VMA_CONF_OPTION_LIST_H

/* All options for a reader at a terminal, on stdout. */
void option_list_print_plain(void);

/* The sections VARIABLES and PROFILES of libvma(7), on stdout. */
void option_list_print_man(void);

#endif
