/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * `kymo merge`: the results of all ranks of a job as one.
 *
 * The NCCL records of every directory are linked (or copied, to another file system) into one
 * result directory, so `kymo report` and every format work on it as on any other, and what is
 * written here can be made again. Nothing is read into memory at once: files are opened one after
 * the other, however many ranks there are.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/id_map.h"
#include "cmd/command.h"
#include "cmd/message.h"
#include "cmd/nccl_results.h"
#include "cmd/result_path.h"
#include "cmd/results.h"
#include "common/settings_value.h"

#define COPY_CHUNK (8u << 20)

#define MERGE_NCCL    ".nccl"
#define MERGE_GPU     ".gpu"
#define MERGE_KERNELS ".kernels" /* what is behind .gpu in a merged result */

struct merge_options {
	const char *output;
	bool no_trace;
};

struct merge {
	struct resolved settings;
	struct merge_options options;
	char **inputs;
	size_t input_count;
	size_t files, bytes_copied, duplicates;
	size_t unusable, unusable_files; /* directories; files of the others */
	struct id_map seen;              /* device and inode -> file */
	json_t *sources;
};

static const struct option_extra merge_extras[] = {
	{.name = "output",
	 .letter = 'o',
	 .metavar = "DIR",
	 .argument = OPTION_REQUIRED,
	 .apply = option_set_text,
	 .offset = offsetof(struct merge_options, output),
	 .help = "The result directory to make."},
	{.name = "no-trace",
	 .apply = option_set_flag,
	 .offset = offsetof(struct merge_options, no_trace),
	 .help = "Leave trace.pftrace out: it is large where there are many ranks."},
	OPTION_QUIET,
	OPTION_VERBOSE,
	OPTION_HELP,
};

static bool merge_accepts(enum setting_id id)
{
	return id == SETTING_FORCE || id == SETTING_TRACE_COMPRESS || id == SETTING_CONFIG_FILE ||
	       id == SETTING_COLOR;
}

static const struct options_grammar merge_grammar = {
	.command = "merge",
	.extras = merge_extras,
	.extra_count = sizeof(merge_extras) / sizeof(merge_extras[0]),
	.accepts = merge_accepts,
};

/* ---- one file ---- */

static int merge_copy(struct merge *merge, const char *from, const char *to,
		      struct problem *problem)
{
	int in = open(from, O_RDONLY | O_CLOEXEC), out = -1, error = 0;
	ssize_t sent = 0;

	if (in >= 0)
		out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (out < 0)
		error = -errno;
	while (!error && (sent = sendfile(out, in, NULL, COPY_CHUNK)) != 0) {
		if (sent < 0)
			error = -errno;
		else
			merge->bytes_copied += (size_t)sent;
	}
	if (in >= 0)
		close(in);
	if (out >= 0 && close(out) && !error)
		error = -errno;
	if (error)
		unlink(to);
	return error ? problem_set(problem, error, "cannot copy '%s' to '%s': %s", from, to,
				   strerror(-error))
		     : 0;
}

/* The same directory named twice, or once by itself and once by its `latest`. */
static bool merge_knows(struct merge *merge, const char *path)
{
	struct stat status;
	uint64_t key;

	if (stat(path, &status))
		return false;
	key = id_map_mix((uint64_t)status.st_dev) ^ (uint64_t)status.st_ino;
	if (id_map_get(&merge->seen, key) != ID_MAP_NONE)
		return true;
	return id_map_set(&merge->seen, key, 1) < 0; /* without memory nothing else will work */
}

static bool merge_ends_with(const char *name, const char *end)
{
	size_t length = strlen(name), end_length = strlen(end);

	return length > end_length && !strcmp(name + length - end_length, end);
}

/* Only files can be linked: of another kind the copy might never end. What cannot be read is one
 * rank's fault, and the others are joined. */
static bool merge_can_read(struct merge *merge, const char *path)
{
	struct stat status;
	int error = 0;

	if (stat(path, &status) || access(path, R_OK))
		error = errno;
	else if (S_ISREG(status.st_mode))
		return true;
	message_error("cannot join '%s': %s", path, error ? strerror(error) : "not a regular file");
	merge->unusable_files++;
	return false;
}

