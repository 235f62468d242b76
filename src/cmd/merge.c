/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * `kymo merge`: the results of all ranks of a job as one.
 *
 * Samples and regions of the ranks are added up (job/job.h), in this process, in several (-j), or
 * in as many as a batch system has: --shard makes parts, --join a result of them. NCCL records are
 * joined as one session (merging/nccl_files.h). Both can be in one result.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/nccl/nccl.h"
#include "analysis/open/open.h"
#include "cmd/commands.h"
#include "common/array.h"
#include "common/settings_value.h"
#include "console/message.h"
#include "files/atomic_file.h"
#include "job/part.h"
#include "job/results/results.h"
#include "launch/result_path.h"
#include "merging/inputs.h"
#include "merging/nccl_files.h"
#include "merging/output.h"
#include "merging/ranks.h"
#include "merging/report.h"
#include "output/formats/formats.h"
#include "output/summary/summary.h"
#include "runs/nccl_results.h"
#include "runs/results.h"

#define WATCH_INTERVAL_SECONDS 5
#define SHARDS_MAX             1000000
/* In nccl/operations.jsonl, whose lines have some 800 bytes: 256 MB. */
#define MERGE_OPERATIONS_WRITTEN_MAX 335000

struct merge_option_values {
	const char *output, *workers, *shard;
	bool no_trace, no_operations, watch, join;
};

struct merge_state {
	struct effective_settings settings;
	struct merge_option_values options;
	unsigned workers;
	size_t shard, shard_count;   /* shard: from 0; shard_count 0: no shards */
	struct result_place place;   /* of the result */
	struct merge_inputs inputs;  /* directories; of --join, those that the parts name */
	struct merge_inputs sources; /* those of them that something was taken of */
	struct job job;
	struct merge_nccl_files nccl;
	uint64_t unreadable_file_count; /* of NCCL: joined, and of no use */
	size_t unreachable_count;       /* directories with records of NCCL that parts name */
	bool is_live;                   /* processes still write records */
};

static const struct extra_option merge_extra_options[] = {
	{.name = "output",
	 .letter = 'o',
	 .metavar = "PATH",
	 .argument = OPTION_ARGUMENT_REQUIRED,
	 .apply = option_set_text,
	 .offset = offsetof(struct merge_option_values, output),
	 .help = "The result directory to create; with --shard, the file."},
	{.name = "jobs",
	 .letter = 'j',
	 .metavar = "N",
	 .argument = OPTION_ARGUMENT_REQUIRED,
	 .apply = option_set_text,
	 .offset = offsetof(struct merge_option_values, workers),
	 .help = "Read ranks with N processes at the same time. The result is the same."},
	{.name = "shard",
	 .metavar = "I/N",
	 .argument = OPTION_ARGUMENT_REQUIRED,
	 .apply = option_set_text,
	 .offset = offsetof(struct merge_option_values, shard),
	 .help = "Read only the I-th of N shares of the directories (1/N to N/N) and write a part "
		 "file, for --join."},
	{.name = "join",
	 .apply = option_set_flag,
	 .offset = offsetof(struct merge_option_values, join),
	 .help = "The operands are part files: make of them what one merge of all their "
		 "directories makes."},
	{.name = "no-trace",
	 .apply = option_set_flag,
	 .offset = offsetof(struct merge_option_values, no_trace),
	 .help = "Do not write trace.pftrace of NCCL, which is large with many ranks."},
	{.name = "no-operations",
	 .apply = option_set_flag,
	 .offset = offsetof(struct merge_option_values, no_operations),
	 .help = "Do not write nccl/operations.jsonl. It is also left out above 256 MB; kymo "
		 "report "
		 "--format nccl-operations writes it at any time."},
	{.name = "watch",
	 .apply = option_set_flag,
	 .offset = offsetof(struct merge_option_values, watch),
	 .help = "Join NCCL records again every 5 s until all processes have exited or gave no "
		 "sign for a minute. All other files are written at the end."},
	OPTION_QUIET_INITIALIZER,
	OPTION_VERBOSE_INITIALIZER,
	OPTION_HELP_INITIALIZER,
};

