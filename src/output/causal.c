/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The files of causal profiling.
 */
#include "output/causal.h"

#include <errno.h>
#include <stdlib.h>

#include "output/whole_file.h"

typedef int causal_writer(const struct causal_data *data, const struct causal_result *result,
			  FILE *stream, struct problem *problem);

struct written {
	const struct causal_data *data;
	const struct causal_result *result;
	causal_writer *write;
};

static int write_one(const void *context, FILE *stream, struct problem *problem)
{
	const struct written *written = context;

	return written->write(written->data, written->result, stream, problem);
}

int causal_write_all(const struct causal_data *data, const struct causal_result *result,
		     const char *directory, struct problem *problem)
{
	static const struct {
		const char *name;
		causal_writer *write;
	} files[] = {{"experiments.json", causal_write_json},
		     {"profile.coz", causal_write_coz},
		     {"report.txt", causal_write_text},
		     {"report.html", causal_write_html}};
	int error = 0;

	for (size_t i = 0; error == 0 && i < sizeof(files) / sizeof(*files); i++) {
		struct written written = {data, result, files[i].write};
		char *path;

		if (asprintf(&path, "%s/%s", directory, files[i].name) < 0)
			return problem_set(problem, -ENOMEM, "out of memory writing %s",
					   files[i].name);
		error = whole_file_write(path, write_one, &written, NULL, problem);
		free(path);
	}
	return error;
}
