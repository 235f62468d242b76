/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The stack of a call that allocates, by the sampler's unwinder outside of its handler, and what
 * each thread remembers of its stacks.
 *
 * A program allocates at the same places again and again: where the stack is that of a memo
 * (core/stacks/memo.h), the site is what it was, and nothing is walked.
 *
 * The view of the modules is pinned by the thread's `walking`, as the handler's is by `in_handler`.
 * What the unwinder remembers between walks is apart from the handler's, which may come at any
 * time.
 */
#include <errno.h>

#include "common/syscalls.h"
#include "core/runtime.h"
#include "core/stacks/memo.h"
#include "wrappers/memory/private.h"

#define MEMORY_THREADS_MAX (1u << 20) /* by index of a thread's block; others walk without */
#define MEMO_COUNT_BITS    6u
#define MEMO_COUNT         (1u << MEMO_COUNT_BITS)

struct memory_thread {
	uint32_t owner;        /* internal id + 1 of the thread whose it is; indexes are reused */
	uint64_t last_address; /* the last block that it allocated */
	_Atomic uint64_t size_class_counts[MEMORY_SIZE_CLASS_COUNT]; /* written by it alone */
	struct unwind_scratch scratch;
	/* For stacks with interpreted frames. */
	uint64_t native_frames[MEMORY_SITE_FRAMES_MAX], stack_pointers[MEMORY_SITE_FRAMES_MAX];
	uint64_t interpreted_items[2 * MEMORY_SITE_FRAMES_MAX];
	uint64_t interpreter_thread; /* the interpreter's state of the thread, once it is known */
	struct stack_memo memos[MEMO_COUNT];
};

static _Atomic(struct memory_thread *) *memory_threads;
static _Atomic uint32_t memory_thread_end; /* all indexes in use are below */
/* Of threads that have no block. */
static _Atomic uint64_t *other_size_class_counts;

int memory_threads_init(void)
{
	if (!memory_threads)
		memory_threads =
			memory_map_pages(MEMORY_THREADS_MAX * sizeof(*memory_threads), true);
	if (!other_size_class_counts)
		other_size_class_counts = memory_map_pages(
			MEMORY_SIZE_CLASS_COUNT * sizeof(*other_size_class_counts), true);
	return memory_threads && other_size_class_counts ? 0 : -ENOMEM;
}

void memory_threads_clear(void)
{
	uint32_t end = atomic_load_explicit(&memory_thread_end, memory_order_acquire);

	memory_empty_pages(other_size_class_counts,
			   MEMORY_SIZE_CLASS_COUNT * sizeof(*other_size_class_counts));
	for (uint32_t i = 0; i < end && i < MEMORY_THREADS_MAX; i++)
		memory_empty_pages(atomic_load_explicit(&memory_threads[i], memory_order_acquire),
				   sizeof(struct memory_thread));
}

static void raise_thread_end(uint32_t end)
{
	uint32_t now = atomic_load_explicit(&memory_thread_end, memory_order_relaxed);

	while (now < end &&
	       !atomic_compare_exchange_weak_explicit(&memory_thread_end, &now, end,
						      memory_order_release, memory_order_relaxed))
		;
}

static struct memory_thread *add_thread(uint32_t index)
{
	struct memory_thread *thread = memory_map_pages(sizeof(*thread), false);

	if (!thread)
		return NULL;
	atomic_store_explicit(&memory_threads[index], thread, memory_order_release);
	raise_thread_end(index + 1);
	return thread;
}

static __thread bool block_was_looked_up;

/* What another thread left here says nothing of this one's stack. */
static void begin_thread_life(struct memory_thread *thread)
{
	if (thread->owner) {
		for (uint32_t i = 0; i < MEMO_COUNT; i++)
			thread->memos[i].ip = 0;
		thread->scratch.frame_cache.generation = 0;
		thread->last_address = 0;
		thread->interpreter_thread = 0;
	}
	thread->owner = kymo_thread->internal_id + 1;
	block_was_looked_up = true;
}

/* Threads that were found running when kymo attached do not know themselves yet. One that had a
 * block ends when it has none any more. */
static void find_block_of_found_thread(void)
{
	if (block_was_looked_up || !*kymo_memory.is_attached)
		return;
	block_was_looked_up = true;
	runtime_find_or_add_this_thread();
}

struct memory_thread *memory_find_or_add_thread(void)
{
	struct memory_thread *thread;

	if (!kymo_thread)
		find_block_of_found_thread();
	if (!kymo_thread || kymo_thread->index >= MEMORY_THREADS_MAX)
		return NULL;
	thread = atomic_load_explicit(&memory_threads[kymo_thread->index], memory_order_relaxed);
	if (!thread)
		thread = add_thread(kymo_thread->index);
	if (thread && thread->owner != kymo_thread->internal_id + 1)
		begin_thread_life(thread);
	return thread;
}

/* ---- what is counted by thread ---- */

static uint32_t find_size_class(uint64_t size)
{
	uint32_t number = size > 1 ? 64 - (uint32_t)__builtin_clzll(size - 1) : 0;

	return number < MEMORY_SIZE_CLASS_COUNT ? number : MEMORY_SIZE_CLASS_COUNT - 1;
}

void memory_thread_note_allocation(struct memory_thread *thread, uint64_t address, uint64_t size)
{
	uint32_t number = find_size_class(size);

	if (!thread) {
		atomic_fetch_add_explicit(&other_size_class_counts[number], 1,
					  memory_order_relaxed);
		return;
	}
	thread->last_address = address;
	atomic_store_explicit(
		&thread->size_class_counts[number],
		atomic_load_explicit(&thread->size_class_counts[number], memory_order_relaxed) + 1,
		memory_order_relaxed);
}

