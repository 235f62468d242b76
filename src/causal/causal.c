/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See causal.h: the process takes part, or not.
 */
#include "causal/causal.h"

#include <string.h>

#define VARIABLE "KYMO_CAUSAL="

struct causal_control *_Atomic kymo_causal;

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

void causal_start(struct runtime *runtime)
{
	(void)runtime;
}

static int start(struct runtime *runtime)
{
	(void)runtime;
	return 0;
}

static void thread_end(void)
{
}

static void thread_gone(struct thread *thread)
{
	(void)thread;
}

static bool forked(void)
{
	causal_map_forked();
	return false;
}

static void left(void)
{
}

static void round_of_background(struct runtime *runtime, bool last)
{
	if (causal_on() && !last)
		causal_map_round(runtime);
}

const struct runtime_hooks causal_hooks = {
	.start = start,
	.thread_end = thread_end,
	.thread_gone = thread_gone,
	.forked = forked,
	.left = left,
	.round = round_of_background,
};
