/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The files of causal profiling.
 */
#include "output/causal/causal.h"

#include <errno.h>
#include <stdlib.h>

#include "common/array.h"
#include "files/atomic_file.h"

typedef int causal_file_write_function(const struct causal_data *data,
				       const struct causal_fit_result *result, FILE *stream,
				       struct problem *problem);

struct causal_file_callback_context {
	const struct causal_data *data;
	const struct causal_fit_result *result;
	causal_file_write_function *write;
};

static int write_causal_file(const void *context, FILE *stream, struct problem *problem)
{
	const struct causal_file_callback_context *written = context;

	return written->write(written->data, written->result, stream, problem);
}

int causal_write_all_files(const struct causal_data *data, const struct causal_fit_result *result,
			   const char *directory, struct problem *problem)
{
	static const struct {
		const char *name;
		causal_file_write_function *write;
	} files[] = {{"experiments.json", causal_write_json},
		     {"profile.coz", causal_write_coz},
		     {"report.txt", causal_write_text},
		     {"report.html", causal_write_html}};
	int error = 0;

	for (size_t i = 0; error == 0 && i < ARRAY_SIZE(files); i++) {
		struct causal_file_callback_context written = {data, result, files[i].write};
		char *path;

		if (asprintf(&path, "%s/%s", directory, files[i].name) < 0)
			return problem_set(problem, -ENOMEM, "out of memory writing %s",
					   files[i].name);
		error = atomic_file_write_by_callback(path, write_causal_file, &written, NULL,
						      problem);
		free(path);
	}
	return error;
}
