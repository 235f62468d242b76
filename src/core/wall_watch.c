/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See wall_watch.h.
 */
#include "core/wall_watch.h"

#include <string.h>
#include <sys/resource.h>

#include "core/base/ticks.h"
#include "core/program.h"
#include "core/runtime.h"
#include "core/sampler.h"

#define WAIT_RECORD_INTERVAL_NS 100000000ull /* a wait that lasts is recorded this often */
#define WAIT_RECORD_INTERVAL_TIMES_THREADS_NS                                                      \
	500000ull /* the same for each thread there is, so that it costs 1 % */
#define NEGLIGIBLE_OFF_CPU_DIVISOR                                                                 \
	10 /* off the processor for less of a period: it is not asked why */
#define STACKLESS_TIME_MAX_NS                50000000ull
#define STACKLESS_TIME_MEAN_WAKEUP_WAITS_MAX 4u /* as many waits after a wake-up may be more */
#define STACKLESS_TIME_AGE_MAX_NS            2000000000ull
#define WAIT_INSPECTION_DELAY_DIVISOR        16u /* of a wait may pass before it is looked at again */
#define WAIT_INSPECTION_DELAY_MAX_NS         16000000ull /* but no more than this */
#define QUEUED_TIME_LENT_PERIODS_MAX         4u
#define NEXT_SAMPLE_CPU_SLACK_NS             20000000ull
#define LAST_SAMPLE_NEAR_PERIODS_MAX         2u
#define SAMPLE_COPY_TRIES                    3

static uint64_t get_wait_record_interval_ns(const struct runtime *runtime)
{
	uint64_t all = atomic_load_explicit(&runtime->threads.live_count, memory_order_relaxed) *
		       WAIT_RECORD_INTERVAL_TIMES_THREADS_NS;

	return all > WAIT_RECORD_INTERVAL_NS ? all : WAIT_RECORD_INTERVAL_NS;
}

/* ---- writing ---- */

/* Writes *owed_ns as one sample of the thread, in a span of its own, and sets it to 0. */
static void write_owed_time_as_sample(struct runtime *runtime, const struct wall_watch *watch,
				      enum spool_sample_source source,
				      const struct sampled_stack *stack, uint64_t *owed_ns)
{
	struct thread *stream = runtime->wall_sampler.stream;

	if (!*owed_ns)
		return;
	if (stream->internal_id != watch->internal_id || !stream->chunk) {
		stream->internal_id = watch->internal_id;
		stream->tid = watch->tid;
		sampler_stream_begin_identity_span(stream, ticks_now());
	}
	if (sampler_write_sample(stream, stack, source, ticks_now(), *owed_ns,
				 modules_are_stale(&runtime->modules), NULL))
		*owed_ns = 0;
}

/* The time of the wait whose stack is known. */
static void write_wait_time_at_its_stack(struct runtime *runtime, struct wall_watch *watch)
{
	const struct sampled_stack stack = {watch->frames, watch->count, watch->end,
					    watch->interpreter_state};

	write_owed_time_as_sample(runtime, watch, SPOOL_SOURCE_WALL, &stack,
				  &watch->time_account.blocked_ns);
	write_owed_time_as_sample(runtime, watch, SPOOL_SOURCE_RUNNABLE, &stack,
				  &watch->time_account.queued_after_wakeup_ns);
	watch->stackless_time_since_ns = 0;
}

/* In the place of a stack: why there is none. */
static struct sampled_stack no_stack_reason_to_stack(enum spool_no_stack reason)
{
	static const uint64_t reasons[] = {
		[SPOOL_NO_STACK_BRIEF] = SPOOL_NO_STACK_BRIEF,
		[SPOOL_NO_STACK_ENDED] = SPOOL_NO_STACK_ENDED,
		[SPOOL_NO_STACK_UNSAMPLED] = SPOOL_NO_STACK_UNSAMPLED,
	};
	return (struct sampled_stack){&reasons[reason], 1, SPOOL_STACK_NOT_WALKED,
				      SPOOL_INTERPRETER_STATE_NONE};
}

static void write_wait_without_stack(struct runtime *runtime, struct wall_watch *watch,
				     enum spool_no_stack reason)
{
	const struct sampled_stack stack = no_stack_reason_to_stack(reason);

	write_owed_time_as_sample(runtime, watch, SPOOL_SOURCE_WALL, &stack,
				  &watch->time_account.blocked_ns);
	write_owed_time_as_sample(runtime, watch, SPOOL_SOURCE_RUNNABLE, &stack,
				  &watch->time_account.queued_after_wakeup_ns);
	watch->stackless_time_since_ns = 0;
}

