/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See sampler.h. Weights: each CPU sample carries the thread's CPU time since its last one, so sums
 * equal CPU time whatever signals were merged, dropped or late.
 */
#include "core/sampler.h"

#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>

#include "common/syscalls.h"
#include "core/base/alignment_check.h"
#include "core/base/ticks.h"
#include "core/counters.h"
#include "core/process/interrupted_call.h"
#include "core/process/late_sample.h"
#include "core/process/state.h"
#include "core/process_metrics.h"
#include "core/runtime.h"
#include "core/sampler_encode.h"
#include "core/timers.h"

/* si_code of signals from perf events with attr.sigtrap (asm-generic/siginfo.h; not in glibc 2.36).
 */
#ifndef TRAP_PERF
#define TRAP_PERF 6
#endif

/* What the handler and the walk may need; the lowest page of a thread's stack is libc's guard. */
#define HANDLER_STACK_LEAST_BYTES 4096
#define THREAD_STACK_GUARD_BYTES  4096

#define INTERPRETED_CALLER_ITEMS 2 /* the innermost frame may come behind a boundary */

/* siginfo of a TRAP_PERF signal: si_addr, then perf_data at the next 8 bytes
 * (linux/uapi/asm-generic/siginfo.h). */
static inline __attribute__((always_inline)) uint64_t
get_siginfo_perf_data(const siginfo_t *information)
{
	uint64_t data;

	__builtin_memcpy(&data, (const uint8_t *)&information->si_addr + sizeof(void *),
			 sizeof(data));
	return data;
}

/* `open` is read first: the helper notes a descriptor as closed before it forgets it as open. */
static inline __attribute__((always_inline)) bool
is_open_or_closed_event_descriptor(int descriptor, const int *open, const int *closed)
{
	return descriptor == __atomic_load_n(open, __ATOMIC_ACQUIRE) ||
	       descriptor == __atomic_load_n(closed, __ATOMIC_ACQUIRE);
}

/* Which of our sources sent this signal; SPOOL_SOURCE_COUNT: not ours. */
static inline __attribute__((always_inline)) enum spool_sample_source
get_source_of_signal(const struct thread *thread, int signal, const siginfo_t *information)
{
	if (signal == SIGTRAP && information->si_code == TRAP_PERF)
		return get_siginfo_perf_data(information) == SAMPLER_SIGNAL_COOKIE_CPU
			       ? SPOOL_SOURCE_CPU
		       : get_siginfo_perf_data(information) == SAMPLER_SIGNAL_COOKIE_OVERFLOW
			       ? SPOOL_SOURCE_OVERFLOW
			       : SPOOL_SOURCE_COUNT;
	if (information->si_code == SI_TIMER &&
	    (uint64_t)information->si_value.sival_ptr == SAMPLER_SIGNAL_COOKIE_CPU)
		return SPOOL_SOURCE_CPU;
	/* F_SETSIG: si_fd is the number in the background thread's descriptor table, si_code
	 * POLL_*. */
	if (information->si_code > 0 && information->si_code <= 6 && thread && signal != SIGTRAP) {
		if (is_open_or_closed_event_descriptor(information->si_fd, &thread->perf_event_fd,
						       &thread->closed_perf_event_fd))
			return SPOOL_SOURCE_CPU;
		if (is_open_or_closed_event_descriptor(information->si_fd,
						       &thread->overflow_event_fd,
						       &thread->closed_overflow_event_fd))
			return SPOOL_SOURCE_OVERFLOW;
	}
	return SPOOL_SOURCE_COUNT;
}

/* What the helper sends to have a timer seen to; 0: another signal. */
static uint64_t get_timer_request_cookie(const siginfo_t *information)
{
	uint64_t value = (uint64_t)information->si_value.sival_ptr;

	return information->si_code == SI_QUEUE && (value == SAMPLER_SIGNAL_COOKIE_TIMER_REQUEST ||
						    value == SAMPLER_SIGNAL_COOKIE_DELETE_TIMERS)
		       ? value
		       : 0;
}

/* The thread was armed from outside, by a clock that may have been a tick late: no more can have
 * passed since than real time. */
