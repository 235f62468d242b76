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

#define SLAB_BLOCKS 64u
#define SLABS_MAX   65536u
#define TID_MAX     (1u << 22) /* PID_MAX_LIMIT of the kernel on 64 bit */

static void *reserve(size_t size)
{
	void *address = sys_mmap(NULL, size, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return sys_failed(address) ? NULL : address;
}

static uint32_t round_up(size_t size)
{
	return (uint32_t)((size + 4095) & ~(size_t)4095);
}

int threads_init(struct threads *threads, uint32_t max_depth)
{
	threads->max_depth = threads->depth_room = max_depth;
	threads->block_size = round_up(sizeof(struct thread) + 2 * max_depth * sizeof(uint64_t));
	threads->slabs = reserve(SLABS_MAX * sizeof(*threads->slabs));
	threads->by_tid = reserve(TID_MAX * sizeof(*threads->by_tid));
	return threads->slabs && threads->by_tid ? 0 : -ENOMEM;
}

void threads_limit_depth(struct threads *threads, uint32_t max_depth)
{
	threads->max_depth = max_depth < threads->depth_room ? max_depth : threads->depth_room;
}

void threads_reset(struct threads *threads)
{
	/* The table may be partly touched; dropping its pages zeroes it at once. */
	sys_madvise((void *)threads->by_tid, TID_MAX * sizeof(*threads->by_tid), MADV_DONTNEED);
	threads->free_list = threads->announced = 0;
	threads->next_internal = threads->next_sequent = threads->next_own = 0;
	threads->live = threads->registered = threads->coming = 0;
	threads->grow_lock = 0;
	for (uint32_t i = 0; i < SLABS_MAX && threads->slabs[i]; i++) {
		sys_munmap((void *)threads->slabs[i], (size_t)threads->block_size * SLAB_BLOCKS);
		threads->slabs[i] = NULL;
	}
	threads->block_count = 0;
}

struct thread *threads_at(struct threads *threads, uint32_t index)
{
	struct thread *slab =
		atomic_load_explicit(&threads->slabs[index / SLAB_BLOCKS], memory_order_acquire);

	return slab ? (struct thread *)((uint8_t *)slab +
					(size_t)(index % SLAB_BLOCKS) * threads->block_size)
		    : NULL;
}

static void list_push(struct threads *threads, _Atomic uint64_t *list, struct thread *thread)
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

static struct thread *list_pop(struct threads *threads, _Atomic uint64_t *list)
{
	uint64_t head = atomic_load_explicit(list, memory_order_acquire), fresh;
	struct thread *thread;

	do {
		if (!(uint32_t)head)
			return NULL;
		thread = threads_at(threads, (uint32_t)head - 1);
		if (!thread)
			return NULL;
		fresh = ((head >> 32) + 1) << 32 |
			atomic_load_explicit(&thread->next, memory_order_relaxed);
	} while (!atomic_compare_exchange_weak_explicit(list, &head, fresh, memory_order_acquire,
							memory_order_acquire));
	return thread;
}

void threads_forget_announced(struct threads *threads)
{
	threads->announced = 0;
	for (uint32_t i = 0; i < threads->block_count; i++)
		threads_at(threads, i)->announcement = THREAD_NOT_ANNOUNCED;
}

void threads_forget_all(struct threads *threads)
{
	sys_madvise((void *)threads->by_tid, TID_MAX * sizeof(*threads->by_tid), MADV_DONTNEED);
	threads_forget_announced(threads);
	threads->free_list = 0;
	threads->grow_lock = 0;
	for (uint32_t i = threads->block_count; i-- > 0;) {
		struct thread *thread = threads_at(threads, i);
		thread->tid = 0;
		thread->in_handler = 0;
		atomic_store(&thread->state, THREAD_FREE);
		list_push(threads, &threads->free_list, thread);
	}
}

/* Adds a slab of blocks to the free list. One grower at a time; the others wait their turn by
 * yielding, which is short because only mmap is called inside. */
static bool grow(struct threads *threads)
{
	uint32_t expected = 0, first;
	struct thread *slab;

	if (!atomic_compare_exchange_strong_explicit(&threads->grow_lock, &expected, 1,
						     memory_order_acquire, memory_order_relaxed)) {
		sys_call0(SYS_sched_yield);
		return true;
	}
	first = threads->block_count;
	slab = first / SLAB_BLOCKS < SLABS_MAX ? reserve((size_t)threads->block_size * SLAB_BLOCKS)
					       : NULL;
	if (slab) {
		atomic_store_explicit(&threads->slabs[first / SLAB_BLOCKS], slab,
				      memory_order_release);
		threads->block_count = first + SLAB_BLOCKS;
		for (uint32_t i = SLAB_BLOCKS; i-- > 0;) {
			struct thread *thread = threads_at(threads, first + i);
			thread->index = first + i;
			list_push(threads, &threads->free_list, thread);
		}
	}
	atomic_store_explicit(&threads->grow_lock, 0, memory_order_release);
	return slab;
}

static void clear_block(struct threads *threads, struct thread *thread)
{
	uint32_t index = thread->index;

	/* Others may still look at what stands before the index: a pop of the free list that came
	 * too late at `next`, a lookup by the old tid at `state`. */
	atomic_store_explicit(&thread->announcement, THREAD_NOT_ANNOUNCED, memory_order_relaxed);
	memset((uint8_t *)thread + offsetof(struct thread, index), 0,
	       offsetof(struct thread, scratch) - offsetof(struct thread, index));
	thread->index = index;
	thread->scratch.memo.generation = 0; /* no view has it: the memo is empty */
	thread->previous = (uint64_t *)(thread + 1);
	thread->current = thread->previous + threads->max_depth;
	thread->perf_fd = thread->overflow_fd = thread->timer = -1;
	for (unsigned i = 0; i < THREAD_COUNTERS; i++)
		thread->counter_fd[i] = -1;
}

struct thread *threads_allocate(struct threads *threads, enum thread_how how, uint32_t parent)
{
	struct thread *thread;

	while (!(thread = list_pop(threads, &threads->free_list))) {
		if (!grow(threads))
			return NULL;
	}
	clear_block(threads, thread);
	thread->how = how;
	thread->parent = parent;
	if (threads->select)
		thread->excluded = THREAD_EXCLUDED_UNSELECTED;
	thread->internal_id =
		atomic_fetch_add_explicit(&threads->next_internal, 1, memory_order_relaxed);
	if (how == THREAD_INTERNAL)
		thread->sequent_id =
			THREADS_SEQUENT_INTERNAL +
			atomic_fetch_add_explicit(&threads->next_own, 1, memory_order_relaxed);
	else
		thread->sequent_id =
			atomic_fetch_add_explicit(&threads->next_sequent, 1, memory_order_relaxed);
	atomic_store_explicit(&thread->state, THREAD_NEW, memory_order_relaxed);
	atomic_fetch_add_explicit(&threads->registered, 1, memory_order_relaxed);
	return thread;
}

void threads_come(struct threads *threads)
{
	atomic_fetch_add_explicit(&threads->coming, 1, memory_order_relaxed);
}

/* Some may have been forgotten meanwhile, with all others. */
void threads_came(struct threads *threads)
{
	uint32_t coming = atomic_load_explicit(&threads->coming, memory_order_relaxed);

	while (coming &&
	       !atomic_compare_exchange_weak_explicit(&threads->coming, &coming, coming - 1,
						      memory_order_relaxed, memory_order_relaxed))
		;
}

void threads_discard(struct threads *threads, struct thread *thread)
{
	atomic_store_explicit(&thread->state, THREAD_FREE, memory_order_relaxed);
	list_push(threads, &threads->free_list, thread);
}

static bool is_gone(struct threads *threads, uint32_t index)
{
	const struct thread *thread = threads_at(threads, index - 1);
	uint32_t state =
		thread ? atomic_load_explicit(&thread->state, memory_order_acquire) : THREAD_FREE;

	return state == THREAD_ENDED || state == THREAD_FREE;
}

struct thread *threads_bind(struct threads *threads, struct thread *thread, uint32_t tid)
{
	uint32_t there;

	thread->tid = tid;
	if (tid >= TID_MAX)
		return thread;
	there = atomic_load_explicit(&threads->by_tid[tid], memory_order_acquire);
	for (;;) {
		if (!there ||
		    is_gone(threads, there)) { /* gone: an earlier thread of the same tid */
			/* release: a handler that finds the index sees the block's fields */
			if (atomic_compare_exchange_weak_explicit(
				    &threads->by_tid[tid], &there, thread->index + 1,
				    memory_order_release, memory_order_acquire))
				return thread;
			continue;
		}
		/* Still bound after its state was read? Else the block was recycled meanwhile and
		 * is another's. */
		uint32_t again = atomic_load_explicit(&threads->by_tid[tid], memory_order_acquire);
		if (again == there)
			break;
		there = again;
	}
	return threads_at(threads, there - 1);
}

void threads_announce(struct threads *threads, struct thread *thread, enum thread_announcement what)
{
	/* acq_rel: an end that finds the block on the list already still publishes the block's last
	 * values */
	if (atomic_exchange_explicit(&thread->announcement, what, memory_order_acq_rel) ==
	    THREAD_NOT_ANNOUNCED)
		list_push(threads, &threads->announced, thread);
}

struct thread *threads_take_announced(struct threads *threads)
{
	uint64_t head = atomic_load_explicit(&threads->announced, memory_order_relaxed);
	uint32_t reversed = 0, index;

	while (!atomic_compare_exchange_weak_explicit(&threads->announced, &head,
						      ((head >> 32) + 1) << 32,
						      memory_order_acquire, memory_order_relaxed))
		;
	for (index = (uint32_t)head; index;) {
		struct thread *thread = threads_at(threads, index - 1);
		uint32_t next = atomic_load_explicit(&thread->next, memory_order_relaxed);
		atomic_store_explicit(&thread->next, reversed, memory_order_relaxed);
		reversed = index;
		index = next;
	}
	return reversed ? threads_at(threads, reversed - 1) : NULL;
}

struct thread *threads_next_announced(struct threads *threads, struct thread *thread,
				      enum thread_announcement *ret_what)
{
	uint32_t next = atomic_load_explicit(&thread->next, memory_order_relaxed);

	*ret_what = (enum thread_announcement)atomic_exchange_explicit(
		&thread->announcement, THREAD_NOT_ANNOUNCED, memory_order_acq_rel);
	return next ? threads_at(threads, next - 1) : NULL;
}

void threads_recycle(struct threads *threads, struct thread *thread)
{
	uint32_t expected = thread->index + 1;

	if (thread->tid &&
	    thread->tid < TID_MAX) /* the tid may have been reused by a newer thread already */
		atomic_compare_exchange_strong_explicit(&threads->by_tid[thread->tid], &expected, 0,
							memory_order_relaxed, memory_order_relaxed);
	threads_discard(threads, thread);
}

struct thread *threads_by_tid(struct threads *threads, uint32_t tid)
{
	uint32_t index = tid < TID_MAX
				 ? atomic_load_explicit(&threads->by_tid[tid], memory_order_acquire)
				 : 0;

	return index ? threads_at(threads, index - 1) : NULL;
}
