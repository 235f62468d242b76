/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See wall_sampler.h.
 */
#include "core/wall_sampler.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#include "common/syscalls.h"
#include "core/base/futex.h"
#include "core/base/ticks.h"
#include "core/notices.h"
#include "core/process/scheduling.h"
#include "core/runtime.h"
#include "core/wall_watch.h"

#define WATCHES_PER_SLAB                  64u
#define WATCH_SLABS_MAX                   65536u
#define INSPECTION_CPU_DIVISOR            20 /* looks take at most a twentieth of a core */
#define UNRECORDED_TIME_WRITE_TIMEOUT_NS  200000000ull
#define CLOSED_COLLECTION_WINDOW_SLEEP_NS 1000000000ull /* nothing to do: it is woken */

static uint64_t draw_next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return *state >> 33;
}

/* The watch of a block that has one. */
static struct wall_watch *find_thread_watch(struct wall_sampler *sampler, uint32_t index)
{
	struct wall_watch *slab;

	if (!sampler->watch_slabs || index / WATCHES_PER_SLAB >= WATCH_SLABS_MAX)
		return NULL;
	slab = __atomic_load_n(&sampler->watch_slabs[index / WATCHES_PER_SLAB], __ATOMIC_ACQUIRE);
	return slab ? &slab[index % WATCHES_PER_SLAB] : NULL;
}

/* The watch of a block, made on first use; NULL when memory is short. */
static struct wall_watch *find_or_add_thread_watch(struct wall_sampler *sampler, uint32_t index)
{
	void *slab;

	if (index / WATCHES_PER_SLAB >= WATCH_SLABS_MAX)
		return NULL;
	if (!sampler->watch_slabs[index / WATCHES_PER_SLAB]) {
		slab = sys_mmap(NULL, WATCHES_PER_SLAB * sizeof(struct wall_watch),
				PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
				-1, 0);
		if (sys_mmap_failed(slab))
			return NULL;
		__atomic_store_n(&sampler->watch_slabs[index / WATCHES_PER_SLAB], slab,
				 __ATOMIC_RELEASE);
	}
	return find_thread_watch(sampler, index);
}

static bool thread_is_to_be_watched(const struct runtime *runtime, const struct thread *thread)
{
	return thread &&
	       thread_state_is_live(atomic_load_explicit(&thread->state, memory_order_acquire)) &&
	       thread->origin != THREAD_ORIGIN_INTERNAL && !thread->has_own_seccomp_filter &&
	       options_thread_filter_allows(&runtime->options.wall.tids, thread->sequential_id);
}

/* Looks at every thread once. */
static void inspect_all_threads(struct runtime *runtime)
{
	struct wall_sampler *sampler = &runtime->wall_sampler;
	uint32_t count = atomic_load(&runtime->threads.block_count);
	uint64_t now = read_posix_clock_ns(CLOCK_MONOTONIC);

	for (uint32_t i = 0; i < count; i++) {
		struct thread *thread = threads_get_block_at_index(&runtime->threads, i);
		struct wall_watch *watch = find_thread_watch(sampler, i);

		if (!thread_is_to_be_watched(runtime, thread)) {
			if (watch)
				wall_watch_write_time_of_ended_thread(runtime, watch);
			continue;
		}
		watch = find_or_add_thread_watch(sampler, i);
		if (!watch)
			continue;
		if (atomic_load_explicit(&thread->excluded_reasons, memory_order_relaxed)) {
			wall_watch_write_unrecorded_time(runtime, thread, watch);
			watch->thread_identity = 0;
			continue;
		}
		wall_watch_inspect_thread(runtime, thread, watch, now);
	}
}

/* Writes the unrecorded time of all threads. `forget`: what passes from here on is nobody's. */
static void write_unrecorded_time_of_all_threads(struct runtime *runtime, bool forget)
{
	uint32_t count = atomic_load(&runtime->threads.block_count);

	for (uint32_t i = 0; i < count; i++) {
		struct thread *thread = threads_get_block_at_index(&runtime->threads, i);
		struct wall_watch *watch = find_thread_watch(&runtime->wall_sampler, i);

		if (!thread || !watch)
			continue;
		wall_watch_write_time_of_ended_thread(runtime, watch);
		if (thread_is_to_be_watched(runtime, thread))
			wall_watch_write_unrecorded_time(runtime, thread, watch);
		if (forget)
			watch->thread_identity = 0;
	}
}

