/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Children that share the parent's memory until they exec: vfork(), posix_spawn(), system(),
 * popen(), from a busy parent. A profiler that writes in such a child writes into its parent.
 */
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "check.h"

extern char **environ;

static atomic_int stop;

static void *busy_main(void *argument)
{
	while (!atomic_load(&stop))
		check_burn_ms(1);
	return argument;
}

static void wait_for(pid_t child, int status)
{
	int seen;

	CHECK(child > 0 && waitpid(child, &seen, 0) == child);
	CHECK(WIFEXITED(seen) && WEXITSTATUS(seen) == status);
}

static void vforks(void)
{
	char *const arguments[] = {"sh", "-c", "exit 21", NULL};
	char *const missing[] = {"missing", NULL};
	pid_t child = vfork();

	if (child == 0) {
		execv("/bin/sh", arguments);
		_exit(99);
	}
	wait_for(child, 21);
	child = vfork();
	if (child == 0) {
		execv("/nonexistent/missing", missing);
		_exit(errno == ENOENT ? 22 : 99);
	}
	wait_for(child, 22);
}

static void spawns(void)
{
	char *const arguments[] = {"sh", "-c", "exit 23", NULL};
	pid_t child;

	CHECK(posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environ) == 0);
	wait_for(child, 23);
	CHECK(posix_spawnp(&child, "sh", NULL, NULL, arguments, environ) == 0);
	wait_for(child, 23);
	CHECK(posix_spawn(&child, "/nonexistent", NULL, NULL, arguments, environ) == ENOENT);
}

static void shells(void)
{
	char line[64];
	FILE *pipe;

	CHECK(system("exit 24") == 24 << 8);
	pipe = popen("echo from the child; exit 25", "r");
	CHECK(pipe && fgets(line, sizeof(line), pipe));
	CHECK(strcmp(line, "from the child\n") == 0);
	CHECK(pclose(pipe) == 25 << 8);
}

int main(void)
{
	pthread_t busy;

	CHECK(pthread_create(&busy, NULL, busy_main, NULL) == 0);
	for (int round = 0; round < 10; round++) {
		check_burn_ms(3);
		vforks();
		spawns();
		shells();
	}
	atomic_store(&stop, 1);
	pthread_join(busy, NULL);
	CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
	return check_passed("spawn");
}
