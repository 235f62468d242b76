/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See inputs.h.
 */
#include "merging/inputs.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/arena.h"
#include "common/cleanup.h"
#include "job/part.h"
#include "launch/result_path.h"

int merge_inputs_add(struct merge_inputs *inputs, const char *directory, const char *reason)
{
	struct merge_input input = {strdup(directory), reason ? strdup(reason) : NULL, false};

	if (!input.directory || (reason && !input.reason) ||
	    array_reserve_one_more((void **)&inputs->list, &inputs->capacity, inputs->count,
				   sizeof(*inputs->list)) < 0) {
		free(input.directory);
		free(input.reason);
		return -ENOMEM;
	}
	inputs->list[inputs->count++] = input;
	return 0;
}

void merge_inputs_deinit(struct merge_inputs *inputs)
{
	for (size_t i = 0; i < inputs->count; i++) {
		free(inputs->list[i].directory);
		free(inputs->list[i].reason);
	}
	free(inputs->list);
	*inputs = (struct merge_inputs){0};
}

static int compare_inputs(const void *left, const void *right)
{
	const struct merge_input *a = left, *b = right;

	return strcmp(a->directory, b->directory);
}

void merge_inputs_sort(struct merge_inputs *inputs)
{
	size_t kept = 0;

	if (!inputs->count)
		return;
	qsort(inputs->list, inputs->count, sizeof(*inputs->list), compare_inputs);
	for (size_t i = 0; i < inputs->count; i++) {
		if (kept && !strcmp(inputs->list[kept - 1].directory, inputs->list[i].directory)) {
			inputs->named_twice +=
				!inputs->list[i].by_link && !inputs->list[kept - 1].by_link;
			inputs->list[kept - 1].by_link |= inputs->list[i].by_link;
			free(inputs->list[i].directory);
			free(inputs->list[i].reason);
		} else {
			inputs->list[kept++] = inputs->list[i];
		}
	}
	inputs->count = kept;
}

static bool directory_has(const char *directory, const char *name)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof(path), "%s/%s", directory, name) < (int)sizeof(path) &&
	       !access(path, F_OK);
}

static bool is_result_directory(const char *directory)
{
	return directory_has(directory, "launch.json") || directory_has(directory, "spool");
}

bool merge_is_same_directory(const char *a, const char *b)
{
	struct stat a_status, b_status;

	return b && !stat(a, &a_status) && !stat(b, &b_status) &&
	       a_status.st_dev == b_status.st_dev && a_status.st_ino == b_status.st_ino;
}

/* A slash at the end, as of a pattern with one, would lead through a link. */
static bool is_named_by_link(const char *named)
{
	size_t length = strlen(named);
	struct stat status;
	char path[PATH_MAX];

	while (length > 1 && named[length - 1] == '/')
		length--;
	return snprintf(path, sizeof(path), "%.*s", (int)length, named) < (int)sizeof(path) &&
	       !lstat(path, &status) && S_ISLNK(status.st_mode);
}

static int add_result_directory(struct merge_inputs *inputs, const char *named,
				const char *directory)
{
	_cleanup_(cleanup_free) char *real = realpath(directory, NULL);
	int error = merge_inputs_add(inputs, real ? real : directory, NULL);

	if (!error)
		inputs->list[inputs->count - 1].by_link = is_named_by_link(named);
	return error;
}

static bool is_link_to_latest_of_rank(const char *name)
{
	return !strncmp(name, RESULT_LATEST_OF_RANK, strlen(RESULT_LATEST_OF_RANK));
}

/* Results are kept beside those of earlier runs: links say which are the last ones. */
static bool entry_is_wanted(const char *directory, const char *name, const char *output,
			    bool only_links)
{
	char path[PATH_MAX];
	struct stat status;

	if (*name == '.' || is_link_to_latest_of_rank(name) != only_links ||
	    snprintf(path, sizeof(path), "%s/%s", directory, name) >= (int)sizeof(path) ||
	    lstat(path, &status) || S_ISLNK(status.st_mode) != only_links)
		return false;
	return is_result_directory(path) && !directory_has(path, JOB_PART_FILE_NAME) &&
	       !merge_is_same_directory(path, output);
}

static int add_entries(struct merge_inputs *inputs, const char *directory, const char *output,
		       bool only_links, size_t *ret_added)
{
	DIR *stream = opendir(directory);
	struct dirent *entry;
	int error = 0;

	*ret_added = 0;
	while (stream && !error && (entry = readdir(stream))) {
		char path[PATH_MAX];

		if (!entry_is_wanted(directory, entry->d_name, output, only_links))
			continue;
		snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
		error = add_result_directory(inputs, path, path);
		++*ret_added;
	}
	if (stream)
		closedir(stream);
	return error;
}

static int add_named_directory(struct merge_inputs *inputs, const char *named, const char *output)
{
	_cleanup_(cleanup_free) char *directory = NULL, *real = realpath(named, NULL);
	struct problem problem;
	size_t added = 0;
	int error = 0;

	if (!is_result_directory(named))
		error = add_entries(inputs, named, output, true, &added);
	if (!error && !added && !is_result_directory(named))
		error = add_entries(inputs, named, output, false, &added);
	if (error || added)
		return error;
	if (result_directory_find_existing(named, &directory, &problem))
		return merge_inputs_add(inputs, real ? real : named, problem.text);
	return add_result_directory(inputs, named, directory);
}

int merge_inputs_find(char *const *named, size_t count, const char *output,
		      struct merge_inputs *ret, struct problem *problem)
{
	for (size_t i = 0; i < count; i++) {
		if (add_named_directory(ret, named[i], output) < 0)
			return problem_set(problem, -ENOMEM, "out of memory");
	}
	merge_inputs_sort(ret);
	return 0;
}