static void correct_cpu_time_at_arming(struct thread *thread, uint64_t armed_ticks, uint64_t ticks,
				       uint64_t cpu)
{
	uint64_t since =
		(uint64_t)((double)(ticks - armed_ticks) * 1e9 / (double)thread->sampler->tick_hz);
	uint64_t before = cpu > since ? cpu - since : 0;

	if (thread->cpu_ns == thread->cpu_ns_at_arming && before > thread->cpu_ns)
		thread->cpu_ns = thread->cpu_ns_at_arming = before;
}

static uint64_t get_current_thread_cpu_ns(void)
{
	return read_posix_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* The metrics of this moment, or NULL when the last reading is recent. */
static const uint64_t *read_metrics_if_due(struct thread *thread, uint64_t now, uint64_t *metrics)
{
	struct rusage usage;

	if (!thread->sampler->options->metrics ||
	    now - thread->last_metrics_ticks < thread->sampler->metrics_interval_min_ticks)
		return NULL;
	if (sys_call2(SYS_getrusage, RUSAGE_THREAD, (long)&usage))
		return NULL;
	thread->last_metrics_ticks = now;
	memset(metrics, 0, SPOOL_METRIC_COUNT * sizeof(*metrics));
	metrics[SPOOL_METRIC_THREAD_CPU_NS] = thread->cpu_ns;
	metrics[SPOOL_METRIC_PEAK_RSS_BYTES] = (uint64_t)usage.ru_maxrss * 1024;
	metrics[SPOOL_METRIC_MINOR_FAULTS] = (uint64_t)usage.ru_minflt;
	metrics[SPOOL_METRIC_MAJOR_FAULTS] = (uint64_t)usage.ru_majflt;
	metrics[SPOOL_METRIC_VOLUNTARY_SWITCHES] = (uint64_t)usage.ru_nvcsw;
	metrics[SPOOL_METRIC_INVOLUNTARY_SWITCHES] = (uint64_t)usage.ru_nivcsw;
	counters_read_for_sample(thread, metrics + SPOOL_METRIC_COUNTER0);
	return metrics;
}

/* What was walked into becomes what samples are compared with; the other is free. */
static void swap_frames_if_native(struct thread *thread, const struct sampled_stack *stack)
{
	uint64_t *frames = thread->native_frames;

	if (stack->frames != frames)
		return;
	thread->native_frames = thread->current_frames;
	thread->current_frames = frames;
}

static void walk_thread_stack(struct thread *thread, const ucontext_t *context, uint64_t ticks,
			      struct sampled_stack *ret)
{
	const struct sampler *sampler = thread->sampler;
	const uint64_t *gregs = (const uint64_t *)context->uc_mcontext.gregs;
	struct unwind_start_registers registers = {
		.ip = gregs[REG_RIP], .sp = gregs[REG_RSP], .bp = gregs[REG_RBP], .gregs = gregs};
	struct sampler_record_stream records = {thread, ticks};
	struct stack_request request = {.view = modules_get_unwind_view(sampler->modules),
					.cache = sampler->cache,
					.registers = &registers,
					.bounds = &thread->stack_bounds,
					.memory = {.frames = thread->current_frames,
						   .native_frames = thread->native_frames,
						   .stack_pointers = thread->stack_pointers,
						   .interpreted_items = thread->interpreted_items,
						   .maximum = sampler->threads->max_depth,
						   .native_maximum = sampler->threads->max_depth,
						   .scratch = &thread->scratch},
					.sink = {sampler_write_record, &records},
					.interpreter_thread = &thread->interpreter_thread,
					.first_argument = gregs[REG_RDI],
					.names_tasks = true};

	stack_walk(&request, ret);
	swap_frames_if_native(thread, ret);
	sampler_count_interpreted_losses(sampler->spool, &request);
	thread->pthread = (uint64_t)pthread_self();
	if (!thread->stack_bounds.high)
		thread->seen_stack_pointer = registers.sp;
	if (thread->scratch.met_unknown_address)
		modules_note_unknown_address(sampler->modules);
}

/* First without what only the handler may use: nearly all code has been met before. */
uint64_t sampler_find_interpreted_caller(struct thread *thread)
{
	struct unwind_start_registers here = {
		.ip = (uint64_t)(uintptr_t)__builtin_return_address(0),
		.sp = (uint64_t)(uintptr_t)__builtin_frame_address(0)};
	uint64_t items[2 * INTERPRETED_CALLER_ITEMS], frame, ticks = ticks_now();
	struct sampler_record_stream records = {thread, ticks};
	struct stack_request request = {
		.registers = &here,
		.bounds = &thread->stack_bounds,
		.memory = {.interpreted_items = items, .maximum = INTERPRETED_CALLER_ITEMS},
		.sink = {sampler_write_record, &records},
		.interpreter_thread = &thread->interpreter_thread};

	if (!stack_may_be_interpreted())
		return 0;
	frame = stack_find_interpreted_caller(&request);
	if (!request.lost_code || !sampler_try_enter_handler_state(thread))
		return frame;
	request.memory.scratch = &thread->scratch;
	frame = stack_find_interpreted_caller(&request);
	atomic_store_explicit(&thread->is_in_signal_handler, 0, memory_order_release);
	return frame;
}

/* Lowers the rate when taking samples costs more of the thread's time than allowed. The background
 * thread sees the request, re-arms and records it. */
static void request_throttle_if_costly(struct thread *thread, uint64_t now, uint64_t spent)
{
	const struct sampler *sampler = thread->sampler;

	thread->throttle_span_handler_ticks += spent;
	if (now - thread->throttle_span_start_ticks < sampler->throttle_ticks)
		return;
	if (thread->throttle_span_start_ticks && sampler->options->overhead_limit_fraction > 0 &&
	    (double)thread->throttle_span_handler_ticks >
		    sampler->options->overhead_limit_fraction *
			    (double)(now - thread->throttle_span_start_ticks))
		background_request_sampling_throttle(
			sampler->background,
			atomic_load_explicit(&sampler->period, memory_order_relaxed));
	thread->throttle_span_start_ticks = now;
	thread->throttle_span_handler_ticks = 0;
}

static inline void call_stack_sampled_hook_if_set(struct thread *thread,
						  const struct sampled_stack *stack,
						  uint64_t cpu_ns, uint64_t ticks)
{
	void (*sampled)(struct thread *, const struct sampled_stack *, uint64_t, uint64_t) =
		atomic_load_explicit(&thread->sampler->sampled, memory_order_acquire);

	if (__builtin_expect(sampled != NULL, 0))
		sampled(thread, stack, cpu_ns, ticks);
}

static inline void call_after_sample_hook_if_set(struct thread *thread)
{
	void (*settle)(struct thread *) =
		atomic_load_explicit(&thread->sampler->settle, memory_order_acquire);

	if (__builtin_expect(settle != NULL, 0))
		settle(thread);
}

static bool is_icebp_at_address(uint64_t address)
{
	uint8_t byte = 0;
	struct iovec here = {&byte, 1}, there = {(void *)address, 1};

	sys_call6(SYS_process_vm_readv, (long)sys_getpid(), (long)&here, 1, (long)&there, 1, 0);
	return byte == 0xf1;
}

/* Is the thread behind an icebp? Or at one: KVM on processors of AMD has it trap before it is left
 * behind (seen on EPYC). Where nobody can be asked, it is. */
static bool thread_is_at_icebp(const ucontext_t *context)
{
	uint64_t ip = (uint64_t)context->uc_mcontext.gregs[REG_RIP];

	return process_has_seccomp_thread() || is_icebp_at_address(ip - 1) ||
	       is_icebp_at_address(ip);
}

/* A breakpoint of ours that the kernel does not know for one; it tells it as it tells debuggers',
 * which would kill a program that never had one (exc_debug_user() in the kernel's
 * arch/x86/kernel/traps.c). Either it was just taken away, and its processor had it still armed. Or
 * nothing is said of which it was, in debug register 6, and the kernel takes it for an icebp: seen
 * on KVM, where a virtual processor may lose that register between the trap and the look at it. (An
 * int3 has another code.) The instruction is stopped at again then, as nobody has set its resume
 * flag. */
static bool is_leftover_breakpoint_signal(const struct sampler *sampler, int signal,
					  const siginfo_t *information, const ucontext_t *context)
{
	if (signal != SIGTRAP || !atomic_load_explicit(&sampler->visited, memory_order_acquire))
		return false;
	return information->si_code == TRAP_HWBKPT ||
	       (information->si_code == TRAP_BRKPT && !thread_is_at_icebp(context));
}

/* False: no breakpoint of ours. */
static bool call_visited_hook_if_breakpoint(const struct sampler *sampler, int signal,
					    const siginfo_t *information, const void *context)
{
	void (*visited)(uint64_t, const void *) =
		atomic_load_explicit(&sampler->visited, memory_order_acquire);

	if (signal != SIGTRAP || information->si_code != TRAP_PERF)
		return false;
	if (__builtin_expect(visited != NULL, 0))
		visited(get_siginfo_perf_data(information), context);
	return get_siginfo_perf_data(information) - SAMPLER_SIGNAL_COOKIE_BREAKPOINT_FIRST <
	       SAMPLER_SIGNAL_BREAKPOINT_COOKIE_COUNT;
}

/* A record without a stack for the time that no sample stands for, and how much that is. Nothing
 * where it cannot be written: then the sample stands for it. */
static uint64_t write_and_get_uncovered_time(struct thread *thread, const ucontext_t *context,
					     uint64_t ticks, uint64_t passed)
{
	const struct program_signals *signals = thread->sampler->signals;
	uint64_t base = thread->sampler->period;
	struct late_sample_conditions source = {
		.period = thread->period > base ? thread->period : base,
		.tick = thread->timer >= 0 ? 2 * thread->sampler->kernel_timer_tick_ns : 0,
		.pid = kymo_process.pid,
		.handlers_block = (atomic_load_explicit(&signals->blocked_in_handlers_mask,
							memory_order_relaxed) &
				   signal_to_mask_bit(signals->signal)) != 0};
	uint64_t uncovered = late_sample_compute_uncovered_ns(&source, context, passed);
	struct sampled_stack none = {.frames = thread->previous_frames,
				     .end = SPOOL_STACK_COMPLETE};

	if (!uncovered || thread->carries_lost_sample_time || thread->is_in_mask_setting_call ||
	    !sampler_write_sample(thread, &none, SPOOL_SOURCE_CPU, ticks, uncovered, false, NULL))
		return 0;
	thread->sample_count--; /* it is none */
	return uncovered;
}

void sampler_write_queued_time(struct thread *thread)
{
	struct sampled_stack stack = {thread->previous_frames, thread->previous_frame_count,
				      thread->previous_stack_end,
				      thread->previous_interpreter_state};
	uint64_t queued_ns = atomic_exchange_explicit(&thread->queued_ns, 0, memory_order_relaxed);

	if (queued_ns &&
	    !(stack.count &&
	      sampler_write_sample(thread, &stack, SPOOL_SOURCE_RUNNABLE, ticks_now(), queued_ns,
				   modules_are_stale(&kymo_runtime.modules), NULL)))
		atomic_fetch_add_explicit(&thread->queued_ns, queued_ns, memory_order_relaxed);
}

static void take_and_write_sample(struct thread *thread, enum spool_sample_source source,
				  const ucontext_t *context)
{
	const struct sampler *sampler = thread->sampler;
	struct spool_file_header *header = sampler->spool->header;
	uint64_t start = ticks_now(), metrics[SPOOL_METRIC_COUNT],
		 cpu = get_current_thread_cpu_ns(), weight, spent, end;
	struct sampled_stack stack;
	uint64_t armed = atomic_exchange_explicit(&thread->armed_at_ticks, 0, memory_order_acquire);

	if (__builtin_expect(armed != 0, 0))
		correct_cpu_time_at_arming(thread, armed, start, cpu);
	process_usage_update_if_requested();
	weight = source == SPOOL_SOURCE_CPU ? cpu - thread->cpu_ns
					    : sampler->options->overflow.period;
	if (source == SPOOL_SOURCE_CPU)
		weight -= write_and_get_uncovered_time(thread, context, start, weight);
	walk_thread_stack(thread, context, start, &stack);
	if (source == SPOOL_SOURCE_CPU) {
		thread->cpu_ns = cpu;
		call_stack_sampled_hook_if_set(thread, &stack, weight, start);
	}
	if (sampler_write_sample(thread, &stack, source, start, weight,
				 modules_are_stale(sampler->modules),
				 read_metrics_if_due(thread, start, metrics))) {
		if (source == SPOOL_SOURCE_CPU) {
			thread->covered_ns += weight;
			thread->carries_lost_sample_time = false;
		}
		atomic_fetch_add_explicit((_Atomic uint64_t *)&header->stacks[stack.end], 1,
					  memory_order_relaxed);
		if (source == SPOOL_SOURCE_CPU &&
		    atomic_load_explicit(&thread->queued_ns, memory_order_relaxed))
			sampler_write_queued_time(thread);
	} else if (source == SPOOL_SOURCE_CPU) {
		thread->cpu_ns -= weight; /* the next sample stands for this time as well */
		thread->carries_lost_sample_time = true;
	}
	end = ticks_now();
	spent = end - start;
	/* A handler that the scheduler interrupted did not cost what the clock says. */
	if (spent > sampler->plausible_handler_ticks_max)
		spent = sampler->plausible_handler_ticks_max;
	thread->handler_ticks += spent;
	request_throttle_if_costly(thread, end, spent);
}

/* The timer starts here; the background thread then closes the event, so that no time is left
 * without a source. A sample of both takes what has passed since the last of either. */
static void judge_own_switch_rate_if_due(struct thread *thread)
{
	struct sampler *sampler = thread->sampler;
	struct switch_rate_reading look = {.cpu_ns = thread->cpu_ns};
	double tick_ns = 1e9 / (double)sampler->tick_hz;
	enum switch_rate_verdict verdict;
	struct rusage usage;

	if (!thread->switch_rate.has_reading && thread->origin == THREAD_ORIGIN_CREATED)
		switch_rate_init_at_thread_start(&thread->switch_rate,
						 (uint64_t)((double)thread->start_ticks * tick_ns));

	if (sampler->period > SWITCH_RATE_IN_HANDLER_PERIOD_MAX_NS ||
	    !switch_rate_reading_is_due(&thread->switch_rate, thread->cpu_ns) ||
	    thread->exec_pending || sys_call2(SYS_getrusage, RUSAGE_THREAD, (long)&usage))
		return;
	look.real_ns = (uint64_t)((double)ticks_now() * tick_ns);
	look.switch_count = (uint64_t)usage.ru_nvcsw + (uint64_t)usage.ru_nivcsw;
	verdict =
		switch_rate_judge_reading(&thread->switch_rate, &look,
					  switch_rate_choose_cost_by_period_ns(
						  sampler->period, sampler->kernel_timer_tick_ns));
	if (verdict == SWITCH_RATE_UNCHANGED)
		return;
	if (verdict == SWITCH_RATE_COSTLY && sampler->may_change_source_to_timer)
		timers_start_for_thread_if_stopped(thread);
	atomic_store(&thread->switch_rate_verdict, verdict);
	atomic_store(&sampler->has_switch_rate_verdicts, 1);
	background_wake(sampler->background);
}

static bool source_window_is_open(const struct sampler *sampler, enum spool_sample_source source)
{
	if (!control_is_collecting(sampler->control))
		return false;
	if (source == SPOOL_SOURCE_OVERFLOW)
		return atomic_load_explicit(&sampler->is_overflow_window_open,
					    memory_order_relaxed);
	return atomic_load_explicit(&sampler->is_cpu_window_open, memory_order_relaxed) ||
	       atomic_load_explicit(&sampler->is_wall_window_open, memory_order_relaxed);
}

/* With room for all that it calls; not inlined, since it takes stack itself. */
__attribute__((noinline)) static void handle_sample_signal(int signal, siginfo_t *information,
							   void *context)
{
	struct thread *thread = runtime_find_this_thread();
	/* Signals also come to threads that are unknown. */
	struct sampler *sampler = thread ? thread->sampler : &kymo_runtime.sampler;
	enum spool_sample_source source = get_source_of_signal(thread, signal, information);

	if (source == SPOOL_SOURCE_COUNT) {
		if (get_timer_request_cookie(information)) {
			timers_handle_request_signal(thread, get_timer_request_cookie(information));
			interrupted_call_restart_if_by_us(sampler->signals, context);
			return;
		}
		if (call_visited_hook_if_breakpoint(sampler, signal, information, context) ||
		    is_leftover_breakpoint_signal(sampler, signal, information, context))
			return;
		/* The program has it blocked: it waits for the program to open it. A trap of the
		 * thread's own instruction cannot wait. */
		if (thread && thread->wants_signal_blocked && information->si_code <= 0) {
			thread->is_program_signal_pending = true;
			return;
		}
		program_signals_run_program_action(sampler->signals, signal, information, context);
		return;
	}
	if (!thread || !runtime_is_active() ||
	    atomic_load_explicit(&thread->state, memory_order_relaxed) == THREAD_STATE_ENDED) {
		if (thread && information->si_code == SI_TIMER)
			timers_execute_request(thread);
		return;
	}
	call_visited_hook_if_breakpoint(sampler, signal, information, context);
	thread->signal_count++;
	if (atomic_exchange_explicit(&thread->is_in_signal_handler, 1, memory_order_acquire)) {
		/* The program has not moved since the sample that is being taken. */
		if (!thread->takes_first_sample)
			spool_count_loss(sampler->spool, SPOOL_LOSS_REENTRY);
		return;
	}
	if (!atomic_load_explicit(&thread->excluded_reasons, memory_order_relaxed)) {
		if (source_window_is_open(sampler, source))
			take_and_write_sample(thread, source, context);
		else
			thread->cpu_ns = get_current_thread_cpu_ns();
		judge_own_switch_rate_if_due(thread);
	}
	/* release: what the walk read of the unwind view may be reclaimed from here on */
	atomic_store_explicit(&thread->is_in_signal_handler, 0, memory_order_release);
	timers_execute_request(thread);
	call_after_sample_hook_if_set(thread);
	interrupted_call_restart_if_by_us(sampler->signals, context);
}

/* Is the stack nearly at its end? This may be the alternate one. */
static inline __attribute__((always_inline)) bool
thread_is_short_of_stack(const struct thread *thread, const ucontext_t *context)
{
	uint64_t here, alternate = (uint64_t)context->uc_stack.ss_sp;

	__asm__("movq %%rsp, %0" : "=r"(here));
	return (here - alternate < HANDLER_STACK_LEAST_BYTES &&
		here - alternate < context->uc_stack.ss_size) ||
	       here - kymo_runtime.sampler.main_stack_floor < HANDLER_STACK_LEAST_BYTES ||
	       (thread && here - thread->stack_bounds.low <
				  HANDLER_STACK_LEAST_BYTES + THREAD_STACK_GUARD_BYTES);
}

/* The program may live on the last bytes of its stack, and may handle its stack overflows; one in
 * our handler, which has SIGSEGV blocked, would kill it. (That signal cannot be left open: where a
 * fault and a sample come at once, the program's handler would be shown ours as what was
 * interrupted.) Nothing here takes stack. The next sample stands for this time as well. */
void sampler_handle_signal(int signal, siginfo_t *information, void *context)
{
	alignment_check_end_in_handler(context);
	if (__builtin_expect(thread_is_short_of_stack(kymo_thread, context), 0) &&
	    (get_source_of_signal(kymo_thread, signal, information) != SPOOL_SOURCE_COUNT ||
	     get_timer_request_cookie(information))) {
		if (kymo_thread)
			kymo_thread->carries_lost_sample_time = true;
		return;
	}
	handle_sample_signal(signal, information, context);
}
