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
#include "common/time_units.h"
#include "core/base/fork_state.h"
#include "core/base/ticks.h"
#include "core/helper.h"
#include "core/notices.h"
#include "core/process/main_stack.h"
#include "core/process_metrics.h"
#include "core/sampler.h"
#include "core/sampling_source.h"
#include "core/timers.h"

#define START_TIMEOUT_NS      (20 * SECOND_NS)
#define FINISH_TIMEOUT_NS     (5 * SECOND_NS)
#define HELPER_END_TIMEOUT_NS (SECOND_NS / 2)
/* The first keys have their place in the thread's own block (glibc, PTHREAD_KEY_2NDLEVEL_SIZE). */
#define PTHREAD_KEYS_IN_THREAD_BLOCK_MAX 32

struct runtime kymo_runtime = {.control.closed_reasons = CONTROL_CLOSED_NOT_STARTED};

static pthread_key_t thread_end_key;

/* Our signal is blocked while a thread leaves the registry, and open while it is in it. */
static void set_sampling_signal_blocked(bool blocked)
{
	int signal = kymo_runtime.signals.signal;
	uint64_t bit = signal_to_mask_bit(signal ? signal : SIGTRAP);

	call_rt_sigprocmask(blocked ? SIG_BLOCK : SIG_UNBLOCK, &bit, NULL);
}

struct thread *runtime_find_this_thread(void)
{
	uint32_t tid;

	if (is_calling_thread_off_limits())
		return NULL;
	tid = (uint32_t)sys_gettid();
	/* The pointer is wrong in a vfork child and in raw clones that share their creator's thread
	 * pointer. */
	if (kymo_thread && kymo_thread->tid == tid)
		return kymo_thread;
	return threads_find_by_tid(&kymo_runtime.threads, tid);
}

/* pthread destructors run in up to PTHREAD_DESTRUCTOR_ITERATIONS rounds; ours goes last, so that
 * what the program does in its own is still sampled. */
static void unregister_thread_by_key_destructor(void *value)
{
	uintptr_t round = (uintptr_t)value;

	if (!runtime_is_active())
		return;
	if (round < PTHREAD_DESTRUCTOR_ITERATIONS) {
		pthread_setspecific(thread_end_key, (void *)(round + 1));
		return;
	}
	if (kymo_thread && !kymo_thread->has_own_seccomp_filter)
		runtime_unregister_this_thread(kymo_thread);
}

void runtime_register_this_thread(struct thread *thread)
{
	struct runtime *runtime = &kymo_runtime;
	struct thread *bound;

	/* Asked by another thread it is a file of /proc, a hundred times as dear. */
	sys_call2(SYS_prctl, PR_GET_NAME, (long)thread->name);
	bound = threads_bind_own_tid(&runtime->threads, thread, (uint32_t)sys_gettid());
	if (bound != thread) { /* the background thread found this thread first */
		bound->stack_bounds = thread->stack_bounds;
		bound->wants_signal_blocked = thread->wants_signal_blocked;
		threads_free_block(&runtime->threads, thread);
		thread = bound;
	} else {
		thread->start_ticks = ticks_now();
		atomic_store_explicit(&thread->state, THREAD_STATE_LIVE, memory_order_release);
		timers_start_for_new_thread(thread);
		threads_hand_block_to_background(&runtime->threads, thread, THREAD_ANNOUNCED_NEW);
		background_wake(&runtime->background);
	}
	thread->pthread = (uint64_t)pthread_self();
	kymo_thread = thread;
	pthread_setspecific(thread_end_key, (void *)1);
}

/* A thread that the background thread has not found yet: it takes itself in. */
static struct thread *register_this_thread_not_found_yet(void)
{
	struct thread *thread;

	if (process_has_seccomp_thread() || thread_end_key >= PTHREAD_KEYS_IN_THREAD_BLOCK_MAX)
		return NULL;
	thread = threads_allocate_block(&kymo_runtime.threads, THREAD_ORIGIN_FOUND,
					THREADS_NO_PARENT);
	if (!thread)
		return NULL;
	thread->cpu_ns = read_posix_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	runtime_register_this_thread(thread);
	return kymo_thread;
}

/* The destructor is set only where that takes no memory. */
struct thread *runtime_find_or_add_this_thread(void)
{
	struct thread *thread = runtime_find_this_thread();

