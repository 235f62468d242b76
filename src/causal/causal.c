/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See causal.h: whether a process takes part, from when and until when.
 */
#include "causal/causal.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "causal/map.h"
#include "causal/state.h"
#include "common/syscalls.h"
#include "core/background_work.h"

#define VARIABLE  "KYMO_CAUSAL="
#define FILE_NAME "/control"
#define PATH_SIZE 4096

struct causal_control *_Atomic kymo_causal;
static struct causal_control *mapped;

static const char *directory_of(char *const *environment)
{
	for (; environment && *environment; environment++) {
		if (!strncmp(*environment, VARIABLE, sizeof(VARIABLE) - 1))
			return *environment + sizeof(VARIABLE) - 1;
	}
	return "";
}

bool causal_wanted(char *const *environment)
{
	return *directory_of(environment);
}

/* One that is as this process understands it, and that goes by the same clock. */
static bool is_usable(const struct causal_control *control)
{
	return control->magic == CAUSAL_MAGIC && control->version == CAUSAL_VERSION &&
	       control->size_of_header == sizeof(*control) &&
	       control->ticks_per_second >= 1000000 && control->ticks_are_ns == kymo_ticks_are_ns;
}

static struct causal_control *map_control(const char *directory)
{
	size_t length = strlen(directory);
	struct causal_control *control = NULL;
	char path[PATH_SIZE];
	struct stat status;
	int fd;

	if (length + sizeof(FILE_NAME) > sizeof(path))
		return NULL;
	memcpy(path, directory, length);
	memcpy(path + length, FILE_NAME, sizeof(FILE_NAME));
	fd = (int)sys_open(path, O_RDWR | O_CLOEXEC, 0);
	if (fd < 0)
		return NULL;
	if (!sys_call2(SYS_fstat, fd, (long)&status) &&
	    status.st_size >= (off_t)sizeof(struct causal_control))
		control =
			sys_mmap(NULL, sizeof(*control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	sys_close(fd);
	if (!control || sys_failed(control))
		return NULL;
	if (is_usable(control))
		return control;
	sys_munmap(control, sizeof(*control));
	return NULL;
}

/* The session's clock is as good as the controller's measure of it, the same for all processes. */
void causal_start(struct runtime *runtime)
{
	const char *directory = directory_of(runtime->environment);
	struct causal_control *control = *directory ? map_control(directory) : NULL;

	if (!control)
		return;
	causal_rates_set(control->ticks_per_second);
	atomic_fetch_add(&control->processes, 1);
	mapped = control;
	atomic_store(&kymo_causal, control);
	causal_map_start(runtime, directory);
	atomic_store(&runtime->sampling.sampled, causal_sampled);
	atomic_store(&runtime->sampling.settle, causal_settle_thread);
}

static int start(struct runtime *runtime)
{
	(void)runtime;
	return 0;
}

/* Who joins it waits for what it still owes. */
static void thread_end(void)
{
	if (causal_on())
		causal_settle_end();
}

/* Its state lies where that of the next thread with its block will. */
static void thread_gone(struct thread *thread)
{
	(void)thread;
}

/* Or the runtime goes on after a pause. */
static void forked(void)
{
	if (!mapped)
		return;
	atomic_store(&kymo_causal, mapped);
	atomic_fetch_add(&mapped->processes, 1);
	causal_state_forked();
	causal_map_forked();
}

/* The file stays mapped: threads may be on their way through it. */
static void left(void)
{
	struct causal_control *control = atomic_exchange(&kymo_causal, NULL);

	if (control)
		atomic_fetch_sub(&control->processes, 1);
}

/* Where samples are kept as well, whoever looks at them wants all. */
static void follow_rest(struct runtime *runtime)
{
	bool resting = atomic_load_explicit(&mapped->resting, memory_order_relaxed);

	if (!runtime->options.regions.trace && !runtime->options.regions.profile)
		background_work_sample_seldom(runtime, resting);
}

static void round_of_background(struct runtime *runtime, bool last)
{
	if (last) {
		left();
	} else if (causal_on()) {
		causal_map_round(runtime);
		follow_rest(runtime);
	}
}

const struct runtime_hooks causal_hooks = {
	.start = start,
	.thread_end = thread_end,
	.thread_gone = thread_gone,
	.forked = forked,
	.left = left,
	.round = round_of_background,
};
