/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Ways to end in which exit handlers run.
 *
 *   exits return|exit|thread|quick
 *   exits forks      marks on three threads, and forks children that call exit(); prints how many
 * of them did not end within 10 s
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define FORKS       50
#define THREADS     3
#define PATIENCE_MS 10000

static void (*mark)(const char *message);
static atomic_bool marking_is_over;

static void *exit_here(void *unused)
{
	(void)unused;
	exit(0);
}

static void *keep_marking(void *unused)
{
	(void)unused;
	while (!atomic_load(&marking_is_over))
		mark("marked");
	return NULL;
}

static int has_hung(pid_t child)
{
	int status;

	for (int waited = 0; waited < PATIENCE_MS; waited++) {
		if (waitpid(child, &status, WNOHANG) == child)
			return 0;
		usleep(1000);
	}
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	return 1;
}

static int fork_while_others_mark(const char *library)
{
	pthread_t threads[THREADS];
	void *roctx = dlopen(library, RTLD_NOW);
	int hung = 0;

	*(void **)&mark = roctx ? dlsym(roctx, "roctxMarkA") : NULL;
	if (!mark)
		return 3;
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, keep_marking, NULL);
	for (int i = 0; i < FORKS; i++) {
		pid_t child = fork();

		if (!child)
			exit(0);
		hung += has_hung(child);
	}
	atomic_store(&marking_is_over, true);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("hung %d of %d\n", hung, FORKS);
	return 0;
}

int main(int count, char **arguments)
{
	const char *way = count > 1 ? arguments[1] : "return";
	pthread_t thread;

	if (!strcmp(way, "forks"))
		return count > 2 ? fork_while_others_mark(arguments[2]) : 2;
	if (!strcmp(way, "exit"))
		exit(0);
	if (!strcmp(way, "quick"))
		quick_exit(0);
	if (!strcmp(way, "thread")) {
		pthread_create(&thread, NULL, exit_here, NULL);
		pause();
	}
	return 0;
}
