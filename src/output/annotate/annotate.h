/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * One function, line by line and instruction by instruction, with what was spent there: on the
 * terminal and as JSON. Costs add up to what other outputs say of the function; the part that has
 * no line, or no instruction, is said. So is each file that could not be shown, with the places
 * where it was looked for.
 */
#ifndef KYMO_OUTPUT_ANNOTATE_ANNOTATE_H
#define KYMO_OUTPUT_ANNOTATE_ANNOTATE_H

#include <stdio.h>

#include "analysis/arena.h"
#include "analysis/views.h"

struct annotated_function {
	uint32_t function_id, frame; /* a representative frame */
	uint64_t self, total;        /* of the measure */
};

/* The functions that `name` means, the heaviest first; *ret is malloc'ed. A name is a function's,
 * whole or without parameters and qualification, FILE:NAME or NAME@MODULE. 0 or -ENOMEM. */
int annotation_find_functions(const struct session *session, enum view_measure_kind measure,
			      const char *name, struct annotated_function **ret, size_t *ret_count);
/* The function of the user's own code in which, with what libraries did for it, the most was spent;
 * where there is none, the heaviest of all that have code. 0, 1 where nothing was spent, or
 * -ENOMEM. */
int annotation_find_hottest_function(const struct session *session, enum view_measure_kind measure,
				     struct annotated_function *ret);

struct annotation_options {
	enum view_measure_kind measure;
	bool wants_source, wants_assembly;
	size_t context;         /* lines and instructions around those with a cost */
	size_t columns;         /* of the terminal; 0: nothing is cut */
	const char *debug_path; /* directories below which files are looked for as well; or NULL */
};

struct annotated_line {
	uint32_t number;
	bool follows_gap; /* lines before it are left out */
	uint64_t self, total;
	const char *text; /* NULL: it is not known */
};

struct annotated_source {
	const char *path;    /* as the debug information has it */
	const char *found;   /* NULL: it was not */
	const char *problem; /* what makes the text doubtful, or why there is none; NULL: nothing */
	struct annotated_line *lines;
	size_t count, capacity;
};

struct annotated_instruction {
	uint64_t address;
	bool follows_gap;
	uint64_t self, with_inlined;
	uint32_t frame; /* what it is an instruction of; MODEL_ENTRY_INDEX_NONE: no sample says */
	const char *text;
};

/* A function of a file that has instructions of the annotated one: itself, or one that it is
 * inlined into. */
struct annotated_code {
	const char *path;    /* of the module */
	const char *symbol;  /* NULL: the whole file is meant */
	const char *problem; /* why there are no instructions; NULL: there are */
	uint64_t self;       /* in it */
	struct annotated_instruction *instructions;
	size_t count, capacity;
};

struct annotation {
	const struct session *session;
	const struct annotation_options *options;
	struct annotated_function function;
	uint64_t whole;                /* the measure's sum over the session */
	uint64_t waiting_for_cpu;      /* in it, while it could have run: in no line's self */
	uint64_t self_without_line;    /* with source */
	uint64_t self_without_address; /* with assembly: in no instruction */
	struct annotated_source *sources;
	struct annotated_code *codes;
	size_t source_count, source_capacity, code_count, code_capacity;
	struct arena arena;
};

/* 0 or -ENOMEM; deinit is needed after either. */
int annotation_init(struct annotation *annotation, const struct session *session,
		    const struct annotated_function *function,
		    const struct annotation_options *options);
void annotation_deinit(struct annotation *annotation);
void annotation_write_text(const struct annotation *annotation, FILE *stream);
int annotation_write_json(const struct annotation *annotation, FILE *stream,
			  struct problem *problem);

/* For annotation_init(): annotated_source.c and annotated_code.c. */
int annotation_add_sources(struct annotation *annotation);
int annotation_add_code(struct annotation *annotation);
/* Calls `open` for the path and for the path below each directory of `debug_path` until one returns
 * true; *ret is that path. The tried ones are put into *ret_tried, with commas. 0 or -ENOMEM. */
int annotation_try_places(struct annotation *annotation, const char *path,
			  bool (*open)(const char *path, void *context), void *context,
			  const char **ret, const char **ret_tried);

#endif