	if ((thread && kymo_thread == thread) || kymo_process.pid != (uint32_t)sys_getpid())
		return thread;
	if (!thread)
		return register_this_thread_not_found_yet();
	thread->pthread = (uint64_t)pthread_self();
	kymo_thread = thread;
	if (thread_end_key < PTHREAD_KEYS_IN_THREAD_BLOCK_MAX)
		pthread_setspecific(thread_end_key, (void *)1);
	return thread;
}

void runtime_unregister_this_thread(struct thread *thread)
{
	if (kymo_runtime.hooks)
		kymo_runtime.hooks->on_thread_end();
	set_sampling_signal_blocked(true);
	kymo_thread = NULL;
	thread->end_cpu_ns = read_posix_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	thread->end_ticks = ticks_now();
	timers_delete_for_thread(thread);
	sys_call2(SYS_prctl, PR_GET_NAME, (long)thread->end_name);
	sampler_write_queued_time(thread);
	sampler_close_stream(thread);
	wall_sampler_record_thread_end(&kymo_runtime, thread);
	atomic_store_explicit(&thread->state, THREAD_STATE_ENDED, memory_order_release);
	threads_hand_block_to_background(&kymo_runtime.threads, thread, THREAD_ANNOUNCED_END);
}

struct unwind_stack_bounds runtime_find_main_stack_bounds(void)
{
	struct main_stack stack = main_stack_find();

	if (stack.floor)
		kymo_runtime.sampler.main_stack_floor = stack.floor;
	return (struct unwind_stack_bounds){.low = stack.low, .high = stack.high};
}

static struct thread *register_main_thread(struct runtime *runtime,
					   const struct runtime_start_conditions *beginning)
{
	struct thread *thread =
		threads_allocate_block(&runtime->threads, THREAD_ORIGIN_MAIN, THREADS_NO_PARENT);

	if (!thread)
		return NULL;
	thread->stack_bounds = beginning->stack_bounds;
	thread->wants_signal_blocked = beginning->wants_signal_blocked;
	thread->collected_cpu_ns = beginning->unsampled_cpu_ns;
	thread->cpu_ns = thread->cpu_ns_at_arming = beginning->sampled_from_cpu_ns;
	thread->counts_cpu_before_arming = beginning->sampled_from_cpu_ns != 0;
	if (!thread->cpu_ns)
		thread->cpu_ns = read_posix_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	runtime_register_this_thread(thread);
	return thread;
}

/* What is inherited blocked must be open for sampling; the program sees it as blocked. */
static void unblock_sampling_signal(struct runtime *runtime, struct thread *thread)
{
	uint64_t bit = signal_to_mask_bit(runtime->signals.signal), previous = 0;

	call_rt_sigprocmask(SIG_UNBLOCK, &bit, &previous);
	thread->wants_signal_blocked = thread->wants_signal_blocked || (previous & bit);
}

static void set_sampler_intervals_in_ticks(struct runtime *runtime)
{
	uint64_t hz = runtime->sampler.tick_hz;

	runtime->sampler.metrics_interval_min_ticks = hz / 100;
	runtime->sampler.large_chunk_fill_ticks = hz / 10;
	runtime->sampler.throttle_ticks = hz / 4;
	runtime->sampler.plausible_handler_ticks_max = hz / 25000; /* 40 us */
}

/* Signal-safe. */
static void wake_chunk_allocators(void *context)
{
	struct runtime *runtime = context;

	background_wake(&runtime->background);
	chunk_allocators_wake_all_threads(&runtime->chunk_allocators);
}

/* Tells the parts of each other. */
static void connect_runtime_parts(struct runtime *runtime)
{
	struct sampler *sampler = &runtime->sampler;

	runtime->spool.chunk_maker_wakeup =
		(struct spool_chunk_maker_wakeup){wake_chunk_allocators, runtime};
	runtime->threads.sampler = sampler;
	runtime->control.background = sampler->background = &runtime->background;
	runtime->control.hooks = runtime->hooks;
	sampler->spool = &runtime->spool;
	sampler->modules = &runtime->modules;
	sampler->threads = &runtime->threads;
	sampler->signals = &runtime->signals;
	sampler->control = &runtime->control;
	sampler->options = &runtime->options;
	if (runtime->hooks && runtime->hooks->on_prepare)
		runtime->hooks->on_prepare(runtime);
	runtime->are_parts_connected = true;
}

static bool create_thread_end_key(void)
{
	static bool made;

	return made ||
	       (made = !pthread_key_create(&thread_end_key, unregister_thread_by_key_destructor));
}

