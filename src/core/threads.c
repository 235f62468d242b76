/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See threads.h.
 */
#include "core/threads.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "common/syscalls.h"

__thread struct thread *kymo_thread;

#define THREAD_FRAME_ARRAYS    6u /* of max_depth each, behind the block */
#define THREAD_BLOCKS_PER_SLAB 64u
#define THREAD_SLABS_MAX       65536u
#define TID_MAX                (1u << 22) /* PID_MAX_LIMIT of the kernel on 64 bit */

static void *reserve_thread_memory(size_t size)
{
	void *address = sys_mmap(NULL, size, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return sys_mmap_failed(address) ? NULL : address;
}

static uint32_t round_up_to_page(size_t size)
{
	return (uint32_t)((size + 4095) & ~(size_t)4095);
}

int threads_init(struct threads *threads, uint32_t max_depth)
{
	threads->max_depth = threads->stack_depth_capacity = max_depth;
	threads->block_size = round_up_to_page(sizeof(struct thread) +
					       THREAD_FRAME_ARRAYS * max_depth * sizeof(uint64_t));
	threads->slabs = reserve_thread_memory(THREAD_SLABS_MAX * sizeof(*threads->slabs));
	threads->block_index_by_tid =
		reserve_thread_memory(TID_MAX * sizeof(*threads->block_index_by_tid));
	if (!threads->slabs || !threads->block_index_by_tid)
		return -ENOMEM;
	/* A forked child has threads of its own: nothing of it is copied. */
	sys_madvise((void *)threads->block_index_by_tid,
		    TID_MAX * sizeof(*threads->block_index_by_tid), MADV_WIPEONFORK);
	return 0;
}

void threads_set_max_stack_depth(struct threads *threads, uint32_t max_depth)
{
	threads->max_depth = max_depth < threads->stack_depth_capacity
				     ? max_depth
				     : threads->stack_depth_capacity;
}

void threads_reset_in_child(struct threads *threads)
{
	/* The table may be partly touched; dropping its pages zeroes it at once. */
	sys_madvise((void *)threads->block_index_by_tid,
		    TID_MAX * sizeof(*threads->block_index_by_tid), MADV_DONTNEED);
	threads->free_list = threads->announced_list = 0;
	threads->next_internal_id = threads->next_sequential_id =
		threads->next_own_thread_sequential_id = 0;
	threads->live_count = threads->registered_count = threads->not_yet_running_count = 0;
	threads->grow_lock = 0;
	for (uint32_t i = 0; i < THREAD_SLABS_MAX && threads->slabs[i]; i++) {
		sys_munmap((void *)threads->slabs[i],
			   (size_t)threads->block_size * THREAD_BLOCKS_PER_SLAB);
		threads->slabs[i] = NULL;
	}
	threads->block_count = 0;
}

struct thread *threads_get_block_at_index(struct threads *threads, uint32_t index)
{
	struct thread *slab = atomic_load_explicit(&threads->slabs[index / THREAD_BLOCKS_PER_SLAB],
						   memory_order_acquire);

	return slab ? (struct thread *)((uint8_t *)slab + (size_t)(index % THREAD_BLOCKS_PER_SLAB) *
								  threads->block_size)
		    : NULL;
}

static void push_thread_block(struct threads *threads, _Atomic uint64_t *list,
			      struct thread *thread)
{
	uint64_t head = atomic_load_explicit(list, memory_order_relaxed), fresh;

	(void)threads;
	do {
		atomic_store_explicit(&thread->next, (uint32_t)head, memory_order_relaxed);
		fresh = (head & ~(uint64_t)UINT32_MAX) | (thread->index + 1);
		/* release: the block's fields are visible to whoever takes it */
	} while (!atomic_compare_exchange_weak_explicit(list, &head, fresh, memory_order_release,
							memory_order_relaxed));
}

static struct thread *pop_thread_block(struct threads *threads, _Atomic uint64_t *list)
{
	uint64_t head = atomic_load_explicit(list, memory_order_acquire), fresh;
	struct thread *thread;

	do {
		if (!(uint32_t)head)
			return NULL;
		thread = threads_get_block_at_index(threads, (uint32_t)head - 1);
		if (!thread)
			return NULL;
		fresh = ((head >> 32) + 1) << 32 |
			atomic_load_explicit(&thread->next, memory_order_relaxed);
	} while (!atomic_compare_exchange_weak_explicit(list, &head, fresh, memory_order_acquire,
							memory_order_acquire));
	return thread;
}

void threads_discard_announcements(struct threads *threads)
{
	threads->announced_list = 0;
	for (uint32_t i = 0; i < threads->block_count; i++)
		threads_get_block_at_index(threads, i)->announcement_kind = THREAD_NOT_ANNOUNCED;
}

void threads_forget_all_keep_blocks(struct threads *threads)
{
	sys_madvise((void *)threads->block_index_by_tid,
		    TID_MAX * sizeof(*threads->block_index_by_tid), MADV_DONTNEED);
	threads_discard_announcements(threads);
	threads->free_list = 0;
	threads->grow_lock = 0;
	for (uint32_t i = threads->block_count; i-- > 0;) {
		struct thread *thread = threads_get_block_at_index(threads, i);
		thread->tid = 0;
		thread->is_in_signal_handler = 0;
		atomic_store(&thread->state, THREAD_STATE_FREE);
		push_thread_block(threads, &threads->free_list, thread);
	}
}

/* The slab of a block that was never used; NULL: no memory. */
static struct thread *get_or_map_slab_of_new_block(struct threads *threads, uint32_t index)
{
	uint32_t number = index / THREAD_BLOCKS_PER_SLAB;
	struct thread *slab;

	if (number >= THREAD_SLABS_MAX)
		return NULL;
	slab = atomic_load_explicit(&threads->slabs[number], memory_order_relaxed);
	if (slab)
		return slab;
	slab = reserve_thread_memory((size_t)threads->block_size * THREAD_BLOCKS_PER_SLAB);
	if (slab)
		atomic_store_explicit(&threads->slabs[number], slab, memory_order_release);
	return slab;
}

/* Adds a block to the free list: one, since a list of all of a slab would write a page of each,
 * which every fork copies. One grower at a time; the others wait their turn by yielding, which is
 * short because only mmap is called inside. */
static bool add_thread_block_or_yield(struct threads *threads)
{
	uint32_t expected = 0, index;
	struct thread *thread;

	if (!atomic_compare_exchange_strong_explicit(&threads->grow_lock, &expected, 1,
						     memory_order_acquire, memory_order_relaxed)) {
		sys_call0(SYS_sched_yield);
		return true;
	}
	index = threads->block_count;
	thread = get_or_map_slab_of_new_block(threads, index)
			 ? threads_get_block_at_index(threads, index)
			 : NULL;
	if (thread) {
		thread->index = index;
		threads->block_count = index + 1;
		push_thread_block(threads, &threads->free_list, thread);
	}
	atomic_store_explicit(&threads->grow_lock, 0, memory_order_release);
	return thread;
}

static void clear_thread_block(struct threads *threads, struct thread *thread)
{
	uint32_t index = thread->index;

	/* Others may still look at what stands before the index: a pop of the free list that came
	 * too late at `next`, a lookup by the old tid at `state`. */
	atomic_store_explicit(&thread->announcement_kind, THREAD_NOT_ANNOUNCED,
			      memory_order_relaxed);
	memset((uint8_t *)thread + offsetof(struct thread, index), 0,
	       offsetof(struct thread, scratch) - offsetof(struct thread, index));
	thread->index = index;
	thread->sampler = threads->sampler;
	thread->scratch.frame_cache.generation = 0; /* no view has it: the memo is empty */
	thread->previous_frames = (uint64_t *)(thread + 1);
	thread->current_frames = thread->previous_frames + threads->max_depth;
	thread->native_frames = thread->current_frames + threads->max_depth;
	thread->stack_pointers = thread->native_frames + threads->max_depth;
	thread->interpreted_items = thread->stack_pointers + threads->max_depth;
	thread->perf_event_fd = thread->overflow_event_fd = thread->timer = -1;
	thread->closed_perf_event_fd = thread->closed_overflow_event_fd = -1;
	for (unsigned i = 0; i < THREAD_COUNTERS_MAX; i++)
		thread->counter_fd[i] = -1;
}

struct thread *threads_allocate_block(struct threads *threads, enum thread_origin origin,
				      uint32_t parent)
{
	struct thread *thread;

	while (!(thread = pop_thread_block(threads, &threads->free_list))) {
		if (!add_thread_block_or_yield(threads))
			return NULL;
	}
	clear_thread_block(threads, thread);
	thread->origin = origin;
	thread->parent = parent;
	if (threads->select)
		thread->excluded_reasons = THREAD_EXCLUDED_BY_SELECTION;
	thread->internal_id =
		atomic_fetch_add_explicit(&threads->next_internal_id, 1, memory_order_relaxed);
	if (origin == THREAD_ORIGIN_INTERNAL)
		thread->sequential_id =
			THREADS_SEQUENT_ID_INTERNAL_FIRST +
			atomic_fetch_add_explicit(&threads->next_own_thread_sequential_id, 1,
						  memory_order_relaxed);
	else
		thread->sequential_id = atomic_fetch_add_explicit(&threads->next_sequential_id, 1,
								  memory_order_relaxed);
	atomic_store_explicit(&thread->state, THREAD_STATE_NEW, memory_order_relaxed);
	atomic_fetch_add_explicit(&threads->registered_count, 1, memory_order_relaxed);
	return thread;
}

void threads_note_creation_begin(struct threads *threads)
{
	atomic_fetch_add_explicit(&threads->not_yet_running_count, 1, memory_order_relaxed);
}

/* Some may have been forgotten meanwhile, with all others. */
void threads_note_creation_end(struct threads *threads)
{
	uint32_t coming =
		atomic_load_explicit(&threads->not_yet_running_count, memory_order_relaxed);

	while (coming && !atomic_compare_exchange_weak_explicit(
				 &threads->not_yet_running_count, &coming, coming - 1,
				 memory_order_relaxed, memory_order_relaxed))
		;
}

void threads_free_block(struct threads *threads, struct thread *thread)
{
	atomic_store_explicit(&thread->state, THREAD_STATE_FREE, memory_order_relaxed);
	push_thread_block(threads, &threads->free_list, thread);
}

static struct thread *get_block_of_binding(struct threads *threads, uint32_t binding)
{
	return binding ? threads_get_block_at_index(threads, binding - 1) : NULL;
}

/* Fails where the binding has changed; *there is what it is then. */
static bool replace_tid_binding(struct threads *threads, uint32_t tid, uint32_t *there,
				const struct thread *thread)
{
	/* release: a handler that finds the index sees the block's fields */
	return atomic_compare_exchange_weak_explicit(&threads->block_index_by_tid[tid], there,
						     thread->index + 1, memory_order_release,
						     memory_order_acquire);
}

struct thread *threads_bind_own_tid(struct threads *threads, struct thread *thread, uint32_t tid)
{
	uint32_t there;

	thread->tid = tid;
	if (tid >= TID_MAX)
		return thread;
	there = atomic_load_explicit(&threads->block_index_by_tid[tid], memory_order_acquire);
	for (;;) {
		struct thread *bound = get_block_of_binding(threads, there);
		uint32_t found = THREAD_STATE_FOUND;

		/* A signal handler has interrupted this, and has bound a block: the thread's. */
		if (bound && bound == kymo_thread)
			return bound;
		/* Who takes it over by this exchange has it: the background thread ends it by
		 * another. */
		if (bound &&
		    atomic_compare_exchange_strong(&bound->state, &found, THREAD_STATE_LIVE)) {
			bool is_this = bound->start_ticks >= thread->start_ticks;
			bool still_bound = atomic_load(&threads->block_index_by_tid[tid]) == there;

			if (still_bound && is_this)
				return bound;
			/* It was recycled meanwhile, and was found for another tid; or it was found
			 * before this thread was about to be created: then it is an earlier thread,
			 * of which nobody has seen yet that it ended. */
			atomic_store(&bound->state, THREAD_STATE_FOUND);
			if (!still_bound) {
				there = atomic_load(&threads->block_index_by_tid[tid]);
				continue;
			}
		}
		if (replace_tid_binding(threads, tid, &there, thread))
			return thread;
	}
}

bool threads_bind_found_tid(struct threads *threads, struct thread *thread, uint32_t tid)
{
	uint32_t there;

	thread->tid = tid;
	atomic_store_explicit(&thread->state, THREAD_STATE_FOUND, memory_order_relaxed);
	if (tid >= TID_MAX)
		return true;
	there = atomic_load_explicit(&threads->block_index_by_tid[tid], memory_order_acquire);
	for (;;) {
		const struct thread *bound = get_block_of_binding(threads, there);
		uint32_t state = bound ? atomic_load_explicit(&bound->state, memory_order_acquire)
				       : THREAD_STATE_FREE;

		if (state != THREAD_STATE_FREE && state != THREAD_STATE_ENDED)
			return false;
		if (replace_tid_binding(threads, tid, &there, thread))
			return true;
	}
}

bool threads_end_found_block(struct thread *thread)
{
	uint32_t found = THREAD_STATE_FOUND;

	return atomic_compare_exchange_strong(&thread->state, &found, THREAD_STATE_ENDED);
}

void threads_hand_block_to_background(struct threads *threads, struct thread *thread,
				      enum thread_announcement_kind what)
{
	/* acq_rel: an end that finds the block on the list already still publishes the block's last
	 * values */
	if (atomic_exchange_explicit(&thread->announcement_kind, what, memory_order_acq_rel) ==
	    THREAD_NOT_ANNOUNCED)
		push_thread_block(threads, &threads->announced_list, thread);
}

struct thread *threads_take_announced(struct threads *threads)
{
	uint64_t head = atomic_load_explicit(&threads->announced_list, memory_order_relaxed);
	uint32_t reversed = 0, index;

	while (!atomic_compare_exchange_weak_explicit(&threads->announced_list, &head,
						      ((head >> 32) + 1) << 32,
						      memory_order_acquire, memory_order_relaxed))
		;
	for (index = (uint32_t)head; index;) {
		struct thread *thread = threads_get_block_at_index(threads, index - 1);
		uint32_t next;

		if (!thread) /* every announced block has a slab */
			break;
		next = atomic_load_explicit(&thread->next, memory_order_relaxed);
		atomic_store_explicit(&thread->next, reversed, memory_order_relaxed);
		reversed = index;
		index = next;
	}
	return reversed ? threads_get_block_at_index(threads, reversed - 1) : NULL;
}

struct thread *threads_get_next_announced(struct threads *threads, struct thread *thread,
					  enum thread_announcement_kind *ret_what)
{
	uint32_t next = atomic_load_explicit(&thread->next, memory_order_relaxed);

	*ret_what = (enum thread_announcement_kind)atomic_exchange_explicit(
		&thread->announcement_kind, THREAD_NOT_ANNOUNCED, memory_order_acq_rel);
	return next ? threads_get_block_at_index(threads, next - 1) : NULL;
}

void threads_unbind_and_free_one_block(struct threads *threads, struct thread *thread)
{
	uint32_t expected = thread->index + 1;

	if (thread->tid &&
	    thread->tid < TID_MAX) /* the tid may have been reused by a newer thread already */
		atomic_compare_exchange_strong_explicit(&threads->block_index_by_tid[thread->tid],
							&expected, 0, memory_order_relaxed,
							memory_order_relaxed);
	threads_free_block(threads, thread);
}

struct thread *threads_find_by_tid(struct threads *threads, uint32_t tid)
{
	uint32_t index = tid < TID_MAX ? atomic_load_explicit(&threads->block_index_by_tid[tid],
							      memory_order_acquire)
				       : 0;

	return index ? threads_get_block_at_index(threads, index - 1) : NULL;
}
