/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The processed format of Firefox Profiler, version 60 (docs-developer/CHANGELOG-formats.md of
 * firefox-devtools/profiler), which its later versions read by upgrading. Tables of strings,
 * functions, frames and stacks are shared by all threads.
 *
 * Frames of the format are those of the session. A sample that waited has the same stack with
 * another innermost frame, whose category says so: gecko_find_blocked_stack().
 */
#ifndef KYMO_OUTPUT_EXCHANGE_GECKO_H
#define KYMO_OUTPUT_EXCHANGE_GECKO_H

#include "output/code_origin.h"
#include "output/exchange/exchange.h"
#include "output/json_writer.h"
#include "output/strings.h"

enum gecko_category {
	GECKO_OTHER, /* the default: the first that is grey */
	GECKO_PROGRAM,
	GECKO_LIBRARY,
	GECKO_RUNTIME,
	GECKO_INTERPRETED,
	GECKO_BLOCKED,
	GECKO_WAITING_FOR_CPU,
	GECKO_DEVICE,
	GECKO_CATEGORY_COUNT
};

struct gecko_writer {
	const struct session *session;
	struct json_writer json;
	enum view_measure_kind measure;
	struct timed_samples samples;
	struct code_origins origins;
	struct string_table strings, sources;

	uint32_t *function_frames;   /* by function: a frame of it, or MODEL_ENTRY_INDEX_NONE */
	uint32_t *blocked_of_frame;  /* by frame: its other one, + 1; 0: none */
	uint32_t *blocked_of_node;   /* by node: its other stack, + 1; 0: none */
	uint32_t *frames_of_blocked; /* of those frames: the session's */
	uint32_t *nodes_of_blocked;
	uint32_t blocked_frame_count, blocked_stack_count;
};

/* 0 or -ENOMEM. */
int gecko_tables_init(struct gecko_writer *writer);
void gecko_tables_deinit(struct gecko_writer *writer);
/* The stack of a sample. */
uint32_t gecko_get_stack(const struct gecko_writer *writer, const struct timed_sample *sample);
/* Errors of memory give the number of the first string. */
uint32_t gecko_get_string_number(struct gecko_writer *writer, const char *text);
/* `libs`, and `shared`, which comes last: it has all strings. */
void gecko_write_libraries(struct gecko_writer *writer);
int gecko_write_shared_tables(struct gecko_writer *writer); /* 0 or -ENOMEM */
void gecko_write_categories(struct gecko_writer *writer);

#endif
