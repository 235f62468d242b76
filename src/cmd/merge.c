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
#include "analysis/nccl/nccl.h"
#include "analysis/open/open.h"
#include "cmd/commands.h"
#include "common/array.h"
#include "common/foreign_file.h"
#include "common/settings_value.h"
#include "common/trusted_path.h"
#include "console/message.h"
#include "launch/result_path.h"
#include "output/formats/formats.h"
#include "output/summary/summary.h"
#include "runs/nccl_results.h"
#include "runs/results.h"

#define COPY_CHUNK_BYTES       (8u << 20)
#define WATCH_INTERVAL_SECONDS 5

/* In nccl/operations.jsonl, whose lines have some 800 bytes: 256 MB. */
#define MERGE_OPERATIONS_WRITTEN_MAX 335000

#define MERGE_NCCL_FILE_SUFFIX          ".nccl"
#define MERGE_GPU_FILE_SUFFIX           ".gpu"
#define MERGE_SUFFIX_ADDED_TO_GPU_FILES ".kernels" /* what is behind .gpu in a merged result */

struct merge_option_values {
	const char *output_directory;
	bool no_trace, no_operations, watch;
};

struct merge_state {
	struct effective_settings settings;
	struct merge_option_values options;
	struct result_place place; /* of the result */
	char **input_directories;
	size_t input_directory_count;
	size_t nccl_file_count, bytes_copied, duplicate_file_count;
	size_t unusable_directory_count, unusable_file_count; /* directories; files of the others */
	uint64_t unreadable_file_count;                       /* joined, and of no use */
	bool is_live;                                         /* processes still write records */
	struct id_map seen;                                   /* device and inode -> file */
	json_t *source_directories;
};

static const struct extra_option merge_extra_options[] = {
	{.name = "output",
	 .letter = 'o',
	 .metavar = "DIR",
	 .argument = OPTION_ARGUMENT_REQUIRED,
	 .apply = option_set_text,
	 .offset = offsetof(struct merge_option_values, output_directory),
	 .help = "The result directory to create."},
	{.name = "no-trace",
	 .apply = option_set_flag,
	 .offset = offsetof(struct merge_option_values, no_trace),
	 .help = "Do not write trace.pftrace, which is large with many ranks."},
	{.name = "no-operations",
	 .apply = option_set_flag,
	 .offset = offsetof(struct merge_option_values, no_operations),
	 .help = "Do not write nccl/operations.jsonl. It is also left out above 256 MB; kymo "
		 "report "
		 "--format nccl-operations writes it at any time."},
	{.name = "watch",
	 .apply = option_set_flag,
	 .offset = offsetof(struct merge_option_values, watch),
	 .help = "Join again every 5 s until all processes have exited or gave no sign for a "
		 "minute. The trace and the list of operations are written at the end."},
	OPTION_QUIET_INITIALIZER,
	OPTION_VERBOSE_INITIALIZER,
	OPTION_HELP_INITIALIZER,
};

static bool merge_accepts_setting(enum setting_id id)
{
	return id == SETTING_FORCE || id == SETTING_TRACE_COMPRESS || id == SETTING_CONFIG_FILE ||
	       id == SETTING_COLOR;
}

static const struct options_grammar merge_grammar = {
	.command = "merge",
	.extra_options = merge_extra_options,
	.extra_option_count = ARRAY_SIZE(merge_extra_options),
	.accepts_setting = merge_accepts_setting,
};

/* ---- one file ---- */

static int merge_copy_file(struct merge_state *merge, int in, const char *from, const char *to,
			   struct problem *problem)
{
	int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666), error = 0;
	ssize_t sent = 0;

	if (out < 0)
		error = -errno;
	while (!error && (sent = sendfile(out, in, NULL, COPY_CHUNK_BYTES)) != 0) {
		if (sent < 0)
			error = -errno;
		else
			merge->bytes_copied += (size_t)sent;
	}
	if (out >= 0 && close(out) && !error)
		error = -errno;
	if (error && out >= 0)
		unlink(to);
	return error ? problem_set(problem, error, "cannot copy '%s' to '%s': %s", from, to,
				   strerror(-error))
		     : 0;
}

