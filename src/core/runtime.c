/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See runtime.h.
 */
#include "core/runtime.h"

#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

#include "common/settings.h"
#include "common/syscalls.h"
#include "core/maps.h"
#include "core/notices.h"
#include "core/sampler.h"
#include "core/ticks.h"

#define SECOND_NS         1000000000ull
#define START_TIMEOUT_NS  (20 * SECOND_NS)
#define FINISH_TIMEOUT_NS (5 * SECOND_NS)
/* The first keys have their place in the thread's own block (glibc, PTHREAD_KEY_2NDLEVEL_SIZE). */
#define FIRST_KEYS 32
#define STACK_GAP_MINIMUM                                                                          \
	(128ull << 20) /* the kernel keeps mappings this far below the main stack (mmap_base) */

struct runtime kymo_runtime = {.control.closed = CONTROL_CLOSED_START};
__thread struct thread *kymo_thread;

static pthread_key_t end_key;

/* Our signal is blocked while a thread leaves the registry, and open while it is in it. */
static void set_signal_blocked(bool blocked)
{
	uint64_t bit =
		signal_bit(kymo_runtime.signals.signal ? kymo_runtime.signals.signal : SIGTRAP);

	kernel_sigmask(blocked ? SIG_BLOCK : SIG_UNBLOCK, &bit, NULL);
}

struct thread *runtime_this_thread(void)
{
	uint32_t tid;

	if (kymo_runtime.sealed && (!kymo_thread || kymo_thread->sealed))
		return NULL;
	tid = (uint32_t)sys_gettid();
	/* The pointer is wrong in a vfork child and in raw clones that share their creator's thread
	 * pointer. */
	if (kymo_thread && kymo_thread->tid == tid)
		return kymo_thread;
	return threads_by_tid(&kymo_runtime.threads, tid);
}

/* pthread destructors run in up to PTHREAD_DESTRUCTOR_ITERATIONS rounds; ours goes last, so that
 * what the program does in its own is still sampled. */
static void thread_key_destructor(void *value)
{
	uintptr_t round = (uintptr_t)value;

	if (!runtime_active())
		return;
	if (round < PTHREAD_DESTRUCTOR_ITERATIONS) {
		pthread_setspecific(end_key, (void *)(round + 1));
		return;
	}
	if (kymo_thread && !kymo_thread->sealed)
		runtime_thread_end(kymo_thread);
}

void runtime_thread_begin(struct thread *thread)
{
	struct thread *bound;

	thread->start_ticks = ticks_now();
	/* Asked by another thread it is a file of /proc, a hundred times as dear. */
	sys_call2(SYS_prctl, PR_GET_NAME, (long)thread->name);
	bound = threads_bind(&kymo_runtime.threads, thread, (uint32_t)sys_gettid());
	if (bound != thread) { /* the background thread found this thread first */
		bound->bounds = thread->bounds;
		bound->wants_blocked = thread->wants_blocked;
		threads_discard(&kymo_runtime.threads, thread);
		thread = bound;
	} else {
		atomic_store_explicit(&thread->state, THREAD_LIVE, memory_order_release);
		threads_announce(&kymo_runtime.threads, thread, THREAD_ANNOUNCED_NEW);
		background_wake(&kymo_runtime.background);
	}
	kymo_thread = thread;
	pthread_setspecific(end_key, (void *)1);
}

/* A thread that the background thread has not found yet: it takes itself in. */
static struct thread *begin_found_thread(void)
{
	struct thread *thread;

	if (kymo_runtime.sealed || end_key >= FIRST_KEYS)
		return NULL;
	thread = threads_allocate(&kymo_runtime.threads, THREAD_FOUND, THREADS_NONE);
	if (!thread)
		return NULL;
	thread->cpu_ns = ticks_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	runtime_thread_begin(thread);
	return kymo_thread;
}

/* The destructor is set only where that takes no memory. */
struct thread *runtime_adopt_this_thread(void)
{
	struct thread *thread = runtime_this_thread();

	if ((thread && kymo_thread == thread) || kymo_runtime.pid != (uint32_t)sys_getpid())
		return thread;
	if (!thread)
		return begin_found_thread();
	kymo_thread = thread;
	if (end_key < FIRST_KEYS)
		pthread_setspecific(end_key, (void *)1);
	return thread;
}

