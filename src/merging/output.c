/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See output.h.
 */
#include "merging/output.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/foreign_file.h"
#include "files/atomic_file.h"
#include "job/part.h"
#include "job/results/results.h"
#include "merging/nccl_files.h"
#include "merging/ranks.h"

static bool directory_is_empty(const char *path)
{
	DIR *directory = opendir(path);
	struct dirent *entry;
	bool empty = true;

	while (directory && empty && (entry = readdir(directory)))
		empty = !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..");
	if (directory)
		closedir(directory);
	return empty;
}

/* Whether what is to be overwritten is what is to be merged. */
static bool output_is_input(const char *output, const struct merge_inputs *inputs)
{
	bool found = false;

	for (size_t i = 0; !found && i < inputs->count; i++)
		found = merge_is_same_directory(inputs->list[i].directory, output);
	return found;
}

static void remove_earlier_files(const char *directory)
{
	struct merge_nccl_files earlier = {.output_directory = directory};

	merge_nccl_files_restart(&earlier);
	for (size_t i = 0; i < JOB_FORMAT_COUNT; i++) {
		char path[PATH_MAX];

		if (snprintf(path, sizeof(path), "%s/%s", directory, job_formats[i].file_name) <
		    (int)sizeof(path))
			unlink(path);
	}
}

int merge_output_open(const char *named, bool force, const struct merge_inputs *inputs,
		      struct result_place *ret, struct problem *problem)
{
	int error;

	if (!force && !access(named, F_OK) && !directory_is_empty(named))
		return problem_set(problem, -EEXIST, "'%s' exists; --force overwrites it", named);
	if (output_is_input(named, inputs))
		return problem_set(problem, -EINVAL,
				   "'%s' is one of the results to join: name another directory",
				   named);
	error = result_directory_open_or_create(named, ret, problem);
	if (!error)
		remove_earlier_files(ret->path);
	return error;
}

int merge_output_make_spool(const struct result_place *place, struct problem *problem)
{
	char spool[PATH_MAX];

	if (snprintf(spool, sizeof(spool), "%s/spool", place->path) >= (int)sizeof(spool))
		return problem_set(problem, -ENAMETOOLONG, "'%s' is too long a path", place->path);
	if (mkdir(spool, 0777) && errno != EEXIST)
		return problem_set(problem, -errno, "cannot make '%s': %s", spool, strerror(errno));
	return 0;
}

void merge_output_remove_empty_spool(const struct result_place *place)
{
	char spool[PATH_MAX];

	if (snprintf(spool, sizeof(spool), "%s/spool", place->path) < (int)sizeof(spool))
		rmdir(spool);
}

void merge_output_remove_if_empty(const struct result_place *place)
{
	merge_output_remove_empty_spool(place);
	result_place_remove_if_empty(place);
}

/* What ran, from the first directory that says it. */
static json_t *read_command_line_json(const struct merge_inputs *sources)
{
	for (size_t i = 0; i < sources->count; i++) {
		json_t *root, *command;
		char path[PATH_MAX];
		FILE *stream;

		if (snprintf(path, sizeof(path), "%s/launch.json", sources->list[i].directory) >=
		    (int)sizeof(path))
			continue;
		stream = foreign_open_stream(&foreign_policy_of_result_files, path);
		if (!stream)
			continue;
		root = json_loadf(stream, 0, NULL);
		fclose(stream);
		command = json_incref(json_object_get(root, "command"));
		json_decref(root);
		if (json_is_array(command) && json_array_size(command))
			return command;
		json_decref(command);
	}
	return json_array();
}

static int write_json(const void *root, FILE *stream, struct problem *problem)
{
	errno = ENOMEM;
	return json_dumpf(root, stream, JSON_INDENT(2)) || fflush(stream)
		       ? problem_set(problem, -errno, "cannot write launch.json: %s",
				     strerror(errno))
		       : 0;
}

int merge_output_write_launch(const struct result_place *place, const struct merge_inputs *sources,
			      struct problem *problem)
{
	json_t *root, *merged_from = json_array();
	char path[PATH_MAX];
	int error;

	if (snprintf(path, sizeof(path), "%s/launch.json", place->path) >= (int)sizeof(path))
		return problem_set(problem, -ENAMETOOLONG, "'%s' is too long a path", place->path);
	for (size_t i = 0; i < sources->count; i++)
		json_array_append_new(merged_from, json_string(sources->list[i].directory));
	root = json_object();
	json_object_set_new(root, "schema", json_string("kymo.launch/1"));
	json_object_set_new(root, "kymo_version", json_string(KYMO_VERSION));
	json_object_set_new(root, "command", read_command_line_json(sources));
	json_object_set_new(root, "merged_from", merged_from);
	error = atomic_file_write_by_callback(path, write_json, root, NULL, problem);
	json_decref(root);
	return error;
}

static int format_part_path(const char *directory, char *ret, size_t size)
{
	return snprintf(ret, size, "%s/" JOB_PART_FILE_NAME, directory) >= (int)size;
}

bool merge_output_has_job(const char *directory)
{
	char path[PATH_MAX];

	return !format_part_path(directory, path, sizeof(path)) && !access(path, F_OK);
}

int merge_output_check_has_records(const char *directory, struct problem *problem)
{
	if (!merge_output_has_job(directory) || merge_directory_has_records(directory, ".nccl"))
		return 0;
	return problem_set(problem, -EINVAL,
			   "'%s' is the result of several ranks: kymo report shows it as text, "
			   "json, folded and pprof; for all else name the directory of a rank "
			   "(merged_from in its launch.json)",
			   directory);
}

int merge_output_report_job(const char *directory, const char *format, unsigned top, FILE *stream,
			    struct problem *problem)
{
	char path[PATH_MAX];
	struct job job;
	int error;

	if (format_part_path(directory, path, sizeof(path)))
		return problem_set(problem, -ENAMETOOLONG, "'%s' is too long a path", directory);
	job_init(&job);
	error = job_part_read_file(&job, path, problem);
	if (!error && job_sort(&job) < 0)
		error = problem_set(problem, -ENOMEM, "out of memory");
	for (size_t i = 0; !error && i < JOB_FORMAT_COUNT; i++) {
		if (!strcmp(job_formats[i].name, format))
			error = job_formats[i].write(&job, top, stream, problem);
	}
	job_deinit(&job);
	return error;
}
