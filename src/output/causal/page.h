/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The page of causal profiles before and after its data; made of web/causal.* by web/embed.py while
 * building.
 */
#ifndef KYMO_OUTPUT_CAUSAL_PAGE_H
#define KYMO_OUTPUT_CAUSAL_PAGE_H

#include <stddef.h>

extern const unsigned char causal_page_head[], causal_page_tail[];
extern const size_t causal_page_head_size, causal_page_tail_size;

#endif