bool memory_thread_note_free(struct memory_thread *thread, uint64_t address)
{
	if (!thread || thread->last_address != address)
		return false;
	thread->last_address = 0;
	return true;
}

void memory_sum_size_classes(uint64_t *counts)
{
	uint32_t end = atomic_load_explicit(&memory_thread_end, memory_order_acquire);

	for (uint32_t number = 0; number < MEMORY_SIZE_CLASS_COUNT; number++)
		counts[number] = atomic_load_explicit(&other_size_class_counts[number],
						      memory_order_relaxed);
	for (uint32_t i = 0; i < end && i < MEMORY_THREADS_MAX; i++) {
		const struct memory_thread *thread =
			atomic_load_explicit(&memory_threads[i], memory_order_acquire);

		for (uint32_t number = 0; thread && number < MEMORY_SIZE_CLASS_COUNT; number++)
			counts[number] += atomic_load_explicit(&thread->size_class_counts[number],
							       memory_order_relaxed);
	}
}

/* ---- memos ---- */

_Static_assert(MEMORY_SITE_NONE == STACK_MEMO_NO_NUMBER, "a site that a memo does not have");

static struct stack_memo *find_memo_place(struct memory_thread *thread,
					  const struct unwind_start_registers *caller)
{
	return &thread->memos[stack_memo_hash_caller(caller->ip, caller->sp, MEMO_COUNT_BITS)];
}

/* ---- walks ---- */

/* Is the thread on the background thread's list, so that its own pin is looked at? Others (in a
 * child that was just forked) share one. */
static _Atomic uint32_t *get_thread_view_pin(struct thread *thread)
{
	return __atomic_load_n(&thread->started, __ATOMIC_ACQUIRE)
		       ? &thread->is_walked_outside_handler
		       : kymo_memory.walker_count;
}

static uint64_t hash_interpreted_frames(struct stack_request *request)
{
	return stack_may_be_interpreted() ? stack_hash_interpreted_frames(request) : 0;
}

static struct stack_request make_stack_request(struct memory_thread *thread,
					       const struct unwind_start_registers *caller,
					       uint64_t *frames, uint32_t depth)
{
	return (struct stack_request){.cache = kymo_memory.sampler->cache,
				      .registers = caller,
				      .bounds = &kymo_thread->stack_bounds,
				      .memory = {.frames = frames,
						 .native_frames = thread->native_frames,
						 .stack_pointers = thread->stack_pointers,
						 .interpreted_items = thread->interpreted_items,
						 .maximum = depth,
						 .native_maximum = MEMORY_SITE_FRAMES_MAX,
						 .scratch = &thread->scratch},
				      .sink = {sampler_write_record_outside_handler, kymo_thread},
				      .interpreter_thread = &thread->interpreter_thread};
}

static uint32_t walk_and_find_site(struct memory_thread *thread, struct stack_request *request)
{
	const struct unwind_start_registers *caller = request->registers;
	struct stack_memo *memo = find_memo_place(thread, caller);
	struct sampled_stack stack = {&caller->ip, 1, SPOOL_STACK_UNSUPPORTED,
				      SPOOL_INTERPRETER_STATE_NONE};
	_Atomic uint32_t *pin = get_thread_view_pin(kymo_thread);
	uint64_t generation, hash;
	uint32_t site;

	/* seq_cst: before the view is read; the background thread replaces it, then looks here */
	atomic_fetch_add_explicit(pin, 1, memory_order_seq_cst);
	request->view = modules_get_unwind_view(kymo_memory.modules);
	generation = request->view ? request->view->generation : 0;
	if (request->view)
		stack_walk(request, &stack);
	atomic_fetch_sub_explicit(pin, 1, memory_order_release);
	if (thread->scratch.met_unknown_address)
		modules_note_unknown_address(kymo_memory.modules);
	/* In a child that was just forked there is nothing to write into: the next walk does. */
	if (runtime_is_active())
		sampler_count_interpreted_losses(kymo_memory.sampler->spool, request);
	site = memory_find_or_add_site(stack.frames, stack.count);
	if (site == MEMORY_SITE_NONE || !request->view ||
	    (!stack_memo_has_native_stack(memo, caller, generation) &&
	     !stack_memo_remember(memo, request, generation)))
		return site;
	/* The interpreter may be gone in between. */
	hash = hash_interpreted_frames(request);
	if ((hash != 0) == request->has_interpreted_frames)
		stack_memo_set_number(memo, hash, site);
	return site;
}

uint32_t memory_find_site_of_caller(struct memory_thread *thread,
				    const struct unwind_start_registers *caller, uint32_t depth)
{
	uint64_t frames[MEMORY_SITE_FRAMES_MAX];
	const struct stack_memo *memo;
	struct stack_request request;
	uint32_t site = MEMORY_SITE_NONE;

	if (!thread || depth < 2)
		return memory_find_or_add_site(&caller->ip, 1);
	request = make_stack_request(thread, caller, frames, depth);
	memo = find_memo_place(thread, caller);
	/* A generation that is just being replaced is that of a moment before. */
	if (stack_memo_has_native_stack(
		    memo, caller,
		    __atomic_load_n(&kymo_memory.modules->generation, __ATOMIC_RELAXED)))
		site = stack_memo_get_number(memo, hash_interpreted_frames(&request));
	return site != MEMORY_SITE_NONE ? site : walk_and_find_site(thread, &request);
}