/* The same directory named twice, or once by itself and once by its `latest`. */
static bool merge_was_file_seen_else_mark_seen(struct merge_state *merge, const struct stat *status)
{
	uint64_t key = id_map_hash_key((uint64_t)status->st_dev) ^ (uint64_t)status->st_ino;

	if (id_map_get(&merge->seen, key) != ID_MAP_NONE)
		return true;
	return id_map_set(&merge->seen, key, 1) < 0; /* without memory nothing else will work */
}

static bool merge_name_ends_with(const char *name, const char *end)
{
	size_t length = strlen(name), end_length = strlen(end);

	return length > end_length && !strcmp(name + length - end_length, end);
}

/* What cannot be read is one rank's fault, and the others are joined. A descriptor, or negative. */
static int merge_open_input_file(struct merge_state *merge, const char *path, struct stat *ret)
{
	int file = foreign_open_file(&foreign_policy_of_result_files, path, ret);

	if (file >= 0)
		return file;
	message_error("cannot join '%s': %s", path, foreign_error_to_text(file));
	merge->unusable_file_count++;
	return file;
}

/* A file of our own need not be copied; that of somebody else could change under the result. */
static int merge_hard_link_file_if_owner_trusted(int file, const struct stat *status,
						 const char *to)
{
	char from[32];

	if (!is_trusted_file_status(status))
		return -EPERM;
	snprintf(from, sizeof(from), "/proc/self/fd/%d", file);
	return linkat(AT_FDCWD, from, AT_FDCWD, to, AT_SYMLINK_FOLLOW) ? -errno : 0;
}

/* Names begin with the number of the directory: the first one named is the first one read, and its
 * host's clock is that of the result. */
static int merge_add_input_file(struct merge_state *merge, const char *from, const char *name,
				size_t input, struct problem *problem)
{
	bool is_gpu = merge_name_ends_with(name, MERGE_GPU_FILE_SUFFIX);
	struct stat status;
	char to[PATH_MAX];
	int in = merge_open_input_file(merge, from, &status), error = 0;

	if (in < 0)
		return 0;
	if (merge_was_file_seen_else_mark_seen(merge, &status)) {
		merge->duplicate_file_count += !is_gpu;
		close(in);
		return 0;
	}
	if (snprintf(to, sizeof(to), "%s/spool/%06zu-%s%s", merge->options.output_directory, input,
		     name, is_gpu ? MERGE_SUFFIX_ADDED_TO_GPU_FILES : "") >= (int)sizeof(to))
		error = problem_set(problem, -ENAMETOOLONG, "'%s' is too long a path", from);
	else if (merge_hard_link_file_if_owner_trusted(in, &status, to))
		error = merge_copy_file(merge, in, from, to, problem);
	close(in);
	merge->nccl_file_count += !error && merge_name_ends_with(name, MERGE_NCCL_FILE_SUFFIX);
	return error;
}

/* ---- one directory ---- */

static int merge_is_nccl_record_file(const struct dirent *entry)
{
	return merge_name_ends_with(entry->d_name, MERGE_NCCL_FILE_SUFFIX);
}

static int merge_is_gpu_record_file(const struct dirent *entry)
{
	return merge_name_ends_with(entry->d_name, MERGE_GPU_FILE_SUFFIX) ||
	       merge_name_ends_with(entry->d_name, MERGE_SUFFIX_ADDED_TO_GPU_FILES);
}

static int merge_is_earlier_output_file(const struct dirent *entry)
{
	return merge_is_nccl_record_file(entry) ||
	       merge_name_ends_with(entry->d_name, MERGE_SUFFIX_ADDED_TO_GPU_FILES);
}

static int merge_add_matching_files(struct merge_state *merge, const char *spool, size_t input,
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
			error = merge_add_input_file(merge, path, names[i]->d_name, input, problem);
		free(names[i]);
	}
	free(names);
	*ret_files = (size_t)count;
	return error;
}

