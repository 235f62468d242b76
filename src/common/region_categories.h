/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Categories of regions: what ENABLE_CATEGORIES and DISABLE_CATEGORIES take, and what the spool and
 * the outputs call them. Programs may make categories of their own through the user API.
 */
#ifndef KYMO_COMMON_REGION_CATEGORIES_H
#define KYMO_COMMON_REGION_CATEGORIES_H

enum region_category {
	REGION_INSTRUMENTED, /* instrumented functions */
	REGION_USER,
	REGION_PTHREAD,
	REGION_PROCESS,
	REGION_SLEEP,
	REGION_IO,
	REGION_LOADER,
	REGION_MEMORY,
	REGION_WRAP, /* functions that the user named */
	REGION_MPI,
	REGION_NCCL,
	REGION_OMPT,
	REGION_KOKKOS,
	REGION_PYTHON,
	REGION_MARKER, /* roctx, NVTX */
	REGION_CATEGORY_COUNT
};

struct region_category_description {
	const char *name, *help;
};

extern const struct region_category_description region_categories[REGION_CATEGORY_COUNT];

#endif