void runtime_thread_end(struct thread *thread)
{
	if (kymo_runtime.hooks)
		kymo_runtime.hooks->thread_end();
	set_signal_blocked(true);
	kymo_thread = NULL;
	thread->end_cpu_ns = ticks_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	thread->end_ticks = ticks_now();
	sys_call2(SYS_prctl, PR_GET_NAME, (long)thread->end_name);
	sampler_close_stream(thread);
	atomic_store_explicit(&thread->state, THREAD_ENDED, memory_order_release);
	threads_announce(&kymo_runtime.threads, thread, THREAD_ANNOUNCED_END);
}

static bool map_fork_guard(struct runtime *runtime)
{
	uint32_t *page =
		sys_mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (sys_failed(page))
		return false;
	sys_madvise(page, 4096, MADV_WIPEONFORK);
	*page = 1;
	runtime->same_process = page;
	return true;
}

/* The main stack grows down from the end of [stack]; everything down to its limit is its own. */
struct unwind_bounds runtime_main_stack(void)
{
	static char *buffer;
	static uint64_t size;
	struct unwind_bounds bounds = {0, 0};
	struct rlimit limit;
	struct maps_line line;
	uint64_t gap = STACK_GAP_MINIMUM;
	char *text;

	if (maps_read("/proc/self/maps", &buffer, &size) <= 0)
		return bounds;
	for (text = buffer; maps_next(&text, &line);) {
		if (strcmp(line.path, "[stack]"))
			continue;
		if (!sys_call4(SYS_prlimit64, 0, RLIMIT_STACK, 0, (long)&limit) &&
		    limit.rlim_cur < line.end) {
			kymo_runtime.sampling.main_stack_floor = line.end - limit.rlim_cur;
			if (limit.rlim_cur > gap)
				gap = limit.rlim_cur;
		}
		bounds.high = line.end;
		bounds.low = line.end > gap ? line.end - gap : 0;
	}
	maps_free(&buffer, size);
	size = 0;
	return bounds;
}

static struct thread *begin_main_thread(struct runtime *runtime, struct unwind_bounds bounds,
					bool wants_blocked)
{
	struct thread *thread = threads_allocate(&runtime->threads, THREAD_MAIN, THREADS_NONE);

	if (!thread)
		return NULL;
	thread->bounds = bounds;
	thread->wants_blocked = wants_blocked;
	thread->cpu_ns = ticks_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	runtime_thread_begin(thread);
	return thread;
}

/* What is inherited blocked must be open for sampling; the program is told that it is blocked. */
static void open_signal(struct runtime *runtime, struct thread *thread)
{
	uint64_t bit = signal_bit(runtime->signals.signal), previous = 0;

	kernel_sigmask(SIG_UNBLOCK, &bit, &previous);
	thread->wants_blocked = thread->wants_blocked || (previous & bit);
}

static void set_intervals(struct runtime *runtime)
{
	uint64_t hz = runtime->sampling.tick_hz;

	runtime->sampling.metric_ticks = hz / 100;
	runtime->sampling.growth_ticks = hz / 10;
	runtime->sampling.throttle_ticks = hz / 4;
	runtime->sampling.handler_ticks_believed = hz / 25000; /* 40 us */
}

bool runtime_prepare(struct runtime *runtime)
{
	/* Whoever attaches next may want deeper stacks; what is not used takes no memory. */
	uint32_t depth = runtime->attached
				 ? (uint32_t)settings_table[SETTING_SAMPLING_MAX_DEPTH].maximum
				 : runtime->options.max_depth;

	if (runtime->prepared)
		return true;
	runtime->sampling.cache = unwind_cache_create();
	if (!runtime->sampling.cache || !map_fork_guard(runtime) ||
	    threads_init(&runtime->threads, depth) ||
	    modules_init(&runtime->modules, runtime->options.cache_directory,
			 runtime->sampling.cache))
		return false;
	runtime->prepared = true;
	runtime->sampling.tick_hz = ticks_init();
	set_intervals(runtime);
	return !pthread_key_create(&end_key, thread_key_destructor);
}

void runtime_set_up(struct runtime *runtime)
{
	const struct options *options = &runtime->options;

	runtime->threads.select = options->regions.selected && *options->regions.selected;
	threads_limit_depth(&runtime->threads, options->max_depth);
	runtime->modules.cache_directory =
		*options->cache_directory ? options->cache_directory : NULL;
}