/* GPUs' records tell how long NCCL's kernels took, and are taken for that alone. */
static int merge_add_nccl_and_gpu_record_files(struct merge_state *merge, const char *spool,
					       size_t input, size_t *ret_files,
					       struct problem *problem)
{
	int error = merge_add_matching_files(merge, spool, input, merge_is_nccl_record_file,
					     ret_files, problem);
	size_t kernels;

	if (!error && *ret_files)
		error = merge_add_matching_files(merge, spool, input, merge_is_gpu_record_file,
						 &kernels, problem);
	return error;
}

/* A directory that is of no use is said and counted; the others are joined. */
static int merge_add_input_directory(struct merge_state *merge, size_t input,
				     struct problem *problem)
{
	struct problem here;
	char *directory, *spool;
	size_t files = 0;
	int error =
		result_directory_find_existing(merge->input_directories[input], &directory, &here);

	if (error) {
		message_error("%s", here.text);
		merge->unusable_directory_count++;
		return 0;
	}
	if (asprintf(&spool, "%s/spool", directory) < 0) {
		free(directory);
		return problem_set(problem, -ENOMEM, "out of memory");
	}
	if (access(spool, R_OK | X_OK)) {
		message_error("'%s' has no recorded data: cannot read spool/: %s", directory,
			      strerror(errno));
		merge->unusable_directory_count++;
	} else {
		error = merge_add_nccl_and_gpu_record_files(merge, spool, input, &files, problem);
		if (!error && !files) {
			message_error("'%s' has no NCCL records: start the processes with "
				      "NCCL_PROFILER_PLUGIN=kymo, or under kymo sample",
				      directory);
			merge->unusable_directory_count++;
		}
	}
	if (files)
		json_array_append_new(merge->source_directories, json_string(directory));
	free(spool);
	free(directory);
	return error;
}

/* ---- the result ---- */