static bool merge_accepts_setting(enum setting_id id)
{
	return id == SETTING_FORCE || id == SETTING_TRACE_COMPRESS || id == SETTING_CONFIG_FILE ||
	       id == SETTING_COLOR || id == SETTING_DEBUG_PATH || id == SETTING_SYMBOL_CACHE ||
	       id == SETTING_SAMPLING_INCLUDE_INLINES;
}

static const struct options_grammar merge_grammar = {
	.command = "merge",
	.extra_options = merge_extra_options,
	.extra_option_count = ARRAY_SIZE(merge_extra_options),
	.accepts_setting = merge_accepts_setting,
};

/* ---- options ---- */

static int merge_parse_workers(struct merge_state *merge, struct problem *problem)
{
	const char *text = merge->options.workers;
	double number = 1;

	if (text &&
	    (setting_parse_number(setting_slice_from_text(text), &number) != SETTING_VALID ||
	     number < 1 || number > MERGE_WORKERS_MAX || number != (unsigned)number))
		return problem_set(problem, -EINVAL, "-j: '%s' is not a number from 1 to %u", text,
				   MERGE_WORKERS_MAX);
	merge->workers = (unsigned)number;
	return 0;
}

static int merge_parse_shard(struct merge_state *merge, struct problem *problem)
{
	const char *text = merge->options.shard;
	unsigned long shard, count;
	int end = 0;

	if (!text)
		return 0;
	if (strspn(text, "0123456789/") != strlen(text) || strlen(text) > 15 ||
	    sscanf(text, "%lu/%lu%n", &shard, &count, &end) != 2 || text[end] || shard < 1 ||
	    shard > count || count > SHARDS_MAX)
		return problem_set(problem, -EINVAL,
				   "--shard: '%s' is not I/N, as 1/8, with I from 1 to N", text);
	merge->shard = shard - 1;
	merge->shard_count = count;
	return 0;
}

static int merge_check_options(struct merge_state *merge, const struct parsed_command_line *line,
			       struct problem *problem)
{
	const struct merge_option_values *options = &merge->options;
	int error = merge_parse_workers(merge, problem);

	if (!error)
		error = merge_parse_shard(merge, problem);
	if (error)
		return error;
	if (!line->operand_count)
		return problem_set(
			problem, -EINVAL,
			options->join ? "no part files: kymo merge --join PART... -o DIR"
				      : "no result directories: kymo merge DIRECTORY... -o DIR");
	if (!options->output)
		return problem_set(problem, -EINVAL,
				   options->shard ? "no output file: name one with -o FILE"
						  : "no output directory: name one with -o DIR");
	if (options->join && (options->shard || options->workers || options->watch))
		return problem_set(problem, -EINVAL,
				   "--join is not possible with --shard, -j and --watch");
	if (options->shard && (options->workers || options->watch))
		return problem_set(problem, -EINVAL, "--shard is not possible with -j and --watch");
	return 0;
}

/* ---- ranks ---- */

/* What to install is said in the ranks' own results. */
static struct session_options merge_get_session_options(const struct merge_state *merge)
{
	struct session_options options = results_settings_to_session_options(&merge->settings);

	options.skip_advice = true;
	return options;
}

static int merge_sort_job(struct merge_state *merge, struct problem *problem)
{
	return job_sort(&merge->job) < 0 ? problem_set(problem, -ENOMEM, "out of memory") : 0;
}

static int merge_collect_job(struct merge_state *merge, struct problem *problem)
{
	struct session_options options = merge_get_session_options(merge);
	int error;

	job_deinit(&merge->job);
	error = merge_collect_ranks_by_workers(&merge->job, &merge->inputs, merge->workers,
					       &options, problem);
	return error ? error : merge_sort_job(merge, problem);
}

static void merge_check_nccl_records_are_reachable(struct merge_state *merge, const char *directory)
{
	if (merge_directory_has_records(directory, ".nccl"))
		return;
	message_error("the NCCL records in '%s' cannot be read here: join the parts where the "
		      "directories are",
		      directory);
	merge->unreachable_count++;
}