/* valgrind runs the program on a processor of its own making, which refuses threads made as ours
 * are. */
static bool inside_valgrind(char *const *environment)
{
	for (; *environment; environment++) {
		if (!strncmp(*environment, "LD_PRELOAD=", 11) && strstr(*environment, "vgpreload"))
			return true;
	}
	return false;
}

void runtime_start(char *const *environment)
{
	struct runtime *runtime = &kymo_runtime;
	struct thread *thread;

	options_read(&runtime->options, environment);
	if (!runtime->options.enabled || !runtime->options.spool_directory[0] ||
	    inside_valgrind(environment))
		return;
	runtime->environment = environment;
	runtime->pid = (uint32_t)sys_getpid();
	runtime->state = RUNTIME_STARTING;
	if (!runtime_prepare(runtime)) {
		runtime->state = RUNTIME_FAILED;
		return;
	}
	runtime_set_up(runtime);
	thread = begin_main_thread(runtime, runtime_main_stack(), false);
	if (!thread || background_start(runtime) ||
	    !background_wait(&runtime->background, BACKGROUND_COLLECTING, START_TIMEOUT_NS) ||
	    runtime->background.ready == BACKGROUND_FAILED) {
		runtime->state = RUNTIME_FAILED;
		return;
	}
	open_signal(runtime, thread);
	if (runtime->options.wall.on)
		wall_sampler_start(runtime);
}

/* Is there anything in memory that only the background thread writes? */
static bool keeps(const struct runtime *runtime)
{
	return atomic_load_explicit(&runtime->follow_allocations, memory_order_relaxed) ||
	       (runtime->hooks && runtime->hooks->keeps && runtime->hooks->keeps());
}

void runtime_finish(void)
{
	struct runtime *runtime = &kymo_runtime;

	/* In a child that was just forked it is written by a thread that is not there yet. */
	if (runtime->state == RUNTIME_STARTING && *runtime->same_process && keeps(runtime))
		background_wait(&runtime->background, BACKGROUND_COLLECTING, START_TIMEOUT_NS);
	/* No system call within a sandbox, not even to ask who this is. */
	if (!runtime_active() || (runtime->sealed && (!kymo_thread || kymo_thread->sealed)) ||
	    (uint32_t)sys_getpid() != runtime->pid)
		return;
	wall_sampler_finish(runtime);
	atomic_store(&runtime->background.finish, 1);
	background_wake(&runtime->background);
	background_wait(&runtime->background, BACKGROUND_FINISHED, FINISH_TIMEOUT_NS);
}

#define LEAVE_TIMEOUT_NS (2 * SECOND_NS)

static void drain(uint64_t bit)
{
	struct timespec now = {0, 0};

	while (sys_call4(SYS_rt_sigtimedwait, (long)&bit, 0, (long)&now, sizeof(bit)) > 0)
		;
}

struct thread *runtime_thread_leave(void)
{
	struct runtime *runtime = &kymo_runtime;
	uint32_t state = atomic_load(&runtime->state);
	struct thread *thread;

	if ((state != RUNTIME_ACTIVE && state != RUNTIME_STARTING) || !*runtime->same_process)
		return NULL;
	thread = runtime_this_thread();
	if (!thread || runtime->pid != (uint32_t)sys_getpid())
		return NULL;
	set_signal_blocked(true);
	/* seq_cst: pairs with sources_open() */
	atomic_store(&thread->leaving, 1);
	while (atomic_load(&thread->arming))
		sys_call0(SYS_sched_yield);
	if (thread->armed || thread->overflow_armed)
		background_flush(&runtime->background, LEAVE_TIMEOUT_NS);
	drain(signal_bit(runtime->signals.signal ? runtime->signals.signal : SIGTRAP));
	return thread;
}

bool runtime_write_kept(void)
{
	struct runtime *runtime = &kymo_runtime;
	uint32_t state = atomic_load(&runtime->state);

	if ((state != RUNTIME_ACTIVE && state != RUNTIME_STARTING) || !*runtime->same_process ||
	    atomic_load(&runtime->background.ready) == BACKGROUND_FAILED || !keeps(runtime))
		return false;
	/* As in runtime_finish(). */
	if (runtime->sealed && (!kymo_thread || kymo_thread->sealed))
		return false;
	if (runtime->pid != (uint32_t)sys_getpid())
		return false;
	background_flush(&runtime->background, LEAVE_TIMEOUT_NS);
	return true;
}

