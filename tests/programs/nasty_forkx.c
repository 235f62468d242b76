/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Processes: fork in the depth of calls, whose children return through all of them and go on
 * calling; vfork and exec; posix_spawn; a fork in a child.
 */
#include "nasty.h"
#include <spawn.h>
#include <sys/wait.h>

#define ROUNDS 10
extern char **environ;

NASTY_KEEP long fork_leaf(long value)
{
	NASTY_OPAQUE();
	return value + 1;
}

NASTY_KEEP long fork_deep(int depth, pid_t *child)
{
	long value = fork_leaf(depth);

	if (depth == 0)
		*child = fork();
	else
		value += fork_deep(depth - 1, child);
	NASTY_OPAQUE();
	return value;
}

static int ended(pid_t child)
{
	int status = -1;

	CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int forked(int depth)
{
	pid_t child = -1;
	long value = fork_deep(depth, &child);

	if (child == 0) {
		for (int i = 0; i < 100; i++)
			value = fork_leaf(i);
		child = fork();
		if (child == 0)
			_exit((int)fork_leaf(6));
		exit(ended(child) == 7 && value == 100 ? 42 : 1);
	}
	return ended(child);
}

NASTY_KEEP void fork_exec(const char *program)
{
	fork_leaf(1);
	execl(program, program, "child", (char *)NULL);
	_exit(127);
}

NASTY_KEEP pid_t fork_vfork(const char *program)
{
	pid_t child = vfork();

	if (child == 0)
		fork_exec(program);
	fork_leaf(2);
	return child;
}

static int spawned(char *program)
{
	char *arguments[] = {program, (char *)"child", NULL};
	pid_t child = -1;

	CHECK(posix_spawn(&child, program, NULL, NULL, arguments, environ) == 0);
	return ended(child);
}

static void work(void)
{
	long sum = 0;

	for (int i = 0; i < ROUNDS; i++)
		sum += forked(i) + ended(fork_vfork("/proc/self/exe")) +
		       spawned((char *)"/proc/self/exe");
	nasty_say("sum %ld\n", sum);
	/* Depths and one call each; in children 100 and 1; vfork 2; 5 in each of two new programs.
	 */
	nasty_count("fork_leaf", ROUNDS * (ROUNDS + 1) / 2 + ROUNDS * (100 + 1 + 2 + 2 * 5));
	nasty_count("fork_deep", ROUNDS * (ROUNDS + 1) / 2);
	nasty_count("fork_exec", ROUNDS);
	nasty_count("fork_vfork", ROUNDS);
}

int main(int argc, char **argv)
{
	long value = 0;

	if (argc > 1 && strcmp(argv[1], "child") == 0) {
		for (int i = 0; i < 5; i++)
			value += fork_leaf(i);
		return (int)value;
	}
	return nasty_run(argc, argv, work);
}