/* Where setting the key takes memory it is taken now: what begins in a handler may not. */
KYMO_FORK_CODE bool runtime_prepare_dormant(struct runtime *runtime)
{
	/* A forked child has it all from its parent, and does not copy those pages. */
	if (!runtime->are_parts_connected)
		connect_runtime_parts(runtime);
	return process_state_map_fork_detector() && create_thread_end_key() &&
	       !pthread_setspecific(thread_end_key, (void *)1);
}

bool runtime_prepare_once(struct runtime *runtime)
{
	/* Whoever attaches next may want deeper stacks; what is not used takes no memory. */
	uint32_t depth = runtime->attached
				 ? (uint32_t)settings_table[SETTING_SAMPLING_MAX_DEPTH].maximum
				 : runtime->options.max_depth;

	connect_runtime_parts(runtime);
	if (runtime->prepared)
		return true;
	runtime->sampler.cache = unwind_cache_create();
	if (!runtime->sampler.cache || !process_state_map_fork_detector() ||
	    threads_init(&runtime->threads, depth) ||
	    modules_init(&runtime->modules, runtime->options.cache_directory,
			 runtime->sampler.cache))
		return false;
	runtime->prepared = true;
	runtime->sampler.tick_hz = ticks_init_and_get_hz();
	set_sampler_intervals_in_ticks(runtime);
	return create_thread_end_key();
}

void runtime_apply_options(struct runtime *runtime)
{
	const struct options *options = &runtime->options;

	runtime->threads.select = options->regions.selected && *options->regions.selected;
	threads_set_max_stack_depth(&runtime->threads, options->max_depth);
	runtime->modules.cache_directory =
		*options->cache_directory ? options->cache_directory : NULL;
}

/* valgrind runs the program on a processor of its own making, which refuses threads made as ours
 * are. */
static bool process_is_in_valgrind(char *const *environment)
{
	for (; *environment; environment++) {
		if (!strncmp(*environment, "LD_PRELOAD=", 11) && strstr(*environment, "vgpreload"))
			return true;
	}
	return false;
}

bool runtime_read_options(struct runtime *runtime, char *const *environment)
{
	options_read_environment(&runtime->options, environment);
	if (!runtime->options.enabled || !runtime->options.spool_directory[0] ||
	    process_is_in_valgrind(environment))
		return false;
	runtime->environment = environment;
	kymo_process.pid = (uint32_t)sys_getpid();
	return true;
}

static struct runtime_start_conditions reset_in_forked_child(struct runtime *runtime)
{
	struct runtime_start_conditions beginning = {.unsampled_cpu_ns = 0};

	if (kymo_thread) {
		beginning.stack_bounds = kymo_thread->stack_bounds;
		beginning.wants_signal_blocked = kymo_thread->wants_signal_blocked;
	}
	kymo_thread = NULL;
	kymo_process.pid = (uint32_t)sys_getpid();
	process_state_reset_fork_detector();
	runtime_reset_state_for_new_run(runtime);
	threads_reset_in_child(&runtime->threads);
	return beginning;
}

static struct thread *register_first_thread(struct runtime *runtime,
					    const struct runtime_start_conditions *beginning)
{
	struct thread *thread;

	if (beginning->forked)
		reset_in_forked_child(runtime);
	if (!runtime_prepare_once(runtime))
		return NULL;
	runtime_apply_options(runtime);
	thread = register_main_thread(runtime, beginning);
	if (thread && beginning->forked && runtime->hooks)
		runtime->hooks->forked();
	return thread;
}

bool runtime_begin_collection(struct runtime *runtime,
			      const struct runtime_start_conditions *beginning)
{
	struct thread *thread;

	kymo_process.state = RUNTIME_STARTING;
	thread = register_first_thread(runtime, beginning);
	if (!thread || background_start(runtime) ||
	    !background_wait_for_stage(&runtime->background, BACKGROUND_STAGE_COLLECTING,
				       START_TIMEOUT_NS) ||
	    runtime->background.ready == BACKGROUND_STAGE_FAILED) {
		kymo_process.state = RUNTIME_FAILED;
		return false;
	}
	if (!beginning->interrupted)
		unblock_sampling_signal(runtime, thread);
	/* Its timer was wanted before it could be told by a sample. */
	if (runtime->sampler.source == &sampling_source_timer)
		timers_start_for_new_thread(thread);
	if (runtime->options.wall.on)
		wall_sampler_start(runtime);
	return true;
}

void runtime_start(char *const *environment)
{
	struct runtime *runtime = &kymo_runtime;

	if (runtime_read_options(runtime, environment))
		runtime_begin_collection(runtime,
					 &(struct runtime_start_conditions){
						 .stack_bounds = runtime_find_main_stack_bounds()});
}

