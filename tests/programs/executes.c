/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Starts programs in every way there is, many times a second, each from a process that is busy up
 * to the moment of exec: a sample that is pending then, or comes in the midst of it, must not end
 * what is executed. Tells also where its calls lead, for whoever leads them elsewhere for a while.
 *
 * usage: executes ROUNDS [PLUGIN]   opens PLUGIN (see below) at the end
 *        executes asked             until SIGTERM; each line on standard input is answered with
 *                                   the files that its calls lead to
 *
 * As a plugin (-DPLUGIN) it does the same in its constructor, before dlopen() has returned.
 */
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "check.h"

#define TRUE "/bin/true"

extern char **environ;

static char *const arguments[] = {"true", NULL};

/* Some 100 us. */
static void busy(void)
{
	for (volatile unsigned spin = 0; spin < 60000; spin++)
		;
}

static void by_execv(void)
{
	execv(TRUE, arguments);
}

static void by_execve(void)
{
	execve(TRUE, arguments, environ);
}

static void by_execvp(void)
{
	execvp("true", arguments);
}

static void by_execl(void)
{
	execl(TRUE, "true", NULL);
}

/* Whoever looks for the program before exec does so for more than the 1 ms of CPU time after which
 * a process is sampled. */
static void by_long_search(void)
{
	enum { FOLDERS = 3000 };
	static char path[FOLDERS * 3 + sizeof("/bin")];

	for (size_t i = 0; i < FOLDERS; i++)
		memcpy(path + i * 3, "/n:", 3);
	strcpy(path + FOLDERS * 3, "/bin");
	setenv("PATH", path, 1);
	execvp("true", arguments);
}

static void by_system_call(void)
{
	syscall(SYS_execve, TRUE, arguments, environ);
}

static void check_wait_status(int seen, const char *how)
{
	if (!seen)
		return;
	fprintf(stderr, "executes: wait status %#x by %s\n", (unsigned)seen, how);
	_exit(99);
}

static void wait_for(pid_t child, const char *how)
{
	int seen = 0;

	CHECK(child > 0 && waitpid(child, &seen, 0) == child);
	check_wait_status(seen, how);
}

static void forks(void)
{
	static const struct {
		const char *name;
		void (*execute)(void);
	} ways[] = {{"execv", by_execv},
		    {"execve", by_execve},
		    {"execvp", by_execvp},
		    {"execl", by_execl},
		    {"a long search", by_long_search},
		    {"syscall", by_system_call}};

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		pid_t child = fork();

		if (!child) {
			busy();
			ways[i].execute();
			_exit(98);
		}
		wait_for(child, ways[i].name);
	}
}

static void others(void)
{
	pid_t child = vfork();

	if (!child) {
		execve(TRUE, arguments, environ);
		_exit(98);
	}
	wait_for(child, "vfork");
	busy();
	CHECK(posix_spawn(&child, TRUE, NULL, NULL, arguments, environ) == 0);
	wait_for(child, "posix_spawn");
	busy();
	check_wait_status(system(TRUE), "system");
}

static void run_rounds(int rounds)
{
	for (int round = 0; round < rounds; round++) {
		forks();
		others();
	}
}

#ifdef PLUGIN
__attribute__((constructor)) static void start(void)
{
	run_rounds(40);
}
#else

static volatile sig_atomic_t ended;

static void on_end(int number)
{
	(void)number;
	ended = 1;
}

static const char *file_of(const void *function)
{
	Dl_info where;
	const char *slash;

	if (!dladdr(function, &where) || !where.dli_fname)
		return "?";
	slash = strrchr(where.dli_fname, '/');
	return slash ? slash + 1 : where.dli_fname;
}

/* What the program's own slots hold. */
__attribute__((noinline)) static void tell(void)
{
	printf("execve %s, sigaction %s, pthread_create %s\n", file_of((const void *)execve),
	       file_of((const void *)sigaction), file_of((const void *)pthread_create));
	fflush(stdout);
}

static void run_asked(void)
{
	struct sigaction end = {.sa_handler = on_end, .sa_flags = SA_RESTART};
	struct pollfd input = {.fd = 0, .events = POLLIN};
	char line[64];

	CHECK(sigaction(SIGTERM, &end, NULL) == 0);
	while (!ended) {
		run_rounds(1);
		if (poll(&input, 1, 0) == 1 && read(0, line, sizeof(line)) > 0)
			tell();
	}
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "asked"))
		run_asked();
	else
		run_rounds(argc > 1 ? atoi(argv[1]) : 100);
	if (argc > 2 && !dlopen(argv[2], RTLD_NOW)) {
		fprintf(stderr, "executes: %s\n", dlerror());
		return 99;
	}
	return check_passed("executes");
}
#endif