/* Waits that are over may never have been found by a look. Time of theirs stands at the next wait
 * that is found, which is as likely to be any of them as it is long. But only for a while, and only
 * so much of it: what comes next may have nothing to do with them. */
static void write_stackless_time_over_limit(struct runtime *runtime, struct wall_watch *watch,
					    uint64_t now)
{
	uint64_t held = watch->time_account.blocked_ns + watch->time_account.queued_after_wakeup_ns;
	uint64_t most = STACKLESS_TIME_MEAN_WAKEUP_WAITS_MAX *
			watch->time_account.mean_wait_after_wakeup_ns;

	if (!held)
		return;
	if (most < STACKLESS_TIME_MAX_NS)
		most = STACKLESS_TIME_MAX_NS;
	if (!watch->stackless_time_since_ns)
		watch->stackless_time_since_ns = now;
	if (held > most || now - watch->stackless_time_since_ns > STACKLESS_TIME_AGE_MAX_NS)
		write_wait_without_stack(runtime, watch, SPOOL_NO_STACK_BRIEF);
}

/* ---- time that waits for the next CPU sample ---- */

static void pass_queued_time_to_next_sample(struct thread *thread, struct wall_watch *watch)
{
	if (!watch->time_account.queued_after_preemption_ns)
		return;
	atomic_fetch_add_explicit(&thread->queued_ns,
				  watch->time_account.queued_after_preemption_ns,
				  memory_order_relaxed);
	watch->time_account.queued_after_preemption_ns = 0;
	if (!watch->has_lent_queued_time) {
		watch->lent_at_sample_count = thread->sample_count;
		watch->lent_at_cpu_ns = watch->time_account.cpu_ns;
	}
	watch->has_lent_queued_time = true;
}

/* The stack of the thread's last CPU sample, if that is near: it may be in the midst of another. */
static bool copy_last_sample_stack(const struct runtime *runtime, struct thread *thread,
				   uint64_t cpu_ns, struct sampled_stack *ret)
{
	static uint64_t frames[WALL_WATCH_FRAMES_MAX]; /* of the one thread that asks */
	uint64_t near =
		LAST_SAMPLE_NEAR_PERIODS_MAX * runtime->sampler.period + NEXT_SAMPLE_CPU_SLACK_NS;

	for (int i = 0; i < SAMPLE_COPY_TRIES; i++) {
		uint64_t samples = thread->sample_count;
		uint32_t count = thread->previous_frame_count;

		if (!samples || !count || cpu_ns > thread->cpu_ns + near)
			return false;
		if (count > WALL_WATCH_FRAMES_MAX)
			count = WALL_WATCH_FRAMES_MAX;
		memcpy(frames, thread->previous_frames, count * sizeof(*frames));
		atomic_thread_fence(memory_order_seq_cst);
		if (atomic_load(&thread->is_in_signal_handler) || thread->sample_count != samples)
			continue;
		*ret = (struct sampled_stack){frames, count, thread->previous_stack_end,
					      thread->previous_interpreter_state};
		if (count < thread->previous_frame_count)
			ret->end = SPOOL_STACK_DEPTH;
		return true;
	}
	return false;
}

/* No sample will come: the last one is as near. */
static void write_queued_time_at_last_sample(struct runtime *runtime, struct thread *thread,
					     struct wall_watch *watch)
{
	uint64_t queued_ns = atomic_exchange_explicit(&thread->queued_ns, 0, memory_order_relaxed);
	struct sampled_stack stack;

	watch->has_lent_queued_time = false;
	queued_ns += watch->time_account.queued_after_preemption_ns;
	watch->time_account.queued_after_preemption_ns = 0;
	if (!queued_ns)
		return;
	if (!copy_last_sample_stack(runtime, thread, watch->time_account.cpu_ns, &stack))
		stack = no_stack_reason_to_stack(SPOOL_NO_STACK_UNSAMPLED);
	write_owed_time_as_sample(runtime, watch, SPOOL_SOURCE_RUNNABLE, &stack, &queued_ns);
	watch->time_account.queued_after_preemption_ns = queued_ns;
}

static void write_queued_time_if_not_sampled(struct runtime *runtime, struct thread *thread,
					     struct wall_watch *watch)
{
	uint64_t most =
		QUEUED_TIME_LENT_PERIODS_MAX * runtime->sampler.period + NEXT_SAMPLE_CPU_SLACK_NS;

	if (thread->sample_count != watch->lent_at_sample_count)
		watch->has_lent_queued_time = false;
	else if (watch->time_account.cpu_ns - watch->lent_at_cpu_ns > most)
		write_queued_time_at_last_sample(runtime, thread, watch);
}

