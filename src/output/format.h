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
struct quantity {
	char text[32];
};

struct quantity quantity_time(uint64_t ns);     /* "1.23 s", "45.6 ms", "2 h 03 min" */
struct quantity quantity_bytes(uint64_t bytes); /* "1.5 GiB" */
struct quantity quantity_count(uint64_t count); /* "12,345" */
struct quantity quantity_share(uint64_t part, uint64_t whole); /* "12.3 %", "-" of nothing */
struct quantity quantity_measure(uint64_t value, enum view_measure measure);

/* Writes text in exactly `width` columns: control characters and bad UTF-8 replaced, padded with
 * blanks, cut in the middle where it is longer. A character counts as one column. */
void format_fitted(FILE *stream, const char *text, size_t width);
/* The same without padding; returns the columns used. */
size_t format_limited(FILE *stream, const char *text, size_t width);
size_t format_columns(const char *text);
/* `size` bytes of text, without a limit of columns; returns those used. */
size_t format_text(FILE *stream, const char *text, size_t size);

/* "name (module)", or only the name where the module says nothing new. `size` bytes at most. */
void format_function(char *buffer, size_t size, const struct session *session, uint32_t frame);
/* "name [pid]", and the rank in a parallel job. `size` bytes at most. */
void format_process(char *buffer, size_t size, const struct model_process *process);
/* The perf event of overflow samples as the user named it; "events" where that is not known. */
const char *format_event(const struct session *session);
/* The program's end: "exit status 0", "killed by SIGSEGV (core dumped)". */
void format_wait_status(char *buffer, size_t size, int wait_status);

#endif