/* NCCL records are read from where the parts saw them. */
static int merge_join_job(struct merge_state *merge, char *const *parts, size_t count,
			  struct problem *problem)
{
	const struct job *job = &merge->job;
	int error = merge_join_parts(&merge->job, parts, count, problem), memory = 0;

	if (!error)
		error = merge_sort_job(merge, problem);
	if (error)
		return error;
	for (uint32_t i = 0; i < job->rank_count && !memory; i++) {
		if (job->ranks[i].flags & JOB_RANK_HAS_NCCL)
			merge_check_nccl_records_are_reachable(merge, job->ranks[i].directory);
		memory = merge_inputs_add(&merge->inputs, job->ranks[i].directory, NULL);
	}
	for (uint32_t i = 0; i < job->refused_count && !memory; i++) {
		if (!*job->refused[i].reason)
			merge_check_nccl_records_are_reachable(merge, job->refused[i].directory);
		memory = merge_inputs_add(&merge->inputs, job->refused[i].directory,
					  *job->refused[i].reason ? job->refused[i].reason : NULL);
	}
	merge_inputs_sort(&merge->inputs);
	merge->inputs.named_twice = 0;
	return memory ? problem_set(problem, -ENOMEM, "out of memory") : 0;
}

static size_t merge_report_refused(const struct merge_state *merge)
{
	size_t count = 0;

	for (uint32_t i = 0; i < merge->job.refused_count; i++) {
		if (!*merge->job.refused[i].reason)
			continue;
		message_error("%s", merge->job.refused[i].reason);
		count++;
	}
	return count;
}

/* ---- a part ---- */

static int merge_write_part_to_stream(const void *job, FILE *stream, struct problem *problem)
{
	return job_part_write(job, stream, problem);
}

static int merge_write_shard(struct merge_state *merge, struct problem *problem)
{
	struct session_options options = merge_get_session_options(merge);
	size_t refused;
	int error;

	if (!effective_setting_bool(&merge->settings, SETTING_FORCE) &&
	    !access(merge->options.output, F_OK))
		return problem_set(problem, -EEXIST, "'%s' exists; --force overwrites it",
				   merge->options.output);
	error = merge_collect_ranks(&merge->job, &merge->inputs, merge->shard, merge->shard_count,
				    &options, problem);
	if (!error)
		error = merge_sort_job(merge, problem);
	if (!error)
		error = atomic_file_write_by_callback(merge->options.output,
						      merge_write_part_to_stream, &merge->job, NULL,
						      problem);
	if (error)
		return error;
	refused = merge_report_refused(merge);
	return refused ? problem_set(problem, -ENODATA,
				     "%zu director%s missing from '%s'; see the errors above",
				     refused, refused == 1 ? "y is" : "ies are",
				     merge->options.output)
		       : 0;
}

/* ---- NCCL ---- */

