/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See blocking.h. Three reports belong together: a sample of the thread with its stack, the switch
 * that follows at once, and the switch back. Where one of them is missing nothing is recorded.
 */
#include "outside/blocking.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SAMPLE_TO_SWITCH_NS 5000000u

/* Of the tracepoint's data (linux/trace_events.h): in an interrupt of any kind. */
#define RAW_FLAGS_OFFSET    2
#define RAW_FLAGS_INTERRUPT (0x08 | 0x10 | 0x40)

static bool keep_stack(struct outside_stack *stack, const uint64_t *frames, uint32_t count,
		       enum spool_stack_end end)
{
	stack->count = 0;
	if (count > stack->capacity) {
		uint64_t *more = realloc(stack->frames, count * sizeof(*more));

		if (!more)
			return false;
		stack->frames = more;
		stack->capacity = count;
	}
	memcpy(stack->frames, frames, count * sizeof(*frames));
	stack->count = count;
	stack->end = end;
	return true;
}

static struct outside_block *get_block(struct outside_thread *thread)
{
	if (!thread->block)
		thread->block = calloc(1, sizeof(*thread->block));
	return thread->block;
}

void outside_block_free(struct outside_thread *thread)
{
	if (!thread->block)
		return;
	free(thread->block->stack.frames);
	free(thread->block->waker.stack.frames);
	free(thread->block);
	thread->block = NULL;
}

void outside_block_handle_sample(struct outside_world *world, const struct outside_sample *sample)
{
	struct outside_thread *thread;
	enum spool_stack_end end;
	struct outside_block *block;
	uint32_t count;

	if (!sample->tid) /* idle */
		return;
	thread = outside_thread_get(world, sample->pid, sample->tid, sample->time_ns);
	if (!thread || thread->ended_ns ||
	    !outside_process_is_in_scope(world, thread->process, sample->time_ns) ||
	    !outside_process_begin_spool(world, thread->process))
		return;
	block = get_block(thread);
	if (!block)
		return;
	count = outside_sample_walk(world, thread->process, sample, &end);
	block->sampled_ns =
		keep_stack(&block->stack, world->walked, count, end) ? sample->time_ns : 0;
	/* The switch may have been reported at the same time. */
	if (block->left_ns < sample->time_ns)
		block->left_ns = 0;
}

void outside_block_leave_cpu(struct outside_world *world, uint32_t tid, uint64_t time_ns,
			     bool is_preempted)
{
	struct outside_thread *thread = outside_thread_find(world, tid);

	if (!thread || thread->ended_ns || !get_block(thread))
		return;
	thread->block->left_ns = time_ns;
	thread->block->woken_ns = 0;
	thread->block->is_preempted = is_preempted;
}

/* Only what is inside the window counts. */
static void write_interval(struct outside_world *world, struct outside_thread *thread,
			   enum spool_sample_source source, uint64_t from_ns, uint64_t to_ns)
{
	const struct outside_stack *stack = &thread->block->stack;

	if (from_ns < world->from_ns)
		from_ns = world->from_ns;
	if (to_ns > world->to_ns)
		to_ns = world->to_ns;
	if (from_ns >= to_ns)
		return;
	outside_thread_record_start(thread);
	memcpy(world->walked, stack->frames, stack->count * sizeof(*stack->frames));
	outside_sample_write(world, thread,
			     &(struct outside_weighted_sample){.time_ns = to_ns,
							       .weight = to_ns - from_ns,
							       .source = source,
							       .count = stack->count,
							       .end = stack->end});
	if (source == SPOOL_SOURCE_WALL)
		outside_waits_add(thread, to_ns - from_ns);
}

static void end_block(struct outside_world *world, struct outside_thread *thread, uint64_t time_ns)
{
	struct outside_block *block = thread->block;
	uint64_t left = block->left_ns, blocked_to = block->woken_ns ? block->woken_ns : time_ns;

	block->left_ns = 0;
	if (!left || !block->sampled_ns || !block->stack.count ||
	    block->sampled_ns > left + SAMPLE_TO_SWITCH_NS ||
	    left > block->sampled_ns + SAMPLE_TO_SWITCH_NS)
		return;
	block->sampled_ns = 0;
	if (block->is_preempted) {
		write_interval(world, thread, SPOOL_SOURCE_RUNNABLE, left, time_ns);
		return;
	}
	write_interval(world, thread, SPOOL_SOURCE_WALL, left, blocked_to);
	write_interval(world, thread, SPOOL_SOURCE_RUNNABLE, blocked_to, time_ns);
}

