/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * results.db as an output: SQLite writes files alone, so it is made in a temporary one, which is
 * then copied into the stream.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "output/counters/db.h"
#include "output/output.h"

static int copy_file_to_stream(const char *path, FILE *stream)
{
	FILE *made = fopen(path, "re");
	char bytes[65536];
	size_t got;
	int result = 0;

	if (made == NULL)
		return -errno;
	errno = 0;
	while (result == 0 && (got = fread(bytes, 1, sizeof(bytes), made)) != 0) {
		if (fwrite(bytes, 1, got, stream) != got)
			result = errno ? -errno : -EIO;
	}
	if (ferror(made))
		result = errno ? -errno : -EIO;
	fclose(made);
	return result;
}

int results_database_make_temporary_file(char *path, size_t size, struct problem *problem)
{
	const char *directory = getenv("TMPDIR");
	int descriptor;

	snprintf(path, size, "%s/kymo-results-XXXXXX",
		 directory != NULL && *directory != '\0' ? directory : "/tmp");
	descriptor = mkstemp(path);
	if (descriptor < 0)
		return problem_set(problem, -errno, "cannot make '%s': %s", path, strerror(errno));
	close(descriptor);
	return 0;
}

static int write_results_database(struct session *session, const struct output_options *options,
				  FILE *stream, struct problem *problem)
{
	char path[4096];
	int result = results_database_make_temporary_file(path, sizeof(path), problem);

	(void)options;
	if (result != 0)
		return result;
	result = results_database_create(session, path, problem);
	if (result == 0) {
		result = copy_file_to_stream(path, stream);
		if (result != 0)
			problem_set(problem, result, "cannot write the database: %s",
				    strerror(-result));
	}
	unlink(path);
	return result;
}

const struct output_format output_format_db = {
	.name = "db",
	.file_name = "results.db",
	.description = "all of it as SQLite, for kymo sql, DuckDB and pandas",
	.is_binary = true,
	.has_whole_run_only = true,
	.write = write_results_database,
};

const struct output_format output_format_counters_db = {
	.name = "counters-db",
	.file_name = "results.db",
	.description = "the same file as db, where counters were recorded",
	.is_binary = true,
	.has_whole_run_only = true,
	.write = write_results_database,
};
