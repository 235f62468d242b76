/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Two processes that do their parts and meet, by pipes or by semaphores in shared memory: the
 * slower one decides, and progress is made in the other.
 */
#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "workload.h"

WORK(parent_part)
WORK(child_part)

static int to_child[2], to_parent[2];
static sem_t *semaphores; /* [0]: for the child, [1]: for the parent */
static double length;

/* False: there is nobody any more. */
static bool receive(const int *pipe_ends)
{
	char byte;
	ssize_t got = read(pipe_ends[0], &byte, 1);
	while (got < 0 && errno == EINTR)
		got = read(pipe_ends[0], &byte, 1);
	return got == 1;
}

static void wait_semaphore(sem_t *semaphore)
{
	while (sem_wait(semaphore) < 0)
		CHECK(errno == EINTR);
}

static void be_child(bool shared)
{
	close(to_child[1]);
	for (;;) {
		if (shared)
			wait_semaphore(&semaphores[0]);
		else if (!receive(to_child))
			_exit(0);
		child_part(length);
		if (shared)
			sem_post(&semaphores[1]);
		else
			CHECK(write(to_parent[1], "", 1) == 1);
	}
}

static void step_together(bool shared)
{
	if (shared)
		sem_post(&semaphores[0]);
	else
		CHECK(write(to_child[1], "", 1) == 1);
	parent_part(0.6 * length);
	if (shared)
		wait_semaphore(&semaphores[1]);
	else
		CHECK(receive(to_parent));
}

int main(int argc, char **argv)
{
	static const char *const kinds[] = {"pipe", "shared", NULL};
	static struct workload_point step = {.name = "step"};
	workload_start(argc, argv);
	length = workload_number("length", 1500);
	bool shared = workload_choice("kind", kinds) == 1;
	CHECK(pipe(to_child) == 0 && pipe(to_parent) == 0);
	semaphores = mmap(NULL, 2 * sizeof(*semaphores), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(semaphores != MAP_FAILED);
	CHECK(sem_init(&semaphores[0], 1, 0) == 0 && sem_init(&semaphores[1], 1, 0) == 0);
	pid_t child = fork();
	CHECK(child >= 0);
	if (!child)
		be_child(shared);
	while (workload_running()) {
		step_together(shared);
		workload_visit(&step);
	}
	close(to_child[1]);
	if (shared)
		CHECK(kill(child, SIGTERM) == 0);
	CHECK(waitpid(child, NULL, 0) == child);
	return workload_finish();
}