/* Names begin with the number of the directory: the first one named is the first one read, and its
 * host's clock is that of the result. */
static int merge_file(struct merge *merge, const char *from, const char *name, size_t input,
		      struct problem *problem)
{
	bool is_gpu = merge_ends_with(name, MERGE_GPU);
	char to[PATH_MAX];

	if (!merge_can_read(merge, from))
		return 0;
	if (merge_knows(merge, from)) {
		merge->duplicates += !is_gpu;
		return 0;
	}
	if (snprintf(to, sizeof(to), "%s/spool/%06zu-%s%s", merge->options.output, input, name,
		     is_gpu ? MERGE_KERNELS : "") >= (int)sizeof(to))
		return problem_set(problem, -ENAMETOOLONG, "'%s' is too long a path", from);
	if (linkat(AT_FDCWD, from, AT_FDCWD, to, AT_SYMLINK_FOLLOW)) {
		int error = merge_copy(merge, from, to, problem);

		if (error)
			return error;
	}
	merge->files += merge_ends_with(name, MERGE_NCCL);
	return 0;
}

/* ---- one directory ---- */

static int merge_is_records(const struct dirent *entry)
{
	return merge_ends_with(entry->d_name, MERGE_NCCL);
}

static int merge_is_kernels(const struct dirent *entry)
{
	return merge_ends_with(entry->d_name, MERGE_GPU) ||
	       merge_ends_with(entry->d_name, MERGE_KERNELS);
}

static int merge_is_own(const struct dirent *entry)
{
	return merge_is_records(entry) || merge_ends_with(entry->d_name, MERGE_KERNELS);
}

static int merge_each(struct merge *merge, const char *spool, size_t input,
		      int (*is_wanted)(const struct dirent *entry), size_t *ret_files,
		      struct problem *problem)
{
	struct dirent **names;
	int count = scandir(spool, &names, is_wanted, alphasort), error = 0;

	if (count < 0)
		return problem_set(problem, -errno, "cannot read '%s': %s", spool, strerror(errno));
	for (int i = 0; i < count; i++) {
		char path[PATH_MAX];

		if (snprintf(path, sizeof(path), "%s/%s", spool, names[i]->d_name) >=
		    (int)sizeof(path))
			error = problem_set(problem, -ENAMETOOLONG, "'%s' is too long a path",
					    spool);
		if (!error)
			error = merge_file(merge, path, names[i]->d_name, input, problem);
		free(names[i]);
	}
	free(names);
	*ret_files = (size_t)count;
	return error;
}

/* GPUs' records tell how long NCCL's kernels took, and are taken for that alone. */
static int merge_spool(struct merge *merge, const char *spool, size_t input, size_t *ret_files,
		       struct problem *problem)
{
	int error = merge_each(merge, spool, input, merge_is_records, ret_files, problem);
	size_t kernels;

	if (!error && *ret_files)
		error = merge_each(merge, spool, input, merge_is_kernels, &kernels, problem);
	return error;
}

/* A directory that is of no use is said and counted; the others are joined. */
static int merge_directory(struct merge *merge, size_t input, struct problem *problem)
{
	struct problem here;
	char *directory, *spool;
	size_t files = 0;
	int error = result_directory_find(merge->inputs[input], &directory, &here);

	if (error) {
		message_error("%s", here.text);
		merge->unusable++;
		return 0;
	}
	if (asprintf(&spool, "%s/spool", directory) < 0) {
		free(directory);
		return problem_set(problem, -ENOMEM, "out of memory");
	}
	if (access(spool, R_OK | X_OK)) {
		message_error("'%s' has no recorded data: cannot read spool/: %s", directory,
			      strerror(errno));
		merge->unusable++;
	} else {
		error = merge_spool(merge, spool, input, &files, problem);
		if (!error && !files) {
			message_error("'%s' has no NCCL records: were its processes started with "
				      "NCCL_PROFILER_PLUGIN=kymo?",
				      directory);
			merge->unusable++;
		}
	}
	if (files)
		json_array_append_new(merge->sources, json_string(directory));
	free(spool);
	free(directory);
	return error;
}