/* ---- looking ---- */

static void walk_stack_of_blocked_thread(struct runtime *runtime, const struct thread *thread,
					 struct wall_watch *watch,
					 const struct task_registers *task)
{
	static const struct unwind_stack_bounds none;
	struct thread *stream = runtime->wall_sampler.stream;
	struct unwind_start_registers registers = {.ip = task->pc, .sp = task->sp};
	struct sampler_record_stream records = {stream, ticks_now()};
	uint32_t most = runtime->threads.max_depth < WALL_WATCH_FRAMES_MAX
				? runtime->threads.max_depth
				: WALL_WATCH_FRAMES_MAX;
	struct stack_request request = {.cache = runtime->sampler.cache,
					.registers = &registers,
					.bounds = &none,
					.memory = {.frames = watch->frames,
						   .native_frames = stream->native_frames,
						   .stack_pointers = stream->stack_pointers,
						   .interpreted_items = stream->interpreted_items,
						   .maximum = most,
						   .native_maximum = most,
						   .scratch = &stream->scratch},
					.sink = {sampler_write_record, &records},
					.interpreter_thread = &watch->interpreter_thread,
					.tid = thread->tid,
					.pthread = thread->pthread,
					.first_argument = task->first_argument,
					.names_tasks = true};
	struct sampled_stack stack;

	/* The view stays while our own mark is set, as in a handler. */
	atomic_store(&stream->is_in_signal_handler, 1);
	request.view = modules_get_unwind_view(&runtime->modules);
	stack_walk(&request, &stack);
	if (stream->scratch.met_unknown_address)
		modules_note_unknown_address(&runtime->modules);
	atomic_store(&stream->is_in_signal_handler, 0);
	sampler_count_interpreted_losses(&runtime->spool, &request);
	if (stack.frames != watch->frames)
		memcpy(watch->frames, stack.frames, stack.count * sizeof(*stack.frames));
	watch->count = stack.count;
	watch->end = stack.end;
	watch->interpreter_state = stack.interpreter_state;
}

/* Brings the account up to date with a thread that was found in this state. */
static void read_counts_and_assign_open_time(struct thread *thread, struct wall_account *account,
					     enum wall_thread_state state)
{
	struct task_run_queue_counts queue;
	bool counted = task_read_run_queue_counts(thread->tid, &queue);
	uint64_t blocks;

	if (wall_account_assign_open_time_at_state(account, state, counted ? &queue : NULL))
		wall_account_divide_waits_by_cause(
			account,
			task_read_voluntary_switch_count(thread->tid, &blocks) ? &blocks : NULL);
}

/* What a thread is doing whose CPU time was `cpu_ns` a moment ago. One that is on a processor gets
 * on meanwhile. */
static bool determine_thread_state(struct thread *thread, uint64_t cpu_ns,
				   struct task_registers *registers, enum wall_thread_state *ret)
{
	enum task_run_state place = task_read_registers_if_blocked(thread->tid, registers);

	if (place == TASK_GONE)
		return false;
	/* Where no event counts, the clock of one that runs may be a tick late. */
	if (program_thread_get_cpu_ns(thread) != cpu_ns ||
	    (place == TASK_RUNNABLE && !program_thread_cpu_is_exact(thread)))
		*ret = WALL_STATE_RUNNING;
	else
		*ret = place == TASK_BLOCKED ? WALL_STATE_BLOCKED : WALL_STATE_QUEUED;
	return true;
}

/* Has nothing changed for a thread that did not run? What wakes up, but does not run yet, is still
 * where it waited. */
static bool write_wait_time_if_still_waiting(struct runtime *runtime, struct wall_watch *watch,
					     enum wall_thread_state state)
{
	if (watch->waiting && state == WALL_STATE_BLOCKED) {
		wall_account_count_open_time_as_blocked(&watch->time_account);
		write_wait_time_at_its_stack(runtime, watch);
	}
	return watch->waiting ||
	       (state == WALL_STATE_QUEUED && watch->time_account.state == WALL_STATE_QUEUED);
}

/* The thread was off its processor: why? */
static void examine_thread_off_cpu(struct runtime *runtime, struct thread *thread,
				   struct wall_watch *watch, bool ran)
{
	struct wall_account *account = &watch->time_account;
	uint64_t now = account->last_ns;
	struct task_registers registers = {0};
	enum wall_thread_state state;

