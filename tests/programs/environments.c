/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Starts itself by every call that replaces or creates a process image, with environments of its
 * own making: none, one variable, a thousand, cleared, overwritten in place. Each child sees the
 * variables that it was given, in their order; a profiler's may come on top. 14 children.
 */
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "check.h"

#define MANY 1000

extern char **environ;

static char *program;

__attribute__((noinline)) static void child_work(void)
{
	check_burn_ms(60); /* beside some 10 ms for exec and loader on a busy machine */
	__asm__ volatile("" ::: "memory");
}

static int is_profilers(const char *variable)
{
	return strncmp(variable, "KYMO_", 5) == 0 || strncmp(variable, "LD_PRELOAD=", 11) == 0 ||
	       strstr(variable, "/libkymo") || strstr(variable, "/libnccl-profiler-kymo");
}

/* Runs in the child: exactly `count` variables Vn=n are there, in order. */
static int child_main(int count)
{
	int seen = 0;

	for (char **entry = environ; *entry; entry++) {
		char wanted[32];

		if (is_profilers(*entry))
			continue;
		snprintf(wanted, sizeof(wanted), "V%d=%d", seen, seen);
		CHECK(strcmp(*entry, wanted) == 0);
		seen++;
	}
	CHECK(seen == count);
	child_work();
	return 30 + count % 10;
}

static char **make_environment(int count)
{
	char **list = calloc((size_t)count + 1, sizeof(*list));

	CHECK(list);
	for (int i = 0; i < count; i++)
		CHECK(asprintf(&list[i], "V%d=%d", i, i) > 0);
	return list;
}

static void wait_for(pid_t child, int count)
{
	int status;

	CHECK(child > 0 && waitpid(child, &status, 0) == child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 30 + count % 10);
}

/* In a child of its own: the call that replaces it. */
#define IN_CHILD(count, ...)                                                                       \
	do {                                                                                       \
		pid_t forked = fork();                                                             \
		if (forked == 0) {                                                                 \
			__VA_ARGS__;                                                               \
			_exit(98);                                                                 \
		}                                                                                  \
		wait_for(forked, count);                                                           \
	} while (0)

static void executes(char **one, char **many)
{
	char *const one_given[] = {program, "1", NULL}, *const none[] = {program, "0", NULL};
	char *const many_given[] = {program, "1000", NULL};
	char *nothing[] = {NULL};
	pid_t child;

	IN_CHILD(0, execve(program, none, nothing));
	IN_CHILD(0, execve(program, none, NULL));
	IN_CHILD(1, execve(program, one_given, one));
	IN_CHILD(MANY, execve(program, many_given, many));
	IN_CHILD(1, execle(program, program, "1", NULL, one));
	IN_CHILD(1, execvpe(program, one_given, one));
	IN_CHILD(1, fexecve(open(program, O_RDONLY | O_CLOEXEC), one_given, one));
	child = vfork();
	if (child == 0) {
		execve(program, one_given, one);
		_exit(98);
	}
	wait_for(child, 1);
}

/* What programs do to their own environment, and the calls that pass it on. */
static void cleared(char **one)
{
	char *const one_given[] = {program, "1", NULL}, *const none[] = {program, "0", NULL};

	IN_CHILD(0, clearenv(); execv(program, none));
	IN_CHILD(0, clearenv(); execl(program, program, "0", NULL));
	IN_CHILD(1, environ = one; execvp(program, one_given));
	/* As setproctitle() of daemons: the strings are overwritten where the kernel put them. */
	IN_CHILD(1, for (char **entry = environ; *entry; entry++) memset(*entry, 0, strlen(*entry));
		 environ = one; execv(program, one_given));
}

static void spawns(char **one)
{
	char *const one_given[] = {program, "1", NULL};
	pid_t child;

	CHECK(posix_spawn(&child, program, NULL, NULL, one_given, one) == 0);
	wait_for(child, 1);
	CHECK(posix_spawnp(&child, program, NULL, NULL, one_given, one) == 0);
	wait_for(child, 1);
	CHECK(posix_spawn(&child, "/nonexistent", NULL, NULL, one_given, one) == ENOENT);
	CHECK(posix_spawn(NULL, "/nonexistent", NULL, NULL, one_given, NULL) == ENOENT);
	errno = 0;
	CHECK(execve("/nonexistent", one_given, one) == -1 && errno == ENOENT);
}

int main(int argc, char **argv)
{
	char **one, **many;

	program = argv[0];
	if (argc == 2)
		return child_main(atoi(argv[1]));
	one = make_environment(1);
	many = make_environment(MANY);
	executes(one, many);
	cleared(one);
	spawns(one);
	return check_passed("environments");
}
