/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The functions of a patch plan, alone: what a report needs of it.
 *
 * Read with pread, not mapped: a cache may be cleared while it is being read.
 */
#ifndef KYMO_ANALYSIS_PLAN_TABLE_H
#define KYMO_ANALYSIS_PLAN_TABLE_H

#include <stdint.h>

#include "kymo/plan.h"

struct plan_functions {
	struct plan_function *list; /* malloc'ed */
	uint32_t count;
	uint8_t build_id[32];
	uint32_t build_id_size;
};

/* `path`: a plan file, or an ELF file with a section .kymo.plan. 0; -ENOMEM; another negative
 * errno: there is none, or it makes no sense. */
int plan_functions_read(const char *path, struct plan_functions *ret);
void plan_functions_deinit(struct plan_functions *functions);

#endif