	if (!determine_thread_state(thread, account->cpu_ns, &registers, &state))
		return;
	watch->wait_last_recorded_ns = now;
	if (!ran && write_wait_time_if_still_waiting(runtime, watch, state))
		return;
	read_counts_and_assign_open_time(thread, account, state);
	/* What passed since the last look belongs to the wait or to what followed. */
	if (watch->waiting)
		write_wait_time_at_its_stack(runtime, watch);
	watch->waiting = false;
	pass_queued_time_to_next_sample(thread, watch);
	if (state == WALL_STATE_BLOCKED) {
		walk_stack_of_blocked_thread(runtime, thread, watch, &registers);
		/* The stack stood still while it was read only if the clock did too. */
		watch->waiting = program_thread_get_cpu_ns(thread) == account->cpu_ns;
		watch->wait_began_ns = now;
	}
	if (!watch->waiting)
		write_stackless_time_over_limit(runtime, watch, now);
}

/* When the thread began, if it is watched from then on. */
static bool init_account_from_thread_start(const struct wall_sampler *sampler,
					   const struct thread *thread, struct wall_watch *watch,
					   uint64_t now)
{
	uint64_t ticks = ticks_now();

	if (thread->tid == sampler->starter_thread.tid &&
	    sampler->starter_thread.ticks >= sampler->window_opened_ticks) {
		wall_account_init(&watch->time_account, sampler->starter_thread.sampler_start_ns,
				  sampler->starter_thread.cpu_ns, false);
		watch->time_account.last_known_block_count = sampler->starter_thread.blocks;
		watch->time_account.is_block_count_known = true;
		return true;
	}
	if (thread->origin != THREAD_ORIGIN_CREATED ||
	    thread->start_ticks < sampler->window_opened_ticks || ticks < thread->start_ticks)
		return false;
	now -= (uint64_t)((double)(ticks - thread->start_ticks) * 1e9 /
			  (double)kymo_runtime.sampler.tick_hz);
	wall_account_init(&watch->time_account, now, 0, true);
	return true;
}

static void init_thread_watch(const struct wall_sampler *sampler, struct thread *thread,
			      struct wall_watch *watch, uint64_t now)
{
	struct wall_account *account = &watch->time_account;

	watch->internal_id = thread->internal_id;
	watch->tid = thread->tid;
	watch->waiting = watch->has_lent_queued_time = false;
	watch->count = 0;
	watch->interpreter_thread = 0;
	watch->wait_last_recorded_ns = now;
	watch->next_look_ns = 0;
	watch->stackless_time_since_ns = 0;
	if (init_account_from_thread_start(sampler, thread, watch, now))
		return;
	wall_account_init(account, now, program_thread_get_cpu_ns(thread), false);
	account->has_queue_counts = task_read_run_queue_counts(thread->tid, &account->queue);
	account->is_block_count_known =
		task_read_voluntary_switch_count(thread->tid, &account->last_known_block_count);
}

/* What a sampler saw before is nothing to the next one: a forked child would have its parent's wait
 * as its own. */
static uint64_t get_watched_thread_identity(const struct wall_sampler *sampler,
					    const struct thread *thread)
{
	return (uint64_t)sampler->starts << 32 | (thread->internal_id + 1);
}

/* The longer a wait has lasted, the less matters when its end is noticed. */
static void set_next_inspection_time(struct wall_watch *watch, uint64_t now)
{
	uint64_t rest = (now - watch->wait_began_ns) / WAIT_INSPECTION_DELAY_DIVISOR;

	watch->next_look_ns =
		now + (rest < WAIT_INSPECTION_DELAY_MAX_NS ? rest : WAIT_INSPECTION_DELAY_MAX_NS);
}

void wall_watch_inspect_thread(struct runtime *runtime, struct thread *thread,
			       struct wall_watch *watch, uint64_t sweep_ns)
{
	const struct wall_sampler *sampler = &runtime->wall_sampler;
	uint64_t identity = get_watched_thread_identity(sampler, thread), now, cpu, ran;
	struct wall_account *account = &watch->time_account;

	if (watch->thread_identity == identity && sweep_ns < watch->next_look_ns)
		return;
	if (watch->thread_identity != identity) {
		wall_watch_write_time_of_ended_thread(runtime, watch);
		init_thread_watch(sampler, thread, watch, read_posix_clock_ns(CLOCK_MONOTONIC));
		watch->thread_identity = identity;
	}
	now = read_posix_clock_ns(CLOCK_MONOTONIC);
	cpu = program_thread_get_cpu_ns(thread);
	if (!cpu)
		return; /* it has gone */
	ran = wall_account_add_elapsed_time(account, now, cpu);
	if (watch->waiting && !ran)
		set_next_inspection_time(watch, now);
	if (ran && watch->has_lent_queued_time)
		write_queued_time_if_not_sampled(runtime, thread, watch);
	if (ran ? account->state == WALL_STATE_RUNNING &&
			    account->unattributed_off_cpu_ns <
				    (int64_t)(runtime->options.wall.period /
					      NEGLIGIBLE_OFF_CPU_DIVISOR)
		: account->state != WALL_STATE_RUNNING &&
			    now - watch->wait_last_recorded_ns <
				    get_wait_record_interval_ns(runtime))
		return;
	examine_thread_off_cpu(runtime, thread, watch, ran != 0);
}

