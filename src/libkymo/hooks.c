/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See hooks.h.
 */
#include "libkymo/hooks.h"

#include "causal/causal.h"
#include "instrument/instrument.h"
#include "regions/regions.h"

static int start(struct runtime *runtime)
{
	int error = regions_hooks.start(runtime);

	if (!error)
		error = causal_hooks.start(runtime);
	return error ? error : instrument_hooks.start(runtime);
}

static void thread_end(void)
{
	causal_hooks.thread_end();
	instrument_hooks.thread_end();
	regions_hooks.thread_end();
}

static void thread_gone(struct thread *thread)
{
	instrument_hooks.thread_gone(thread);
	causal_hooks.thread_gone(thread);
	regions_hooks.thread_gone(thread);
}

static void forked(void)
{
	regions_hooks.forked();
	instrument_hooks.forked();
	causal_hooks.forked();
}

static void left(void)
{
	instrument_hooks.left();
	causal_hooks.left();
	regions_hooks.left();
}

static void thread_left(struct thread *thread)
{
	regions_hooks.thread_left(thread);
}

static void switched(void)
{
	instrument_hooks.switched();
}

static void thread_switched(void)
{
	instrument_hooks.thread_switched();
}

static void round_of_background(struct runtime *runtime, bool last)
{
	instrument_hooks.round(runtime, last);
	causal_hooks.round(runtime, last);
}

static bool keeps(void)
{
	return instrument_hooks.keeps();
}

const struct runtime_hooks libkymo_hooks = {
	.start = start,
	.thread_end = thread_end,
	.thread_gone = thread_gone,
	.forked = forked,
	.thread_left = thread_left,
	.left = left,
	.switched = switched,
	.thread_switched = thread_switched,
	.round = round_of_background,
	.keeps = keeps,
};
