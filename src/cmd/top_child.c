/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The kymo that samples for `kymo top`: its directory, its start and its end.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cmd/commands.h"
#include "cmd/top.h"
#include "common/array.h"
#include "console/message.h"

#define FREQ_DEFAULT    "100"
#define END_OF_CHILD_MS 30000
#define SAY_WAITING_MS  2000
#define ARGUMENTS_MAX   16
#define MS              1000000

/* Nothing is in it, or it may be overwritten. */
static bool top_directory_is_free(const struct top_command *command, const char *path)
{
	DIR *directory = opendir(path);
	size_t entries = 0;

	while (directory && readdir(directory) && entries < 3) /* two are itself and its parent */
		entries++;
	if (directory)
		closedir(directory);
	return entries < 3 || effective_setting_bool(&command->settings, SETTING_FORCE);
}

int top_make_directory(struct top_command *command, struct problem *problem)
{
	const char *temporary = getenv("TMPDIR"), *output = command->values.output;
	struct stat status;

	if (output && stat(output, &status) == 0 && !S_ISDIR(status.st_mode))
		return problem_set(problem, -ENOTDIR,
				   "'%s' is not a directory; --output takes one for the results",
				   output);
	if (output && !top_directory_is_free(command, output))
		return problem_set(problem, -EEXIST, "'%s' is not empty; --force overwrites it",
				   output);
	if (output) {
		command->directory = strdup(output);
		return command->directory ? 0 : problem_set(problem, -ENOMEM, "out of memory");
	}
	if (asprintf(&command->directory, "%s/kymo-top-XXXXXX",
		     temporary && *temporary ? temporary : "/tmp") < 0) {
		command->directory = NULL;
		return problem_set(problem, -ENOMEM, "out of memory");
	}
	if (!mkdtemp(command->directory))
		return problem_set(problem, -errno, "cannot make '%s': %s", command->directory,
				   strerror(errno));
	command->is_temporary = true;
	return 0;
}

/* The program's output would tear the view: it goes into a file of the result, or nowhere. Below a
 * plain view, messages stay. */
static void top_redirect_child(const struct top_command *command, bool has_screen)
{
	char *path = NULL;
	int output, input = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (command->is_temporary || mkdir(command->directory, 0777) < 0)
		errno = 0; /* it is there, or the other kymo says why it cannot be made */
	if (asprintf(&path, "%s/program-output.txt", command->directory) < 0)
		_exit(EXIT_KYMO_FAILED);
	output = command->is_temporary
			 ? input
			 : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
	if (input < 0 || dup2(input, STDIN_FILENO) < 0 ||
	    (output >= 0 && dup2(output, STDOUT_FILENO) < 0) ||
	    (output >= 0 && has_screen && dup2(output, STDERR_FILENO) < 0))
		_exit(EXIT_KYMO_FAILED);
	free(path);
}

int top_start_child(struct top_command *command, char **program, size_t count, bool has_screen,
		    struct problem *problem)
{
	const struct top_option_values *values = &command->values;
	char **arguments = calloc(count + ARGUMENTS_MAX, sizeof(*arguments));
	size_t used = 0;

	if (!arguments)
		return problem_set(problem, -ENOMEM, "out of memory");
	/* That nothing is overwritten has been checked. */
	const char *const words[] = {"kymo",
				     values->pid ? "attach" : "sample",
				     "--quiet",
				     "--time-output=off",
				     "--force",
				     "--output",
				     command->directory,
				     "--freq",
				     values->freq ? values->freq : FREQ_DEFAULT,
				     values->realtime ? "--realtime" : NULL};
	for (size_t i = 0; i < ARRAY_SIZE(words) && words[i]; i++)
		arguments[used++] = (char *)words[i];
	if (command->is_temporary)
		arguments[used++] = (char *)"--format=text";
	arguments[used++] = (char *)(values->pid ? "--pid" : "--");
	if (values->pid)
		arguments[used++] = (char *)values->pid;
	for (size_t i = 0; i < count; i++)
		arguments[used++] = program[i];
	pid_t self = getpid();
	command->child = fork();
	if (command->child == 0) {
		/* Nobody else would end what runs for the view. */
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		if (getppid() != self)
			_exit(EXIT_KYMO_FAILED);
		if (!command->ignores_broken_pipes)
			signal(SIGPIPE, SIG_DFL);
		top_redirect_child(command, has_screen);
		execv("/proc/self/exe", arguments);
		_exit(EXIT_KYMO_FAILED);
	}
	free(arguments);
	return command->child > 0 ? 0
				  : problem_set(problem, -errno, "cannot start a process: %s",
						strerror(errno));
}

static volatile sig_atomic_t top_signal;

static void top_note_signal(int number)
{
	top_signal = number;
}

/* What is ignored stays so, as under nohup. A closed pipe behind the output is an error of writing,
 * after which the program is ended and the files are removed. */
void top_catch_signals(struct top_command *command)
{
	static const int ends[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};
	struct sigaction note = {.sa_handler = top_note_signal}, before;

	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		if (sigaction(ends[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
			sigaction(ends[i], &note, NULL);
	}
	command->ignores_broken_pipes = signal(SIGPIPE, SIG_IGN) == SIG_IGN;
}

void top_look_after_child(struct top_command *command, int options)
{
	if (command->child && waitpid(command->child, &command->child_status, options) > 0) {
		command->child = 0;
		command->has_ended = true;
	}
}

/* A program that was started for the view ends with it; a process that was attached to goes on. Who
 * asks once more does not wait for a program that ignores the signal. */
void top_end_child(struct top_command *command)
{
	int64_t waited_ms = 0;

	top_signal = 0;
	if (command->child)
		kill(command->child, SIGTERM);
	for (; command->child && waited_ms < END_OF_CHILD_MS && !top_signal; waited_ms += 20) {
		if (waited_ms == SAY_WAITING_MS)
			message_note("waiting for the program to end after SIGTERM, for %d s at "
				     "most (Ctrl-C: no longer)",
				     END_OF_CHILD_MS / 1000);
		top_look_after_child(command, WNOHANG);
		if (command->child)
			nanosleep(&(struct timespec){.tv_nsec = 20L * MS}, NULL);
	}
	if (command->child)
		message_warning("the program has not ended after SIGTERM: it goes on");
}

bool top_was_signalled(void)
{
	return top_signal != 0;
}