void wall_watch_write_unrecorded_time(struct runtime *runtime, struct thread *thread,
				      struct wall_watch *watch)
{
	struct wall_account *account = &watch->time_account;
	struct task_registers registers;
	enum wall_thread_state state;
	uint64_t cpu;
	bool ran;

	if (watch->thread_identity != get_watched_thread_identity(&runtime->wall_sampler, thread))
		return;
	cpu = thread->has_own_seccomp_filter ? 0 : program_thread_get_cpu_ns(thread);
	if (cpu) {
		ran = wall_account_add_elapsed_time(account, read_posix_clock_ns(CLOCK_MONOTONIC),
						    cpu) != 0;
		if (determine_thread_state(thread, cpu, &registers, &state) &&
		    (ran || !write_wait_time_if_still_waiting(runtime, watch, state)))
			read_counts_and_assign_open_time(thread, account, state);
		if (watch->waiting && ran)
			write_wait_time_at_its_stack(runtime, watch);
		watch->waiting = watch->waiting && !ran;
	}
	account->blocked_ns +=
		wall_account_assign_open_time_at_end(account, WALL_ACCOUNT_BLOCK_COUNT_UNKNOWN);
	if (watch->waiting)
		write_wait_time_at_its_stack(runtime, watch);
	else
		write_wait_without_stack(runtime, watch, SPOOL_NO_STACK_BRIEF);
	write_queued_time_at_last_sample(runtime, thread, watch);
}

void wall_watch_write_time_of_ended_thread(struct runtime *runtime, struct wall_watch *watch)
{
	struct wall_account *account = &watch->time_account;
	const struct sampled_stack stack = no_stack_reason_to_stack(SPOOL_NO_STACK_ENDED);
	uint64_t rest;

	if (!atomic_load_explicit(&watch->ended, memory_order_acquire))
		return;
	if (watch->thread_identity && watch->ended_thread_identity == watch->thread_identity) {
		if (watch->ended_cpu_ns)
			wall_account_add_elapsed_time(account, watch->ended_ns,
						      watch->ended_cpu_ns);
		rest = wall_account_assign_open_time_at_end(account, watch->ended_block_count);
		account->queued_after_preemption_ns += watch->ended_queued_ns;
		if (watch->waiting)
			write_wait_time_at_its_stack(runtime, watch);
		else
			write_wait_without_stack(runtime, watch, SPOOL_NO_STACK_BRIEF);
		write_owed_time_as_sample(runtime, watch, SPOOL_SOURCE_WALL, &stack, &rest);
		write_owed_time_as_sample(runtime, watch, SPOOL_SOURCE_RUNNABLE, &stack,
					  &account->queued_after_preemption_ns);
		watch->thread_identity = 0;
	}
	atomic_store_explicit(&watch->ended, 0, memory_order_release);
}

void wall_watch_record_thread_end(struct runtime *runtime, struct thread *thread,
				  struct wall_watch *watch)
{
	uint64_t now = read_posix_clock_ns(CLOCK_MONOTONIC), ticks = ticks_now();
	struct rusage usage;

	if (atomic_load_explicit(&watch->ended, memory_order_acquire))
		return;
	if (thread->end_ticks && ticks > thread->end_ticks)
		now -= (uint64_t)((double)(ticks - thread->end_ticks) * 1e9 /
				  (double)runtime->sampler.tick_hz);
	watch->ended_thread_identity = get_watched_thread_identity(&runtime->wall_sampler, thread);
	watch->ended_ns = now;
	watch->ended_cpu_ns = thread->end_ticks ? thread->end_cpu_ns : 0;
	watch->ended_queued_ns =
		atomic_exchange_explicit(&thread->queued_ns, 0, memory_order_relaxed);
	watch->ended_block_count = WALL_ACCOUNT_BLOCK_COUNT_UNKNOWN;
	if (thread->tid == (uint32_t)sys_gettid() &&
	    !sys_call2(SYS_getrusage, RUSAGE_THREAD, (long)&usage))
		watch->ended_block_count = (uint64_t)usage.ru_nvcsw;
	atomic_store_explicit(&watch->ended, 1, memory_order_release);
}
