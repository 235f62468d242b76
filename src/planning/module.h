/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * One ELF file that is instrumented: its plan, which functions are chosen, and both as files in the
 * session directory, which stays readable when the cache or the program is gone.
 */
#ifndef KYMO_PLANNING_MODULE_H
#define KYMO_PLANNING_MODULE_H

#include <sys/types.h>

#include "binary/plan/plan.h"
#include "binary/selection/selection.h"

/* What all modules of a session have in common. */
struct instrumentation_setup {
	const struct selection_rules *rules;
	struct plan_options plan;
	const char *cache;             /* directory of plans, or NULL */
	const char *debug_search_path; /* of separate debug files */
	unsigned signature_part_flags; /* enum selection_signature_part_flag */
	const char *directory;         /* <session>/instrumentation, or NULL: nothing is stored */
};

struct planned_module {
	char *path; /* as the process sees it */
	dev_t device;
	ino_t inode;
	struct timespec changed; /* of the file, when it was looked at */
	bool is_program;
	enum selection_verdict verdict; /* of the module as a whole */
	int status;                     /* 0, or why there is no plan */
	struct problem problem;         /* status not 0 */
	struct plan plan;
	struct selection_symbol_names *names;
	struct selection_source_line_table
		*sources; /* NULL: not asked for, or no debug information */
	struct selection selection;
	char plan_file_path[4096], modes_file_path[4096]; /* empty: not stored */
};

/* Fills *ret, also when it fails: then ret->status and ret->problem say why. `path` can be opened
 * here, `shown` is its path in the process. Cost: that of plan_load_or_build(), and names: 200 ns a
 * symbol.
 */
void planned_module_load_from_path(const struct instrumentation_setup *setup, const char *path,
				   const char *shown, bool is_program, struct planned_module *ret);
void planned_module_deinit(struct planned_module *module);

#endif
