/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * How an output becomes a file.
 */
#include "output/output.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

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

/* Where a file has the earlier name, it stays. */
static void add_link(const char *path, const char *directory, const char *prefix,
		     const char *link_name)
{
	_cleanup_(cleanup_free) char *link = NULL;

	if (asprintf(&link, "%s/%s%s", directory, prefix, link_name) >= 0)
		(void)!symlink(strrchr(path, '/') + 1, link);
}

int output_write_file(struct session *session, const struct output_format *format,
		      const struct output_options *options, const char *directory,
		      const char *prefix, uint64_t *bytes, struct problem *problem)
{
	struct output_write_callback_context written = {session, format, options};
	_cleanup_(cleanup_free) char *path = NULL;
	int error;

	prefix = prefix ? prefix : "";
	if (asprintf(&path, "%s/%s%s", directory, prefix, format->file_name) < 0)
		return problem_set(problem, -ENOMEM, "out of memory writing %s", format->file_name);
	error = atomic_file_write_by_callback(path, write_session_in_format, &written, bytes,
					      problem);
	if (error == 0 && format->link_name)
		add_link(path, directory, prefix, format->link_name);
	return error;
}