void outside_block_return_to_cpu(struct outside_world *world, uint32_t tid, uint64_t time_ns)
{
	struct outside_thread *thread = outside_thread_find(world, tid);

	if (!thread || !thread->block)
		return;
	if (!thread->block->woken_ns)
		thread->block->waker.kind = SPOOL_WAKER_UNKNOWN;
	end_block(world, thread, time_ns);
}

/* ---- who wakes ---- */

static void read_name(uint32_t pid, uint32_t tid, char name[OUTSIDE_NAME_BYTES])
{
	char path[64];
	ssize_t length;
	int file;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/comm", pid, tid);
	file = open(path, O_RDONLY | O_CLOEXEC);
	length = file < 0 ? 0 : read(file, name, OUTSIDE_NAME_BYTES - 1);
	if (file >= 0)
		close(file);
	name[length > 0 ? length : 0] = '\0';
	name[strcspn(name, "\n")] = '\0';
}

static void set_waker(struct outside_world *world, struct outside_waker *waker,
		      const struct outside_sample *sample)
{
	struct outside_thread *thread = outside_thread_find(world, sample->tid);
	struct outside_process *process = thread ? thread->process : NULL;
	enum spool_stack_end end;
	uint32_t count;

	waker->kind = SPOOL_WAKER_THREAD;
	waker->pid = sample->pid;
	waker->tid = sample->tid;
	waker->image = 0;
	waker->stack.count = 0;
	if (!thread) {
		read_name(sample->pid, sample->tid, waker->name);
		return;
	}
	memcpy(waker->name, thread->name, sizeof(waker->name));
	/* Its addresses have names by its modules, which are in its own file. */
	if (!outside_process_is_in_scope(world, process, sample->time_ns) ||
	    !outside_process_begin_spool(world, process))
		return;
	waker->image = process->spool->header.image;
	count = outside_sample_walk(world, process, sample, &end);
	keep_stack(&waker->stack, world->walked, count, end);
}

void outside_block_handle_wakeup(struct outside_world *world, const struct outside_sample *sample)
{
	struct outside_thread *woken;
	struct outside_block *block;
	uint32_t tid;

	if (sample->raw_size < world->raw_pid_offset + sizeof(tid))
		return;
	memcpy(&tid, sample->raw + world->raw_pid_offset, sizeof(tid));
	woken = outside_thread_find(world, tid);
	block = woken ? woken->block : NULL;
	/* The same wake-up may be reported by the events of both threads. */
	if (!block || !block->left_ns || block->woken_ns || block->is_preempted ||
	    sample->time_ns < block->left_ns)
		return;
	block->woken_ns = sample->time_ns;
	if (!sample->tid || (sample->raw[RAW_FLAGS_OFFSET] & RAW_FLAGS_INTERRUPT)) {
		block->waker.kind = SPOOL_WAKER_INTERRUPT;
		block->waker.pid = block->waker.tid = block->waker.image = 0;
		block->waker.name[0] = '\0';
		block->waker.stack.count = 0;
		return;
	}
	set_waker(world, &block->waker, sample);
}

/* ---- all threads ---- */

void outside_blocks_forget(struct outside_world *world)
{
	for (uint32_t i = 0; i < OUTSIDE_TABLE_SIZE; i++) {
		for (struct outside_thread *thread = world->threads[i]; thread;
		     thread = thread->next) {
			if (thread->block)
				thread->block->left_ns = thread->block->sampled_ns = 0;
		}
	}
}

void outside_blocks_end(struct outside_world *world, uint64_t time_ns)
{
	for (uint32_t i = 0; i < OUTSIDE_TABLE_SIZE; i++) {
		for (struct outside_thread *thread = world->threads[i]; thread;
		     thread = thread->next) {
			if (!thread->block || thread->ended_ns || !thread->block->left_ns)
				continue;
			if (!thread->block->woken_ns)
				thread->block->waker.kind = SPOOL_WAKER_NOBODY;
			end_block(world, thread, time_ns);
		}
	}
}
