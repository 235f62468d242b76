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
#ifndef KYMO_BINARY_SELECTION_H
#define KYMO_BINARY_SELECTION_H

#include "binary/plan.h"
#include "binary/selection_names.h"
#include "binary/selection_sources.h"
#include "common/problem.h"

enum selection_verdict {
	SELECTION_CHOSEN,
	SELECTION_NOT_PATCHABLE, /* plan_reason says why */
	SELECTION_INTERNAL,      /* of a library that kymo or the C library needs to work */
	SELECTION_SYSTEM_MODULE, /* default: of the C library, the loader, the C++ runtime */
	SELECTION_ROUTINE,       /* default: start-up code, allocator internals and the like */
	SELECTION_TINY,          /* less than two instructions */
	SELECTION_EXCLUDED,      /* -E, -ME */
	SELECTION_OVERLAPPING,
	SELECTION_NOT_RESTRICTED, /* -R, -MR given and neither matches */
	SELECTION_NOT_INCLUDED,   /* a list was given and it is not on it */
	SELECTION_LINKAGE,
	SELECTION_VISIBILITY,
	SELECTION_ADDRESS_RANGE,
	SELECTION_INSTRUCTIONS,
	SELECTION_INSTRUCTION_TEXT,
	SELECTION_VERDICTS
};

/* What a signature shows beside the name; bits. */
enum selection_label {
	SELECTION_LABEL_ARGUMENTS = 1,
	SELECTION_LABEL_FILE = 2,
	SELECTION_LABEL_LINE = 4
};

enum selection_expression {
	SELECTION_INCLUDE,
	SELECTION_EXCLUDE,
	SELECTION_RESTRICT,
	SELECTION_CALLER_INCLUDE,
	SELECTION_MODULE_INCLUDE,
	SELECTION_MODULE_EXCLUDE,
	SELECTION_MODULE_RESTRICT,
	SELECTION_INTERNAL_INCLUDE,
	SELECTION_MODULE_INTERNAL_INCLUDE,
	SELECTION_INSTRUCTION_EXCLUDE,
	SELECTION_COUNT_ONLY,
	SELECTION_ARGUMENTS,
	SELECTION_EXPRESSIONS
};

/* What was asked for. Texts are borrowed; "" or NULL: not given. */
struct selection_request {
	const char *expressions[SELECTION_EXPRESSIONS];
	const char *sources[SELECTION_EXPRESSIONS]; /* where they are from, for messages */
	uint64_t minimum_instructions, minimum_range;
	uint64_t minimum_instructions_loop, minimum_range_loop;
	uint32_t linkages, visibilities; /* bits of enum selection_linkage, _visibility; 0: all */
	unsigned labels;                 /* enum selection_label */
	const char *main_function;
	const char *internal_append, *internal_remove; /* lists of libraries */
	const char *list_files;                        /* separated by colons */
	bool dynamic_callsites, allow_overlapping, count_all;
};

struct selection_rules;

/* Compiles and reads what was asked for. -EINVAL for a bad expression, errors of list files. */
int selection_rules_create(const struct selection_request *request, struct selection_rules **ret,
			   struct problem *problem);
void selection_rules_destroy(struct selection_rules *rules);
/* Of the functions on the lists, how many none of the modules so far has; *ret_count: on the lists;
 * *ret_first: one that is missing, without its module, or NULL. */
size_t selection_rules_misses(const struct selection_rules *rules, const char **ret_first,
			      size_t *ret_count);

/* The module that is selected from. */
struct selection_module {
	const char *path; /* as the process sees it */
	const struct elf_file *file;
	const struct plan *plan;
	bool is_program;                         /* the executable itself */
	const struct selection_sources *sources; /* NULL: signatures show no files and lines */
};

/* A byte per function of the plan each. */
struct selection {
	size_t count;
	uint8_t *modes;    /* enum plan_mode */
	uint8_t *verdicts; /* enum selection_verdict */
	size_t functions;  /* that are functions, not places in them or parts */
	size_t patchable;  /* of these */
	size_t chosen;
	size_t verdict_counts[SELECTION_VERDICTS];
};

/* `names` may be NULL: nothing has a name. Cost: 20 ns a function without expressions on functions,
 * 2 us a named one with them. */
int selection_make(const struct selection_rules *rules, const struct selection_module *module,
		   const struct selection_names *names, struct selection *ret,
		   struct problem *problem);
void selection_deinit(struct selection *selection);

/* Is the whole module left alone, whatever its functions are? Then it needs no plan. */
enum selection_verdict selection_of_module(const struct selection_rules *rules, const char *path);

/* A word for lists, and a sentence. */
const char *selection_verdict_word(enum selection_verdict verdict);
const char *selection_verdict_text(enum selection_verdict verdict);

#endif