/* ---- the result ---- */

/* What ran, from the first directory that says it. */
static json_t *merge_command(const struct merge *merge)
{
	size_t count = json_array_size(merge->sources);

	for (size_t i = 0; i < count; i++) {
		const char *directory = json_string_value(json_array_get(merge->sources, i));
		json_t *root, *command;
		char path[PATH_MAX];

		if (snprintf(path, sizeof(path), "%s/launch.json", directory ? directory : "") >=
		    (int)sizeof(path))
			continue;
		root = json_load_file(path, 0, NULL);
		command = json_incref(json_object_get(root, "command"));
		json_decref(root);
		if (json_is_array(command) && json_array_size(command))
			return command;
		json_decref(command);
	}
	return json_array();
}

static int merge_describe(const struct merge *merge, struct problem *problem)
{
	json_t *root;
	char path[PATH_MAX];
	int error = 0;

	if (snprintf(path, sizeof(path), "%s/launch.json", merge->options.output) >=
	    (int)sizeof(path))
		return problem_set(problem, -ENAMETOOLONG, "'%s' is too long a path",
				   merge->options.output);
	root = json_object();
	json_object_set_new(root, "schema", json_string("kymo.launch/1"));
	json_object_set_new(root, "kymo_version", json_string(KYMO_VERSION));
	json_object_set_new(root, "command", merge_command(merge));
	json_object_set(root, "merged_from", merge->sources);
	errno = ENOMEM;
	if (json_dump_file(root, path, JSON_INDENT(2)))
		error = problem_set(problem, -errno, "cannot write '%s': %s", path,
				    strerror(errno));
	json_decref(root);
	return error;
}

static bool merge_is_empty(const char *path)
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

/* Records of an earlier merge would be taken for part of this one. */
static void merge_empty(const char *spool)
{
	struct dirent **names;
	int count = scandir(spool, &names, merge_is_own, alphasort);

	for (int i = 0; i < count; i++) {
		char path[PATH_MAX];

		if (snprintf(path, sizeof(path), "%s/%s", spool, names[i]->d_name) <
		    (int)sizeof(path))
			unlink(path);
		free(names[i]);
	}
	if (count >= 0)
		free(names);
}

/* Whether what is to be overwritten is what is to be joined. */
static bool merge_is_input(const struct merge *merge, const char *spool)
{
	struct stat output, input;
	bool found = false;

	if (stat(spool, &output))
		return false;
	for (size_t i = 0; !found && i < merge->input_count; i++) {
		struct problem problem;
		char *directory, path[PATH_MAX];

		if (result_directory_find(merge->inputs[i], &directory, &problem))
			continue;
		found = snprintf(path, sizeof(path), "%s/spool", directory) < (int)sizeof(path) &&
			!stat(path, &input) && input.st_dev == output.st_dev &&
			input.st_ino == output.st_ino;
		free(directory);
	}
	return found;
}

static int merge_make_directory(struct merge *merge, struct problem *problem)
{
	const char *output = merge->options.output;
	char spool[PATH_MAX];
	int error;

	if (!resolved_bool(&merge->settings, SETTING_FORCE) && !access(output, F_OK) &&
	    !merge_is_empty(output))
		return problem_set(problem, -EEXIST, "'%s' exists; --force overwrites it", output);
	if (snprintf(spool, sizeof(spool), "%s/spool", output) >= (int)sizeof(spool))
		return problem_set(problem, -ENAMETOOLONG, "'%s' is too long a path", output);
	if (merge_is_input(merge, spool))
		return problem_set(problem, -EINVAL,
				   "'%s' is one of the results to join: name another directory",
				   output);
	error = result_make_directories(spool);
	if (error)
		return problem_set(problem, error, "cannot make '%s': %s", spool, strerror(-error));
	merge_empty(spool);
	return 0;
}

