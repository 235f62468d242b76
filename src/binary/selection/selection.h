/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Which functions are instrumented: the rules of the user, in their order, with the reason for each
 * function that is left out.
 *
 * The order is that of enum selection_verdict: the first rule that speaks against a function
 * counts. Three things accept a function at once, whatever comes behind: that it is the program's
 * main function or holds calls through pointers (where asked for), and that it is included by name,
 * by module, or by what it calls; these stand between the restrictions and linkage.
 */
#ifndef KYMO_BINARY_SELECTION_SELECTION_H
#define KYMO_BINARY_SELECTION_SELECTION_H

#include "binary/plan/plan.h"
#include "binary/selection/names.h"
#include "binary/selection/sources.h"
#include "common/problem.h"

enum selection_verdict {
	SELECTION_VERDICT_CHOSEN,
	SELECTION_VERDICT_NOT_PATCHABLE,    /* plan_reason says why */
	SELECTION_VERDICT_INTERNAL_LIBRARY, /* of a library that kymo or the C library needs to work
					     */
	SELECTION_VERDICT_SYSTEM_MODULE,   /* default: of the C library, the loader, the C++ runtime
					    */
	SELECTION_VERDICT_RUNTIME_ROUTINE, /* default: start-up code, allocator internals and the
					      like */
	SELECTION_VERDICT_TINY,            /* less than two instructions */
	SELECTION_VERDICT_EXCLUDED,        /* -E, -ME */
	SELECTION_VERDICT_OVERLAPPING,
	SELECTION_VERDICT_OUTSIDE_RESTRICTION, /* -R, -MR given and neither matches */
	SELECTION_VERDICT_NOT_ON_LIST,         /* a list was given and it is not on it */
	SELECTION_VERDICT_OTHER_LINKAGE,
	SELECTION_VERDICT_OTHER_VISIBILITY,
	SELECTION_VERDICT_TOO_FEW_BYTES,
	SELECTION_VERDICT_TOO_FEW_INSTRUCTIONS,
	SELECTION_VERDICT_EXCLUDED_INSTRUCTION,
	SELECTION_VERDICT_COUNT
};

/* What a signature shows beside the name; bits. */
enum selection_signature_part_flag {
	SELECTION_SIGNATURE_ARGUMENTS = 1,
	SELECTION_SIGNATURE_FILE = 2,
	SELECTION_SIGNATURE_LINE = 4
};

enum selection_rule_kind {
	SELECTION_RULE_INCLUDE,
	SELECTION_RULE_EXCLUDE,
	SELECTION_RULE_RESTRICT,
	SELECTION_RULE_CALLER_INCLUDE,
	SELECTION_RULE_MODULE_INCLUDE,
	SELECTION_RULE_MODULE_EXCLUDE,
	SELECTION_RULE_MODULE_RESTRICT,
	SELECTION_RULE_INTERNAL_INCLUDE,
	SELECTION_RULE_MODULE_INTERNAL_INCLUDE,
	SELECTION_RULE_INSTRUCTION_EXCLUDE,
	SELECTION_RULE_COUNT_CALLS_ONLY,
	SELECTION_RULE_RECORD_ARGUMENTS,
	SELECTION_RULE_KIND_COUNT
};

/* What was asked for. Texts are borrowed; "" or NULL: not given. */
struct selection_request {
	const char *rule_expressions[SELECTION_RULE_KIND_COUNT];
	const char *sources[SELECTION_RULE_KIND_COUNT]; /* where they are from, for messages */
	uint64_t minimum_instructions, minimum_range_bytes;
	uint64_t minimum_instructions_with_loops, minimum_range_bytes_with_loops;
	uint32_t linkage_bits,
		visibility_bits; /* bits of enum selection_linkage, _visibility; 0: all */
	unsigned labels;         /* enum selection_signature_part_flag */
	const char *main_function_name;
	const char *internal_libraries_added, *internal_libraries_removed; /* lists of libraries */
	const char *list_file_paths;                                       /* separated by colons */
	bool selects_dynamic_callsites, allows_overlapping, is_count_only;
};

struct selection_rules;

/* Compiles and reads what was asked for. -EINVAL for a bad expression, errors of list files. */
int selection_rules_create(const struct selection_request *request, struct selection_rules **ret,
			   struct problem *problem);
void selection_rules_destroy(struct selection_rules *rules);
/* Functions on the lists that none of the modules so far has; *ret_count: on the lists; *ret_first:
 * one that is missing, without its module, or NULL. */
size_t selection_rules_count_missing(const struct selection_rules *rules, const char **ret_first,
				     size_t *ret_count);

/* The module that is selected from. */
struct selection_module {
	const char *path; /* as the process sees it */
	const struct elf_file *file;
	const struct plan *plan;
	bool is_program; /* the executable itself */
	const struct selection_source_line_table
		*sources; /* NULL: signatures show no files and lines */
};

/* A byte per function of the plan each. */
struct selection {
	size_t count;
	uint8_t *modes;         /* enum plan_mode */
	uint8_t *verdicts;      /* enum selection_verdict */
	size_t function_count;  /* that are functions, not places in them or parts */
	size_t patchable_count; /* of these */
	size_t chosen_count;
	size_t verdict_counts[SELECTION_VERDICT_COUNT];
};

/* `names` may be NULL: nothing has a name. Cost: 20 ns a function without expressions on functions,
 * 2 us a named one with them. */
int selection_choose_functions(const struct selection_rules *rules,
			       const struct selection_module *module,
			       const struct selection_symbol_names *names, struct selection *ret,
			       struct problem *problem);
void selection_deinit(struct selection *selection);

/* Is the whole module left alone, whatever its functions are? Then it needs no plan. */
enum selection_verdict selection_judge_module(const struct selection_rules *rules,
					      const char *path);

/* A word for lists, and a sentence. */
const char *selection_verdict_to_word(enum selection_verdict verdict);
const char *selection_verdict_to_text(enum selection_verdict verdict);

#endif
