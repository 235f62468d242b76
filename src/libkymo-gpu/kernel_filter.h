/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Which launches of which kernels are counted: KYMO_KERNEL_INCLUDE, KYMO_KERNEL_EXCLUDE,
 * KYMO_KERNEL_RANGE. Kernels of communication libraries wait for kernels of other devices, or for
 * each other, so they are left out unless KYMO_KERNEL_INCLUDE names them.
 */
#ifndef KYMO_LIBKYMO_GPU_KERNEL_FILTER_H
#define KYMO_LIBKYMO_GPU_KERNEL_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kernel_filter;

/* NULL: no memory, or no regular expressions (said on standard error). Texts may be NULL or "". */
struct kernel_filter *kernel_filter_create(const char *include, const char *exclude,
					   const char *range);
void kernel_filter_destroy(struct kernel_filter *filter);
/* By name alone; what a name says does not change. */
bool kernel_filter_takes_name(const struct kernel_filter *filter, const char *name);
/* `launch`: of this kernel, from 1. */
bool kernel_filter_takes_launch(const struct kernel_filter *filter, uint64_t launch);

/* The name in the source of what C++ compilers make of it ("_ZN1a1bILi4EEvPf": "a::b"), without
 * parameters; other names as they are. */
void kernel_filter_plain_name(const char *name, char *plain, size_t size);

#endif