/* So that the next try need not be forced; what holds anything stays. */
static void merge_remove_empty(const char *output)
{
	char spool[PATH_MAX];

	if (snprintf(spool, sizeof(spool), "%s/spool", output) < (int)sizeof(spool) &&
	    !rmdir(spool))
		rmdir(output);
}

static int merge_write(struct merge *merge, struct problem *problem)
{
	struct output_options options = {
		.compress = resolved_bool(&merge->settings, SETTING_TRACE_COMPRESS)};
	struct session_options session_options = {.unresolved_only = true};
	const char *output = merge->options.output;
	struct session *session;
	int error = session_open(output, &session_options, &session, problem);

	if (error)
		return error;
	error = nccl_results_write(session, output, "", problem);
	if (!error && !merge->options.no_trace)
		error = output_write_file(session, output_find("perfetto"), &options, output, "",
					  NULL, problem);
	if (!error && message_verbosity() >= 0)
		error = output_summary(session, &options, stdout, message_color(STDOUT_FILENO),
				       problem);
	session_close(session);
	return error;
}

static int merge_make(struct merge *merge, struct problem *problem)
{
	int error;

	if (!merge->input_count)
		return problem_set(problem, -EINVAL,
				   "which results? kymo merge DIRECTORY... -o DIR");
	if (!merge->options.output)
		return problem_set(problem, -EINVAL, "where to? name a directory with -o DIR");
	error = merge_make_directory(merge, problem);
	for (size_t i = 0; !error && i < merge->input_count; i++)
		error = merge_directory(merge, i, problem);
	if (error)
		return error;
	if (!merge->files) {
		merge_remove_empty(merge->options.output);
		return problem_set(problem, -ENODATA, "nothing to merge");
	}
	if (merge->duplicates)
		message_warning("%zu files were named more than once and count once",
				merge->duplicates);
	error = merge_describe(merge, problem);
	if (!error)
		error = merge_write(merge, problem);
	if (!error && merge->unusable)
		error = problem_set(problem, -ENODATA,
				    "%zu of %zu directories are not in '%s', see above",
				    merge->unusable, merge->input_count, merge->options.output);
	else if (!error && merge->unusable_files)
		error = problem_set(problem, -ENODATA, "%zu files are not in '%s', see above",
				    merge->unusable_files, merge->options.output);
	return error;
}

static int merge_run(char **arguments, size_t count)
{
	struct merge merge = {.files = 0};
	struct options_result result = {.context = &merge.options};
	struct problem problem;
	int status = command_begin(&command_merge, arguments, count, &merge.settings, &result);

	if (status != COMMAND_GO_ON)
		return status;
	merge.inputs = result.operands;
	merge.input_count = result.operand_count;
	merge.sources = json_array();
	status = EXIT_SUCCESS;
	if (merge_make(&merge, &problem)) {
		message_error("%s", problem.text);
		status = EXIT_OWN_FAILURE;
	}
	json_decref(merge.sources);
	id_map_deinit(&merge.seen);
	resolved_deinit(&merge.settings);
	return status;
}

const struct command command_merge = {
	.name = "merge",
	.summary = "join the NCCL records of all ranks of a job",
	.synopsis = "merge [options] DIRECTORY... -o DIR",
	.text = "Joins the result directories of the ranks of a parallel job that ran with kymo's "
		"NCCL plugin into one, with the clocks of their hosts aligned: by the boot id "
		"where they ran on one machine, and by the collectives that they took part in, or "
		"else by the real-time clock, where they did not. The result says for each "
		"collective which rank was the last to enter and how much of the time was waiting "
		"for it, which were skipped or called differently, how fast the links between "
		"ranks are, and, of a job that stands still or was killed, which operation its "
		"ranks wait in and which have not come. `kymo report` reads the result like any "
		"other. Records are linked, not copied, where the file system is the same.",
	.examples = "kymo merge kymo-*-output/*/ -o all       every rank's results, as one\n"
		    "kymo report all                          the summary again\n"
		    "kymo report --format nccl --top 0 all    every row of every table\n",
	.grammar = &merge_grammar,
	.run = merge_run,
};
