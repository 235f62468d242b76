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
	enum view_measure_kind measure;
	bool is_measure_given;
	bool per_thread, flat;
	bool is_timeline_wanted; /* regions in text: a row a call */
	bool collapse_processes; /* trees in text: added up over all processes */
	bool is_compressed;      /* perfetto: zlib bundles */
	unsigned top;            /* rows in tables; 0: all */
	bool is_top_given;
	unsigned columns;       /* of the terminal, for the summary; 0: 100 */
	double minimum_percent; /* rows below are left out of trees in text; 0: all */
	bool is_minimum_given;  /* else very large trees lose their lightest branches */
	/* Further results that are joined with the session, where the format can (`joins`). */
	struct session *const *other_sessions;
	size_t other_session_count;
};

struct output_format {
	const char
		*name; /* as in --format: "text", "json", "perfetto", "folded", "regions-folded", …
			*/
	const char *file_name;   /* "profile.txt", … */
	const char *link_name;   /* a link to the file by its earlier name, or NULL */
	const char *description; /* one line for `kymo avail --formats` */
	bool is_binary;          /* refuse to write to a terminal */
	bool can_join_sessions;  /* several results can be written as one */
	bool has_whole_run_only; /* its data have no times: not with --from and --to */
	/* 0 or negative errno with problem set. Must check ferror at the end. */
	int (*write)(struct session *session, const struct output_options *options, FILE *stream,
		     struct problem *problem);
};

/* directory/prefix+file_name via a temporary file, fsync'ed and renamed. bytes may be NULL. */
int output_write_file(struct session *session, const struct output_format *format,
		      const struct output_options *options, const char *directory,
		      const char *prefix, uint64_t *bytes, struct problem *problem);

#endif
