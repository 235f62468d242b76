/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Outputs: one writer a file, all behind this table. A writer gets a finished session and a stream;
 * it never opens files itself: output_write_file() writes to a temporary name and renames, so there
 * is never half an output.
 */
#ifndef KYMO_OUTPUT_OUTPUT_H
#define KYMO_OUTPUT_OUTPUT_H

#include <stdio.h>

#include "analysis/session.h"
#include "analysis/views.h"

struct output_options {
	enum view_measure measure;
	bool measure_given;
	bool per_thread, flat;
	bool timeline;           /* regions in text: a row a call */
	bool collapse_processes; /* trees in text: added up over all processes */
	bool compress;           /* perfetto: zlib bundles */
	unsigned top;            /* rows in tables; 0: all */
	bool top_given;
	double minimum_percent; /* rows below are left out of trees in text; 0: all */
	bool minimum_given;     /* else very large trees lose their lightest branches */
	/* Further results that are joined with the session, where the format can (`joins`). */
	struct session *const *others;
	size_t other_count;
};

struct output_format {
	const char
		*name; /* as in --format: "text", "json", "perfetto", "folded", "regions-folded", …
			*/
	const char *file_name;   /* "profile.txt", … */
	const char *description; /* one line for `kymo avail --formats` */
	bool binary;             /* refuse to write to a terminal */
	bool joins;              /* several results can be written as one */
	/* 0 or negative errno with problem set. Must check ferror at the end. */
	int (*write)(struct session *session, const struct output_options *options, FILE *stream,
		     struct problem *problem);
};

extern const struct output_format output_formats[];
extern const size_t output_format_count;

const struct output_format *output_find(const char *name);
/* directory/prefix+file_name via a temporary file, fsync'ed and renamed. bytes may be NULL. */
int output_write_file(struct session *session, const struct output_format *format,
		      const struct output_options *options, const char *directory,
		      const char *prefix, uint64_t *bytes, struct problem *problem);

/* The summary at exit (and of `kymo report` without a format): ten heaviest functions and paths,
 * threads, host metrics, unresolved share by module with what to install, losses, kymo's own
 * overhead. */
int output_summary(struct session *session, const struct output_options *options, FILE *stream,
		   bool colour, struct problem *problem);
/* For those who are shown no summary: a text for each kind of data that was to be recorded and was
 * lost; none where nothing was. */
void output_losses(const struct session *session, void (*tell)(void *context, const char *text),
		   void *context);
/* metadata.json */
int output_metadata(struct session *session, FILE *stream, struct problem *problem);

#endif