void runtime_thread_stay(struct thread *thread)
{
	atomic_store(&thread->leaving, 0);
	set_signal_blocked(false);
	background_wake(&kymo_runtime.background);
}

void runtime_stop(const char *why)
{
	struct runtime *runtime = &kymo_runtime;

	if (!runtime_active())
		return;
	runtime->background.stop_reason = why;
	atomic_store(&runtime->wall_sampler.stop, 1);
	wall_sampler_wake(&runtime->wall_sampler);
	atomic_store(&runtime->background.stop, 1);
	background_wake(&runtime->background);
	background_wait(&runtime->background, BACKGROUND_STOPPED, FINISH_TIMEOUT_NS);
}

static void reset_background(struct background *background)
{
	void *stack = background->thread.stack;

	memset(background, 0, sizeof(*background));
	background->thread.stack = stack;
}

static void reset_allocators(struct allocators *allocators)
{
	for (uint32_t i = 0; i < ALLOCATORS_MAX; i++) {
		void *stack = allocators->allocator[i].thread.stack;
		memset(&allocators->allocator[i], 0, sizeof(allocators->allocator[i]));
		allocators->allocator[i].thread.stack = stack;
	}
	allocators->count = 0;
	allocators->stop = 0;
}

void runtime_forget_run(struct runtime *runtime)
{
	control_close(CONTROL_CLOSED_START);
	spool_abandon(&runtime->spool);
	modules_forget_records(&runtime->modules);
	runtime->wall_sampler.own = runtime->wall_sampler.stream = NULL;
	runtime->walkers = 0;
	runtime->track.chunk = NULL;
	notices_forget();
	reset_background(&runtime->background);
	reset_allocators(&runtime->allocators);
}

/* The same as a start, in a process that was started before. */
static void restart(struct runtime *runtime)
{
	struct unwind_bounds bounds = {0, 0};
	bool wants_blocked = false;

	runtime->state = RUNTIME_STARTING;
	if (kymo_thread) {
		bounds = kymo_thread->bounds;
		wants_blocked = kymo_thread->wants_blocked;
	}
	kymo_thread = NULL;
	runtime->pid = (uint32_t)sys_getpid();
	*(volatile uint32_t *)runtime->same_process = 1;
	runtime_forget_run(runtime);
	threads_reset(&runtime->threads);
	if (!runtime->options.follow_children ||
	    !begin_main_thread(runtime, bounds, wants_blocked)) {
		runtime->state = RUNTIME_FAILED;
		return;
	}
	if (runtime->hooks)
		runtime->hooks->forked();
	if (background_start(runtime)) {
		runtime->state = RUNTIME_FAILED;
		return;
	}
	/* Until there is a file, so that a child that leaves at once is known all the same, and
	 * regions can be written; the rest it does beside the program. */
	background_wait(&runtime->background, BACKGROUND_RECORDING, START_TIMEOUT_NS);
	if (runtime->options.wall.on)
		wall_sampler_start(runtime);
}

void runtime_restart_in_child(void)
{
	struct runtime *runtime = &kymo_runtime;

	/* starting: a child of a child whose background thread is not done yet */
	if (runtime->state != RUNTIME_ACTIVE && runtime->state != RUNTIME_STARTING)
		return;
	if (kymo_thread && kymo_thread->sealed) {
		runtime->state = RUNTIME_FAILED;
		return;
	}
	restart(runtime);
}

bool runtime_suspend(const char *why)
{
	struct runtime *runtime = &kymo_runtime;
	struct timespec pause = {0, 100000};

	/* With threads of the program's own the call fails as it would alone. */
	if (!runtime_active() || runtime->background.program_threads > 1 ||
	    (kymo_thread && kymo_thread->sealed))
		return false;
	runtime_stop(why);
	for (int i = 0; i < 10000; i++) {
		bool gone = own_thread_is_gone(&runtime->background.thread) &&
			    own_thread_is_gone(&runtime->wall_sampler.thread);
		for (uint32_t j = 0; j < runtime->allocators.count; j++)
			gone = gone && own_thread_is_gone(&runtime->allocators.allocator[j].thread);
		if (gone)
			break;
		sys_call4(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, (long)&pause, 0);
	}
	return true;
}

void runtime_resume(void)
{
	restart(&kymo_runtime);
}