/* What ran, from the first directory that says it. */
static json_t *merge_read_command_line_json(const struct merge_state *merge)
{
	size_t count = json_array_size(merge->source_directories);

	for (size_t i = 0; i < count; i++) {
		const char *directory =
			json_string_value(json_array_get(merge->source_directories, i));
		json_t *root, *command;
		char path[PATH_MAX];
		FILE *stream;

		if (snprintf(path, sizeof(path), "%s/launch.json", directory ? directory : "") >=
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

static int merge_write_launch_json(const struct merge_state *merge, struct problem *problem)
{
	json_t *root;
	FILE *stream;
	char path[PATH_MAX];
	int error = 0;

	if (snprintf(path, sizeof(path), "%s/launch.json", merge->options.output_directory) >=
	    (int)sizeof(path))
		return problem_set(problem, -ENAMETOOLONG, "'%s' is too long a path",
				   merge->options.output_directory);
	root = json_object();
	json_object_set_new(root, "schema", json_string("kymo.launch/1"));
	json_object_set_new(root, "kymo_version", json_string(KYMO_VERSION));
	json_object_set_new(root, "command", merge_read_command_line_json(merge));
	json_object_set(root, "merged_from", merge->source_directories);
	errno = ENOMEM;
	unlink(path);
	stream = fopen(path, "wxe");
	if (!stream || json_dumpf(root, stream, JSON_INDENT(2)) || fflush(stream))
		error = problem_set(problem, -errno, "cannot write '%s': %s", path,
				    strerror(errno));
	if (stream)
		fclose(stream);
	json_decref(root);
	return error;
}

static bool merge_directory_is_empty(const char *path)
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
static void merge_remove_earlier_output(const char *spool)
{
	struct dirent **names;
	int count = scandir(spool, &names, merge_is_earlier_output_file, alphasort);

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
static bool merge_output_is_input(const struct merge_state *merge, const char *spool)
{
	struct stat output, input;
	bool found = false;

	if (stat(spool, &output))
		return false;
	for (size_t i = 0; !found && i < merge->input_directory_count; i++) {
		struct problem problem;
		char *directory, path[PATH_MAX];

		if (result_directory_find_existing(merge->input_directories[i], &directory,
						   &problem))
			continue;
		found = snprintf(path, sizeof(path), "%s/spool", directory) < (int)sizeof(path) &&
			!stat(path, &input) && input.st_dev == output.st_dev &&
			input.st_ino == output.st_ino;
		free(directory);
	}
	return found;
}

static int merge_make_output_directory(struct merge_state *merge, struct problem *problem)
{
	const char *output = merge->options.output_directory;
	char spool[PATH_MAX];
	int error;

	if (!effective_setting_bool(&merge->settings, SETTING_FORCE) && !access(output, F_OK) &&
	    !merge_directory_is_empty(output))
		return problem_set(problem, -EEXIST, "'%s' exists; --force overwrites it", output);
	if (snprintf(spool, sizeof(spool), "%s/spool", output) >= (int)sizeof(spool))
		return problem_set(problem, -ENAMETOOLONG, "'%s' is too long a path", output);
	if (merge_output_is_input(merge, spool))
		return problem_set(problem, -EINVAL,
				   "'%s' is one of the results to join: name another directory",
				   output);
	error = result_directory_open_or_create(output, &merge->place, problem);
	if (error)
		return error;
	if (merge->place.descriptor >= 0)
		merge->options.output_directory = merge->place.path;
	if (snprintf(spool, sizeof(spool), "%s/spool", merge->options.output_directory) >=
	    (int)sizeof(spool))
		return problem_set(problem, -ENAMETOOLONG, "'%s' is too long a path", output);
	if (mkdir(spool, 0777) && errno != EEXIST)
		return problem_set(problem, -errno, "cannot make '%s': %s", spool, strerror(errno));
	merge_remove_earlier_output(spool);
	return 0;
}

/* So that the next try need not be forced; what holds anything stays. */
static void merge_remove_empty_output(const struct result_place *place)
{
	char spool[PATH_MAX];

	if (snprintf(spool, sizeof(spool), "%s/spool", place->path) < (int)sizeof(spool) &&
	    !rmdir(spool))
		result_place_remove_if_empty(place);
}

static int merge_write_results(struct merge_state *merge, struct problem *problem)
{
	struct output_options options = {
		.is_compressed = effective_setting_bool(&merge->settings, SETTING_TRACE_COMPRESS)};
	struct session_options session_options = {
		.skip_symbolizing = true,
		.results_display_name = message_get_shown_path(merge->options.output_directory)};
	const char *output = merge->options.output_directory;
	struct session *session;
	int error = session_open(output, &session_options, &session, problem);

	if (error)
		return error;
	merge->is_live = merge->options.watch && nccl_results_are_live(session);
	if (session_get_nccl_data(session))
		merge->unreadable_file_count = session_get_nccl_data(session)->unreadable_files;
	error = nccl_results_write(
		session, output, "",
		merge->options.no_operations || merge->is_live ? 0 : MERGE_OPERATIONS_WRITTEN_MAX,
		problem);
	if (!error && !merge->options.no_trace && !merge->is_live)
		error = output_write_file(session, output_find_format("perfetto"), &options, output,
					  "", NULL, problem);
	if (!error && message_get_verbosity() >= 0)
		error = output_write_summary(session, &options, stdout,
					     message_uses_color(STDOUT_FILENO), problem);
	session_close(session);
	return error;
}

static int merge_add_all_input_directories(struct merge_state *merge, struct problem *problem)
{
	int error = 0;

	id_map_deinit(&merge->seen);
	merge->nccl_file_count = merge->duplicate_file_count = 0;
	merge->unusable_directory_count = merge->unusable_file_count = 0;
	json_array_clear(merge->source_directories);
	for (size_t i = 0; !error && i < merge->input_directory_count; i++)
		error = merge_add_input_directory(merge, i, problem);
	return error;
}

/* Files of ranks that begin later come with the next time. */
static int merge_watch_inputs(struct merge_state *merge, struct problem *problem)
{
	char spool[PATH_MAX];
	int error = 0;

	snprintf(spool, sizeof(spool), "%s/spool", merge->options.output_directory);
	while (!error && merge->is_live) {
		sleep(WATCH_INTERVAL_SECONDS);
		merge_remove_earlier_output(spool);
		error = merge_add_all_input_directories(merge, problem);
		if (!error)
			error = merge_write_results(merge, problem);
	}
	return error ? error : merge_write_launch_json(merge, problem);
}

static int merge_inputs_into_result(struct merge_state *merge, struct problem *problem)
{
	int error;

	if (!merge->input_directory_count)
		return problem_set(problem, -EINVAL,
				   "no result directories: kymo merge DIRECTORY... -o DIR");
	if (!merge->options.output_directory)
		return problem_set(problem, -EINVAL, "no output directory: name one with -o DIR");
	error = merge_make_output_directory(merge, problem);
	if (!error)
		error = merge_add_all_input_directories(merge, problem);
	if (error)
		return error;
	if (!merge->nccl_file_count) {
		merge_remove_empty_output(&merge->place);
		return problem_set(problem, -ENODATA, "nothing to merge");
	}
	if (merge->duplicate_file_count)
		message_warning("%zu files were named more than once; each is used once",
				merge->duplicate_file_count);
	error = merge_write_launch_json(merge, problem);
	if (!error)
		error = merge_write_results(merge, problem);
	if (!error)
		error = merge_watch_inputs(merge, problem);
	if (!error && merge->unusable_directory_count)
		error = problem_set(
			problem, -ENODATA,
			"%zu of %zu directories are missing from '%s'; see the errors above",
			merge->unusable_directory_count, merge->input_directory_count,
			merge->options.output_directory);
	else if (!error && merge->unusable_file_count)
		error = problem_set(problem, -ENODATA,
				    "%zu files are missing from '%s'; see the errors above",
				    merge->unusable_file_count, merge->options.output_directory);
	else if (!error && merge->unreadable_file_count)
		error = problem_set(problem, -ENODATA,
				    "%llu files of records in '%s' cannot be read, so their ranks "
				    "are missing; nccl/summary.txt says why",
				    (unsigned long long)merge->unreadable_file_count,
				    merge->options.output_directory);
	return error;
}

static int merge_run_command(char **arguments, size_t count)
{
	struct merge_state merge = {.place = {.descriptor = -1}};
	struct parsed_command_line result = {.context = &merge.options};
	struct problem problem;
	int status = command_parse_and_read_settings(&merge_command_description, arguments, count,
						     &merge.settings, &result);

	if (status != COMMAND_CONTINUE)
		return status;
	merge.input_directories = result.operands;
	merge.input_directory_count = result.operand_count;
	merge.source_directories = json_array();
	status = EXIT_SUCCESS;
	if (merge_inputs_into_result(&merge, &problem)) {
		message_error("%s", problem.text);
		status = EXIT_KYMO_FAILED;
	}
	result_place_deinit(&merge.place);
	json_decref(merge.source_directories);
	id_map_deinit(&merge.seen);
	effective_deinit(&merge.settings);
	return status;
}

const struct command merge_command_description = {
	.name = "merge",
	.summary = "join the NCCL records of all ranks of a job",
	.synopsis = "merge [options] DIRECTORY... -o DIR",
	.text = "Joins the NCCL records of all ranks of a parallel job into one result. CPU "
		"samples and regions of the ranks stay in their own results. kymo aligns the "
		"clocks of the hosts: by the boot ID for ranks of one machine, else by the "
		"collectives that both took part in, else by the real-time clock. The result shows "
		"for each collective which rank entered last and how long the others waited, which "
		"collectives were skipped or called differently, and how fast the links between "
		"ranks are. For a job that hangs or was killed it shows which operation the ranks "
		"wait in and which ranks have not entered it. `kymo report` reads the result like "
		"any other. Records are linked instead of copied if the file system is the same.",
	.examples = "kymo merge kymo-*-output/*/ -o all       every rank's results, as one\n"
		    "kymo report all                          the summary again\n"
		    "kymo report --format nccl --top 0 all    every row of every table\n",
	.grammar = &merge_grammar,
	.run = merge_run_command,
	.operands = COMMAND_OPERANDS_RESULTS,
};
