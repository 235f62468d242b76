/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * `kymo ctl`: starts and stops collection in processes that run under kymo, and asks how they are.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "analysis/session.h"
#include "cmd/command.h"
#include "cmd/ctl_process.h"
#include "cmd/listing.h"
#include "cmd/message.h"
#include "cmd/nearest.h"
#include "common/settings_value.h"
#include "output/format.h"

struct ctl_options {
	bool tree;
};

static const struct option_extra ctl_extras[] = {
	{.name = "tree",
	 .apply = option_set_flag,
	 .offset = offsetof(struct ctl_options, tree),
	 .help = "All processes of the session that PID belongs to."},
	OPTION_QUIET,
	OPTION_VERBOSE,
	OPTION_HELP,
};

static bool ctl_accepts(enum setting_id id)
{
	return id == SETTING_COLOR;
}

static const struct options_grammar ctl_grammar = {
	.command = "ctl",
	.extras = ctl_extras,
	.extra_count = sizeof(ctl_extras) / sizeof(ctl_extras[0]),
	.accepts = ctl_accepts,
};

/* What a word asks for; 0: to look only. */
static const struct {
	const char *word;
	uint32_t command;
} ctl_words[] = {{"start", SPOOL_CONTROL_START},
		 {"stop", SPOOL_CONTROL_STOP},
		 {"flush", SPOOL_CONTROL_FLUSH},
		 {"status", 0}};

enum { CTL_WORDS = sizeof(ctl_words) / sizeof(ctl_words[0]) };

static void ctl_print_losses(const struct spool_file_header *header)
{
	const char *joint = "  lost:";

	for (unsigned i = 0; i < SPOOL_LOSS_COUNT; i++) {
		if (!header->losses[i])
			continue;
		printf("%s %s %s", joint, quantity_count(header->losses[i]).text,
		       spool_loss_name((enum spool_loss)i));
		joint = ",";
	}
	if (joint[0] == ',')
		putchar('\n');
}

static void ctl_print_status(const struct ctl_process *process)
{
	const struct spool_file_header *header = process->header;

	printf("%ld (", (long)process->pid);
	listing_text(stdout, process->name);
	printf("): %s\n", __atomic_load_n(&header->collecting, __ATOMIC_ACQUIRE)
				  ? "collecting"
				  : "not collecting");
	printf("  %s samples, %s region events\n", quantity_count(header->samples).text,
	       quantity_count(header->region_events).text);
	ctl_print_losses(header);
	printf("  %s in ", quantity_bytes(header->file_size).text);
	listing_text(stdout, process->path);
	putchar('\n');
}

static int ctl_one(pid_t pid, uint32_t command, struct problem *problem)
{
	struct ctl_process process;
	int error = ctl_process_open(pid, &process, problem);

	if (!error && command)
		error = ctl_process_ask(&process, (enum spool_control)command, problem);
	if (!error && !command)
		ctl_print_status(&process);
	ctl_process_close(&process);
	return error;
}

/* A process that ends while the others are asked is no failure. */
static int ctl_tree(pid_t pid, uint32_t command, struct problem *problem)
{
	struct ctl_process process;
	pid_t *pids = NULL;
	size_t count = 0;
	int error = ctl_process_open(pid, &process, problem), failed = 0;

	if (!error)
		error = ctl_session_processes(&process, &pids, &count, problem);
	ctl_process_close(&process);
	for (size_t i = 0; !error && i < count; i++) {
		struct problem one;
		int result = ctl_one(pids[i], command, &one);

		if (!result || (i && (result == -ESRCH || result == -ENOENT)))
			continue;
		if (failed)
			message_error("%s", problem->text);
		*problem = one;
		failed = result;
	}
	free(pids);
	return error ? error : failed;
}

static int ctl_parse_pid(const char *text, pid_t *ret, struct problem *problem)
{
	int64_t number;

	if (setting_parse_integer(setting_slice(text), &number) || number < 1 || number > INT32_MAX)
		return problem_set(problem, -EINVAL, "'%.100s' is no process id", text);
	*ret = (pid_t)number;
	return 0;
}

static int ctl_parse_word(const char *text, uint32_t *ret, struct problem *problem)
{
	struct nearest nearest;
	char hint[64];

	nearest_init(&nearest, text, strlen(text));
	for (unsigned i = 0; i < CTL_WORDS; i++) {
		*ret = ctl_words[i].command;
		if (!strcmp(ctl_words[i].word, text))
			return 0;
		nearest_offer(&nearest, ctl_words[i].word, strlen(ctl_words[i].word));
	}
	return problem_set(problem, -EINVAL,
			   "cannot '%.100s' a process%s (kymo ctl PID start|stop|flush|status)",
			   text, nearest_hint(&nearest, "", hint, sizeof(hint)));
}

static int ctl_do(const struct options_result *result, const struct ctl_options *options,
		  struct problem *problem)
{
	uint32_t command = 0;
	pid_t pid = 0;
	int error;

	if (result->operand_count < 1 || result->operand_count > 2)
		return problem_set(problem, -EINVAL,
				   "which process, and what? kymo ctl PID start|stop|flush|status");
	error = ctl_parse_pid(result->operands[0], &pid, problem);
	if (!error && result->operand_count == 2)
		error = ctl_parse_word(result->operands[1], &command, problem);
	if (error)
		return error;
	return options->tree ? ctl_tree(pid, command, problem) : ctl_one(pid, command, problem);
}

static int ctl_run(char **arguments, size_t count)
{
	struct resolved settings;
	struct ctl_options options = {0};
	struct options_result result = {.context = &options};
	struct problem problem;
	int status = command_begin(&command_ctl, arguments, count, &settings, &result), error;

	if (status != COMMAND_GO_ON)
		return status;
	error = ctl_do(&result, &options, &problem);
	if (error)
		message_error("%s", problem.text);
	resolved_deinit(&settings);
	return error ? EXIT_OWN_FAILURE : message_end_answer(EXIT_SUCCESS);
}

const struct command command_ctl = {
	.name = "ctl",
	.summary = "start, stop or look at collection in a running process",
	.synopsis = "ctl [options] PID [start|stop|flush|status]",
	.text = "Asks a process that runs under kymo to start or stop collecting, to make all it "
		"has "
		"recorded part of its file, or how it is (the default). Returns when it is "
		"done.\n\n"
		"A stop lasts until a start, whoever says it: kymo ctl, the program with "
		"kymo_stop_trace(), or CONTROL_SIGNAL. Windows (kymo help windows) go on in the "
		"meantime; both must be open. With --init-enabled=off the windows begin with the "
		"first start.",
	.examples = "kymo sample --init-enabled=off -- ./server     profile nothing yet\n"
		    "kymo ctl 1234 start                            from now on\n"
		    "kymo ctl 1234 stop --tree                      and its children no more\n",
	.words = "start stop flush status",
	.grammar = &ctl_grammar,
	.run = ctl_run,
};