static int merge_write_nccl_results(struct merge_state *merge, struct problem *problem)
{
	struct output_options options = {
		.is_compressed = effective_setting_bool(&merge->settings, SETTING_TRACE_COMPRESS)};
	struct session_options session_options = {
		.skip_symbolizing = true,
		.results_display_name = message_get_shown_path(merge->place.path)};
	const char *output = merge->place.path;
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

/* Also lists what something was taken of. */
static int merge_add_nccl_files(struct merge_state *merge, struct problem *problem)
{
	int error = 0;

	merge_nccl_files_restart(&merge->nccl);
	merge_inputs_deinit(&merge->sources);
	for (size_t i = 0; !error && i < merge->inputs.count; i++) {
		const struct merge_input *input = &merge->inputs.list[i];
		size_t files;

		if (input->reason)
			continue;
		error = merge_nccl_files_add(&merge->nccl, input->directory, &files, problem);
		if (!error && files &&
		    merge_inputs_add(&merge->sources, input->directory, NULL) < 0)
			error = problem_set(problem, -ENOMEM, "out of memory");
	}
	for (uint32_t i = 0; !error && i < merge->job.rank_count; i++) {
		if (merge_inputs_add(&merge->sources, merge->job.ranks[i].directory, NULL) < 0)
			error = problem_set(problem, -ENOMEM, "out of memory");
	}
	merge_inputs_sort(&merge->sources);
	return error;
}

/* Files of ranks that begin later come with the next time. */
static int merge_watch_nccl_files(struct merge_state *merge, struct problem *problem)
{
	int error = 0;

	while (!error && merge->is_live) {
		sleep(WATCH_INTERVAL_SECONDS);
		error = merge_add_nccl_files(merge, problem);
		if (!error)
			error = merge_write_nccl_results(merge, problem);
	}
	return error;
}

/* ---- the result ---- */

static int merge_write_job(const struct merge_state *merge, struct problem *problem)
{
	int error = job_write_all_files(&merge->job, merge->place.path, problem);

	if (!error && message_get_verbosity() >= 0)
		error = job_write_text(&merge->job, MERGE_REPORT_TABLE_ROWS, stdout, problem);
	return error;
}

/* While NCCL's records are watched, ranks run: their samples are read at the end. */
static int merge_finish_watching(struct merge_state *merge, struct problem *problem)
{
	int error = merge_watch_nccl_files(merge, problem);

	if (!error)
		error = merge_collect_job(merge, problem);
	if (!error)
		error = merge_add_nccl_files(merge, problem);
	return error ? error : merge_output_write_launch(&merge->place, &merge->sources, problem);
}

static int merge_write_results(struct merge_state *merge, struct problem *problem)
{
	int error = merge_output_write_launch(&merge->place, &merge->sources, problem);

	if (!merge->nccl.file_count)
		merge_output_remove_empty_spool(&merge->place);
	if (!error && merge->job.rank_count && !merge->options.watch)
		error = merge_write_job(merge, problem);
	if (!error && merge->nccl.file_count)
		error = merge_write_nccl_results(merge, problem);
	if (!error && merge->is_live)
		error = merge_finish_watching(merge, problem);
	if (!error && merge->job.rank_count && merge->options.watch)
		error = merge_write_job(merge, problem);
	return error;
}

static int merge_set_missing_data_problem(const struct merge_state *merge, size_t refused,
					  struct problem *problem)
{
	const char *output = merge->options.output;

	if (refused)
		return problem_set(problem, -ENODATA,
				   "%zu of %zu director%s missing from '%s'; see the errors "
				   "above",
				   refused, merge->inputs.count,
				   merge->inputs.count == 1 ? "y is" : "ies are", output);
	if (merge->unreachable_count)
		return problem_set(problem, -ENODATA,
				   "NCCL records of %zu director%s are missing from '%s'; see the "
				   "errors above",
				   merge->unreachable_count,
				   merge->unreachable_count == 1 ? "y" : "ies", output);
	if (merge->nccl.unusable_count)
		return problem_set(problem, -ENODATA,
				   "%zu file%s missing from '%s'; see the errors above",
				   merge->nccl.unusable_count,
				   merge->nccl.unusable_count == 1 ? " is" : "s are", output);
	if (merge->unreadable_file_count)
		return problem_set(problem, -ENODATA,
				   "%llu files of records in '%s' cannot be read, so their ranks "
				   "are missing; nccl/summary.txt says why",
				   (unsigned long long)merge->unreadable_file_count, output);
	return 0;
}

static int merge_into_result(struct merge_state *merge, struct problem *problem)
{
	size_t refused;
	int error = merge_output_open(merge->options.output,
				      effective_setting_bool(&merge->settings, SETTING_FORCE),
				      &merge->inputs, &merge->place, problem);

	if (error)
		return error;
	merge->nccl.output_directory = merge->place.path;
	error = merge_output_make_spool(&merge->place, problem);
	if (!error && !merge->options.join)
		error = merge_collect_job(merge, problem);
	if (!error)
		error = merge_add_nccl_files(merge, problem);
	refused = error ? 0 : merge_report_refused(merge);
	if (!error && !merge->nccl.file_count && !merge->job.rank_count)
		error = problem_set(problem, -ENODATA, "nothing to merge");
	if (error) {
		merge_output_remove_if_empty(&merge->place);
		return error;
	}
	if (merge->inputs.named_twice)
		message_warning("%zu director%s named more than once; each is used once",
				merge->inputs.named_twice,
				merge->inputs.named_twice == 1 ? "y was" : "ies were");
	if (merge->nccl.duplicate_count)
		message_warning("%zu file%s named more than once; each is used once",
				merge->nccl.duplicate_count,
				merge->nccl.duplicate_count == 1 ? " was" : "s were");
	error = merge_write_results(merge, problem);
	return error ? error : merge_set_missing_data_problem(merge, refused, problem);
}

static int merge_run(struct merge_state *merge, const struct parsed_command_line *line,
		     struct problem *problem)
{
	int error = merge_check_options(merge, line, problem);

	if (!error && merge->options.join)
		error = merge_join_job(merge, line->operands, line->operand_count, problem);
	else if (!error)
		error = merge_inputs_find(line->operands, line->operand_count,
					  merge->options.output, &merge->inputs, problem);
	if (error)
		return error;
	return merge->options.shard ? merge_write_shard(merge, problem)
				    : merge_into_result(merge, problem);
}

static int merge_run_command(char **arguments, size_t count)
{
	struct merge_state merge = {.place = {.descriptor = -1}};
	struct parsed_command_line line = {.context = &merge.options};
	struct problem problem;
	int status = command_parse_and_read_settings(&merge_command_description, arguments, count,
						     &merge.settings, &line);

	if (status != COMMAND_CONTINUE)
		return status;
	job_init(&merge.job);
	status = EXIT_SUCCESS;
	if (merge_run(&merge, &line, &problem)) {
		message_error("%s", problem.text);
		status = EXIT_KYMO_FAILED;
	}
	job_deinit(&merge.job);
	merge_nccl_files_deinit(&merge.nccl);
	merge_inputs_deinit(&merge.inputs);
	merge_inputs_deinit(&merge.sources);
	result_place_deinit(&merge.place);
	effective_deinit(&merge.settings);
	return status;
}

const struct command merge_command_description = {
	.name = "merge",
	.summary = "make one result of the results of all ranks of a job",
	.synopsis = "merge [options] DIRECTORY... -o DIR\n"
		    "       kymo merge --shard I/N [options] DIRECTORY... -o PART\n"
		    "       kymo merge --join [options] PART... -o DIR",
	.text = "Merges the results of the ranks of a parallel job. A directory is the result of a "
		"rank, or holds results of ranks. For each function, call path, region and MPI "
		"call "
		"the result has the mean, minimum, maximum and standard deviation over the ranks, "
		"the ranks at both ends and the time lost to imbalance; it shows how long each "
		"rank waits in MPI, which rank the others wait for, and what that rank does "
		"meanwhile. Ranks that are missing or incomplete are named beside every table. "
		"Memory is that of one rank and of the result, and the result does not depend on "
		"the order of the directories or on how they were divided (-j, --shard).\n"
		"NCCL records are joined into one session. kymo aligns the "
		"clocks of the hosts: by the boot ID for ranks of one machine, else by the "
		"collectives that both took part in, else by the real-time clock. The result shows "
		"for each collective which rank entered last and how long the others waited, which "
		"collectives were skipped or called differently, and how fast the links between "
		"ranks are. For a job that hangs or was killed it shows which operation the ranks "
		"wait in and which ranks have not entered it. `kymo report` reads the result like "
		"any other. Records are linked instead of copied if the file system is the same.",
	.examples = "kymo merge kymo-prog-output -o all       the last run's ranks, as one\n"
		    "kymo merge -j 8 scaling -o all           eight at the same time\n"
		    "kymo merge --shard 3/64 scaling -o p.3   a part, in one task of a batch job\n"
		    "kymo merge --join p.* -o all             and all of them\n"
		    "kymo report all                          the summary again\n"
		    "kymo report --format nccl --top 0 all    every row of every table\n",
	.grammar = &merge_grammar,
	.run = merge_run_command,
	.operands = COMMAND_OPERANDS_RESULTS,
};