/* Is there anything in memory that only the background thread writes? */
static bool has_data_for_background_to_write(const struct runtime *runtime)
{
	return atomic_load_explicit(&runtime->follow_allocations, memory_order_relaxed) ||
	       (runtime->hooks && runtime->hooks->has_unwritten_records &&
		runtime->hooks->has_unwritten_records());
}

static void request_last_records_and_wait(struct runtime *runtime,
					  enum background_finish_request_kind how)
{
	process_usage_update();
	atomic_store(&runtime->background.finish, how);
	background_wake(&runtime->background);
	background_wait_for_stage(&runtime->background, BACKGROUND_STAGE_FINISHED,
				  FINISH_TIMEOUT_NS);
}

/* Nobody but the calling thread needs it any more. */
static void end_helper_process(struct runtime *runtime)
{
	request_last_records_and_wait(runtime, BACKGROUND_FINISH_AND_END_HELPER);
	helper_wait_until_gone(HELPER_END_TIMEOUT_NS);
}

void runtime_finish(void)
{
	struct runtime *runtime = &kymo_runtime;

	/* In a child that was just forked it is written by a thread that is not there yet. */
	if (kymo_process.state == RUNTIME_STARTING && process_is_where_runtime_started() &&
	    has_data_for_background_to_write(runtime))
		background_wait_for_stage(&runtime->background, BACKGROUND_STAGE_COLLECTING,
					  START_TIMEOUT_NS);
	/* No system call within a sandbox, not even to ask who this is. */
	if (!runtime_is_active() || is_calling_thread_off_limits() ||
	    (uint32_t)sys_getpid() != kymo_process.pid)
		return;
	wall_sampler_flush_with_timeout(runtime);
	if (runtime->background.program_thread_count <= 1)
		end_helper_process(runtime);
	else
		request_last_records_and_wait(runtime, BACKGROUND_FINISH_AND_GO_ON);
}

#define EXEC_FLUSH_TIMEOUT_NS (2 * SECOND_NS)

static void discard_pending_signal(uint64_t bit)
{
	struct timespec now = {0, 0};

	while (sys_call4(SYS_rt_sigtimedwait, (long)&bit, 0, (long)&now, sizeof(bit)) > 0)
		;
}

struct thread *runtime_stop_thread_sampling_for_exec(void)
{
	struct runtime *runtime = &kymo_runtime;
	struct thread *thread;

	if (!runtime_is_active_or_starting())
		return NULL;
	thread = runtime_find_this_thread();
	if (!thread || kymo_process.pid != (uint32_t)sys_getpid())
		return NULL;
	set_sampling_signal_blocked(true);
	/* seq_cst: pairs with sources_open_for_thread() */
	atomic_store(&thread->exec_pending, 1);
	while (atomic_load(&thread->arming))
		sys_call0(SYS_sched_yield);
	if (thread->armed || thread->overflow_armed)
		background_request_flush_and_wait(&runtime->background, EXEC_FLUSH_TIMEOUT_NS);
	timers_delete_for_thread(thread);
	discard_pending_signal(
		signal_to_mask_bit(runtime->signals.signal ? runtime->signals.signal : SIGTRAP));
	return thread;
}

KYMO_FORK_CODE bool runtime_flush_and_wait_if_unwritten(void)
{
	struct runtime *runtime = &kymo_runtime;

	if (!runtime_is_active_or_starting() ||
	    atomic_load(&runtime->background.ready) == BACKGROUND_STAGE_FAILED ||
	    (!has_data_for_background_to_write(runtime) && !runtime->wall_sampler.stream))
		return false;
	/* As in runtime_finish(). */
	if (is_calling_thread_off_limits())
		return false;
	if (kymo_process.pid != (uint32_t)sys_getpid())
		return false;
	if (runtime_is_active())
		wall_sampler_flush_with_timeout(runtime);
	if (!has_data_for_background_to_write(runtime))
		return false;
	background_request_flush_and_wait(&runtime->background, EXEC_FLUSH_TIMEOUT_NS);
	return true;
}

void runtime_resume_after_failed_exec(struct thread *thread)
{
	atomic_store(&thread->exec_pending, 0);
	timers_start_for_new_thread(thread);
	set_sampling_signal_blocked(false);
	background_wake(&kymo_runtime.background);
}

