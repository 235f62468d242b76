/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * How an output becomes a file.
 */
#include "output/output.h"

#include <errno.h>

#include "common/cleanup.h"
#include "files/atomic_file.h"

struct output_write_callback_context {
	struct session *session;
	const struct output_format *format;
	const struct output_options *options;
};

static int write_session_in_format(const void *context, FILE *stream, struct problem *problem)
{
	const struct output_write_callback_context *written = context;

	return written->format->write(written->session, written->options, stream, problem);
}

int output_write_file(struct session *session, const struct output_format *format,
		      const struct output_options *options, const char *directory,
		      const char *prefix, uint64_t *bytes, struct problem *problem)
{
	struct output_write_callback_context written = {session, format, options};
	_cleanup_(cleanup_free) char *path = NULL;

	if (asprintf(&path, "%s/%s%s", directory, prefix ? prefix : "", format->file_name) < 0)
		return problem_set(problem, -ENOMEM, "out of memory writing %s", format->file_name);
	return atomic_file_write_by_callback(path, write_session_in_format, &written, bytes,
					     problem);
}