static void run_wall_sampler_thread(void *argument)
{
	struct runtime *runtime = argument;
	struct wall_sampler *sampler = &runtime->wall_sampler;
	uint64_t period = runtime->options.wall.period, random = ticks_now();
	uint32_t stop = 0;
	bool was_open = false;
	struct task_run_queue_counts queue;

	own_thread_announce_registry_block(&sampler->thread, &runtime->threads, sampler->own);
	scheduling_request_prompt_turns(false);
	if (!task_read_run_queue_counts(sampler->thread.tid, &queue))
		notices_post(&runtime->background, SPOOL_NOTICE_FALLBACK, 0,
			     "this kernel does not count waits for a CPU (CONFIG_SCHED_INFO): "
			     "real time is what threads were found doing",
			     NULL);
	while (stop != 1) {
		uint64_t pause = period / 2 + draw_next_random(&random) % (period + 1), taken;
		uint32_t changes = atomic_load(&sampler->change_futex_word);
		bool open =
			runtime_is_active() && atomic_load(&runtime->sampler.is_wall_window_open);
		own_thread_apply_credentials_if_new(&sampler->thread);
		stop = atomic_load(&sampler->stop);
		taken = read_posix_clock_ns(CLOCK_THREAD_CPUTIME_ID);
		if (open)
			inspect_all_threads(runtime);
		else if (was_open && runtime_is_active())
			write_unrecorded_time_of_all_threads(runtime, true);
		taken = read_posix_clock_ns(CLOCK_THREAD_CPUTIME_ID) - taken;
		was_open = open;
		if (!open) {
			pause = CLOSED_COLLECTION_WINDOW_SLEEP_NS;
			sampler->window_opened_ticks = ticks_now();
		}
		if (stop == 2 && runtime_is_active()) { /* the process ends: the unrecorded time
							   now, then go on */
			write_unrecorded_time_of_all_threads(runtime, false);
			atomic_store(&sampler->stop, 3);
			futex_wake_all_waiters(&sampler->stop);
		}
		if (pause < taken * INSPECTION_CPU_DIVISOR)
			pause = taken * INSPECTION_CPU_DIVISOR;
		/* what came in the meantime makes the word differ: no sleep */
		futex_wait(&sampler->change_futex_word, changes, pause);
	}
}

/* The calling thread goes on from here, maybe long before the first look at it. */
static void record_counts_of_starter_thread(struct wall_sampler *sampler)
{
	struct rusage usage;

	sampler->starter_thread.tid = 0;
	if (sys_call2(SYS_getrusage, RUSAGE_THREAD, (long)&usage))
		return;
	sampler->starter_thread.tid = (uint32_t)sys_gettid();
	sampler->starter_thread.blocks = (uint64_t)usage.ru_nvcsw;
	sampler->starter_thread.cpu_ns = read_posix_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	sampler->starter_thread.sampler_start_ns = read_posix_clock_ns(CLOCK_MONOTONIC);
	sampler->starter_thread.ticks = ticks_now();
	sampler->window_opened_ticks = sampler->starter_thread.ticks;
}

int wall_sampler_start(struct runtime *runtime)
{
	struct wall_sampler *sampler = &runtime->wall_sampler;

	sampler->stop = 0;
	sampler->stream = NULL;
	sampler->starts++;
	if (!sampler->watch_slabs) {
		sampler->watch_slabs = sys_mmap(NULL, WATCH_SLABS_MAX * sizeof(struct wall_watch *),
						PROT_READ | PROT_WRITE,
						MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (sys_mmap_failed(sampler->watch_slabs)) {
			sampler->watch_slabs = NULL;
			return -ENOMEM;
		}
	}
	sampler->stream = threads_allocate_block(&runtime->threads, THREAD_ORIGIN_INTERNAL,
						 THREADS_NO_PARENT);
	sampler->own = threads_allocate_block(&runtime->threads, THREAD_ORIGIN_INTERNAL,
					      THREADS_NO_PARENT);
	if (!sampler->stream || !sampler->own)
		return -ENOMEM;
	record_counts_of_starter_thread(sampler);
	own_thread_request_start(&sampler->thread, "kymo-wall", run_wall_sampler_thread, runtime,
				 &runtime->threads);
	background_wake(&runtime->background);
	return 0;
}

void wall_sampler_flush_with_timeout(struct runtime *runtime)
{
	struct wall_sampler *sampler = &runtime->wall_sampler;

	if (!sampler->stream || atomic_load(&sampler->stop) == 1)
		return;
	atomic_store(&sampler->stop, 2);
	wall_sampler_wake(sampler);
	futex_wait(&sampler->stop, 2, UNRECORDED_TIME_WRITE_TIMEOUT_NS);
}

void wall_sampler_record_thread_end(struct runtime *runtime, struct thread *thread)
{
	struct wall_watch *watch = find_thread_watch(&runtime->wall_sampler, thread->index);

	if (watch && runtime->wall_sampler.stream && thread->origin != THREAD_ORIGIN_INTERNAL)
		wall_watch_record_thread_end(runtime, thread, watch);
}

void wall_sampler_wake(struct wall_sampler *sampler)
{
	atomic_fetch_add(&sampler->change_futex_word, 1);
	futex_wake_all_waiters(&sampler->change_futex_word);
}