void runtime_stop_for_good(const char *why)
{
	struct runtime *runtime = &kymo_runtime;

	if (!runtime_is_active())
		return;
	runtime->background.stop_reason = why;
	atomic_store(&runtime->wall_sampler.stop, 1);
	wall_sampler_wake(&runtime->wall_sampler);
	atomic_store(&runtime->background.stop, 1);
	background_wake(&runtime->background);
	background_wait_for_stage(&runtime->background, BACKGROUND_STAGE_STOPPED,
				  FINISH_TIMEOUT_NS);
	timers_delete_for_all_threads(&runtime->threads);
	helper_wait_until_gone(HELPER_END_TIMEOUT_NS);
}

static void reset_background_state(struct background_state *background)
{
	void *stack = background->thread.stack;

	memset(background, 0, sizeof(*background));
	background->thread.stack = stack;
}

static void reset_chunk_allocators(struct chunk_allocators *allocators)
{
	for (uint32_t i = 0; i < CHUNK_ALLOCATORS_MAX; i++) {
		void *stack = allocators->allocator_threads[i].thread.stack;
		memset(&allocators->allocator_threads[i], 0,
		       sizeof(allocators->allocator_threads[i]));
		allocators->allocator_threads[i].thread.stack = stack;
	}
	allocators->count = 0;
	allocators->stop = 0;
}

void runtime_reset_state_for_new_run(struct runtime *runtime)
{
	control_add_closed_reason(&runtime->control, CONTROL_CLOSED_NOT_STARTED);
	spool_unmap_old_run(&runtime->spool);
	modules_reset_for_new_run(&runtime->modules);
	runtime->wall_sampler.own = runtime->wall_sampler.stream = NULL;
	runtime->walkers = 0;
	runtime->records.chunk = NULL;
	notices_discard_posted();
	timers_reset_after_fork();
	process_usage_reset();
	reset_background_state(&runtime->background);
	reset_chunk_allocators(&runtime->chunk_allocators);
}

/* The same as a start, in a process that was started before. */
static void restart_runtime(struct runtime *runtime)
{
	struct runtime_start_conditions beginning;

	kymo_process.state = RUNTIME_STARTING;
	beginning = reset_in_forked_child(runtime);
	if (!runtime->options.follow_children || !register_main_thread(runtime, &beginning)) {
		kymo_process.state = RUNTIME_FAILED;
		return;
	}
	if (runtime->hooks)
		runtime->hooks->forked();
	if (background_start(runtime)) {
		kymo_process.state = RUNTIME_FAILED;
		return;
	}
	/* Until there is a file, so that a child that leaves at once is known all the same, and
	 * regions can be written; the rest it does beside the program. */
	background_wait_for_stage(&runtime->background, BACKGROUND_STAGE_RECORDING,
				  START_TIMEOUT_NS);
	if (runtime->options.wall.on)
		wall_sampler_start(runtime);
}

void runtime_restart_in_forked_child(void)
{
	struct runtime *runtime = &kymo_runtime;

	/* starting: a child of a child whose background thread is not done yet */
	if (kymo_process.state != RUNTIME_ACTIVE && kymo_process.state != RUNTIME_STARTING)
		return;
	if (kymo_thread && kymo_thread->has_own_seccomp_filter) {
		kymo_process.state = RUNTIME_FAILED;
		return;
	}
	restart_runtime(runtime);
}

bool runtime_try_end_kymo_threads(const char *why)
{
	struct runtime *runtime = &kymo_runtime;

	if (kymo_process.state == RUNTIME_STARTING && process_is_where_runtime_started())
		background_wait_for_stage(&runtime->background, BACKGROUND_STAGE_COLLECTING,
					  START_TIMEOUT_NS);
	/* With threads of the program's own the call fails as it would alone. */
	if (!runtime_is_active() || runtime->background.program_thread_count > 1 ||
	    is_calling_thread_off_limits() || kymo_process.pid != (uint32_t)sys_getpid())
		return false;
	runtime_stop_for_good(why);
	helper_wait_until_reaped(HELPER_END_TIMEOUT_NS);
	return true;
}

KYMO_FORK_CODE bool runtime_end_helper_if_program_child(bool always)
{
	struct runtime *runtime = &kymo_runtime;

	if (!helper_is_program_child() || !process_is_where_runtime_started() ||
	    kymo_process.in_seccomp || kymo_process.pid != (uint32_t)sys_getpid() ||
	    (runtime->background.program_thread_count > 1 && !always))
		return false;
	end_helper_process(runtime);
	return true;
}

void runtime_restart_kymo_threads(void)
{
	helper_wait_until_reaped(HELPER_END_TIMEOUT_NS);
	restart_runtime(&kymo_runtime);
}
