/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Numbers and names as people read them, in columns.
 */
#ifndef KYMO_OUTPUT_FORMAT_H
#define KYMO_OUTPUT_FORMAT_H

#include <stdio.h>

#include "analysis/views.h"

/* A number with its unit, short enough for a column. By value, to be used in a printf at once. */
struct quantity_text {
	char text[32];
};

struct quantity_text quantity_from_ns(uint64_t ns);       /* "1.23 s", "45.6 ms", "2 h 03 min" */
struct quantity_text quantity_from_bytes(uint64_t bytes); /* "1.5 GiB" */
struct quantity_text quantity_from_count(uint64_t count); /* "12,345" */
struct quantity_text quantity_from_share(uint64_t part,
					 uint64_t whole); /* "12.3 %", "-" of nothing */
struct quantity_text quantity_from_measure(uint64_t value, enum view_measure_kind measure);

/* Writes text in exactly `width` columns: control characters and bad UTF-8 replaced, padded with
 * blanks, cut in the middle where it is longer. A character counts as one column. */
void format_write_padded_to_width(FILE *stream, const char *text, size_t width);
/* The same without padding; returns the columns used. */
size_t format_write_cut_to_width(FILE *stream, const char *text, size_t width);
size_t format_count_text_columns(const char *text);
/* `size` bytes of text, without a limit of columns; returns those used. */
size_t format_write_printable_text(FILE *stream, const char *text, size_t size);

/* "name (module)", or only the name where the module says nothing new. `size` bytes at most. */
void format_function_with_module(char *buffer, size_t size, const struct session *session,
				 uint32_t frame);
/* The same of interpreted code: "name (file.py:12)", with a line that is not the function's first.
 */
void format_interpreted_function(char *buffer, size_t size, const struct model_frame *frame,
				 uint32_t line);
/* The part of a path that tells a source file: its last component, with its package where that is
 * what has the name. */
const char *format_find_source_name(const char *path);
/* "name [pid]", and the rank in a parallel job. `size` bytes at most. */
void format_process_name(char *buffer, size_t size, const struct model_process *process);
/* The perf event of overflow samples as the user named it; "events" where that is not known. */
const char *session_get_overflow_event_name(const struct session *session);
/* The program's end: "exit status 0", "killed by SIGSEGV (core dumped)". */
void format_wait_status(char *buffer, size_t size, int wait_status);

#endif
