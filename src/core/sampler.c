/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See sampler.h. Weights: each CPU sample carries the thread's CPU time since its last one, so sums
 * equal CPU time whatever signals were merged, dropped or late.
 */
#include "core/sampler.h"

#include <string.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>

#include "common/syscalls.h"
#include "core/counters.h"
#include "core/interrupted_call.h"
#include "core/runtime.h"
#include "core/sampler_encode.h"
#include "core/ticks.h"

/* si_code of signals from perf events with attr.sigtrap (asm-generic/siginfo.h; not in glibc 2.36).
 */
#ifndef TRAP_PERF
#define TRAP_PERF 6
#endif

/* What the handler and the walk may need; the lowest page of a thread's stack is libc's guard. */
#define STACK_ROOM  4096
#define STACK_GUARD 4096

/* siginfo of a TRAP_PERF signal: si_addr, then perf_data at the next 8 bytes
 * (linux/uapi/asm-generic/siginfo.h). */
static inline __attribute__((always_inline)) uint64_t perf_data(const siginfo_t *information)
{
	uint64_t data;

	__builtin_memcpy(&data, (const uint8_t *)&information->si_addr + sizeof(void *),
			 sizeof(data));
	return data;
}

/* Which of our sources sent this signal; SPOOL_SOURCE_COUNT: not ours. */
static inline __attribute__((always_inline)) enum spool_sample_source
source_of(const struct thread *thread, int signal, const siginfo_t *information)
{
	if (signal == SIGTRAP && information->si_code == TRAP_PERF)
		return perf_data(information) == SAMPLER_MARK_CPU        ? SPOOL_SOURCE_CPU
		       : perf_data(information) == SAMPLER_MARK_OVERFLOW ? SPOOL_SOURCE_OVERFLOW
									 : SPOOL_SOURCE_COUNT;
	if (information->si_code == SI_TIMER &&
	    (uint64_t)information->si_value.sival_ptr == SAMPLER_MARK_CPU)
		return SPOOL_SOURCE_CPU;
	/* F_SETSIG: si_fd is the number in the background thread's descriptor table, si_code
	 * POLL_*. */
	if (information->si_code > 0 && information->si_code <= 6 && thread && signal != SIGTRAP) {
		if (information->si_fd == thread->perf_fd)
			return SPOOL_SOURCE_CPU;
		if (information->si_fd == thread->overflow_fd)
			return SPOOL_SOURCE_OVERFLOW;
	}
	return SPOOL_SOURCE_COUNT;
}

static uint64_t thread_cpu_ns(void)
{
	return ticks_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* The metrics of this moment, or NULL when the last reading is recent. */
static const uint64_t *read_metrics(struct thread *thread, uint64_t now, uint64_t *metrics)
{
	struct rusage usage;

	if (!kymo_runtime.options.metrics ||
	    now - thread->metric_time < kymo_runtime.sampling.metric_ticks)
		return NULL;
	if (sys_call2(SYS_getrusage, RUSAGE_THREAD, (long)&usage))
		return NULL;
	thread->metric_time = now;
	memset(metrics, 0, SPOOL_METRIC_COUNT * sizeof(*metrics));
	metrics[SPOOL_METRIC_THREAD_CPU_NS] = thread->cpu_ns;
	metrics[SPOOL_METRIC_PEAK_RSS_BYTES] = (uint64_t)usage.ru_maxrss * 1024;
	metrics[SPOOL_METRIC_MINOR_FAULTS] = (uint64_t)usage.ru_minflt;
	metrics[SPOOL_METRIC_MAJOR_FAULTS] = (uint64_t)usage.ru_majflt;
	metrics[SPOOL_METRIC_VOLUNTARY_SWITCHES] = (uint64_t)usage.ru_nvcsw;
	metrics[SPOOL_METRIC_INVOLUNTARY_SWITCHES] = (uint64_t)usage.ru_nivcsw;
	counters_read(thread, metrics + SPOOL_METRIC_COUNTER0);
	return metrics;
}

static void walk(struct thread *thread, const ucontext_t *context, struct sampler_stack *ret)
{
	const uint64_t *gregs = (const uint64_t *)context->uc_mcontext.gregs;
	struct unwind_registers registers = {
		.ip = gregs[REG_RIP], .sp = gregs[REG_RSP], .bp = gregs[REG_RBP], .gregs = gregs};

	ret->frames = thread->current;
	ret->count = unwind_stack(modules_view(&kymo_runtime.modules), kymo_runtime.sampling.cache,
				  &registers, &thread->bounds, &thread->scratch, thread->current,
				  kymo_runtime.threads.max_depth, &ret->end);
	if (!thread->bounds.high)
		thread->stack_seen = registers.sp;
	if (ret->end == SPOOL_STACK_NO_TABLE || ret->end == SPOOL_STACK_BAD_PC)
		modules_want_refresh(&kymo_runtime.modules);
}

/* Lowers the rate when taking samples costs more of the thread's time than allowed. The background
 * thread sees the request, re-arms and records it. */
static void judge_cost(struct thread *thread, uint64_t now, uint64_t spent)
{
	struct sampling *sampling = &kymo_runtime.sampling;

	thread->throttle_handler += spent;
	if (now - thread->throttle_start < sampling->throttle_ticks)
		return;
	if (thread->throttle_start && kymo_runtime.options.overhead_limit > 0 &&
	    (double)thread->throttle_handler >
		    kymo_runtime.options.overhead_limit * (double)(now - thread->throttle_start))
		background_throttle(&kymo_runtime.background,
				    atomic_load_explicit(&sampling->period, memory_order_relaxed));
	thread->throttle_start = now;
	thread->throttle_handler = 0;
}

static inline void tell_sampled(struct thread *thread, const struct sampler_stack *stack,
				uint64_t cpu_ns, uint64_t ticks)
{
	void (*sampled)(struct thread *, const struct sampler_stack *, uint64_t, uint64_t) =
		atomic_load_explicit(&kymo_runtime.sampling.sampled, memory_order_acquire);

	if (__builtin_expect(sampled != NULL, 0))
		sampled(thread, stack, cpu_ns, ticks);
}

static inline void tell_settled(struct thread *thread)
{
	void (*settle)(struct thread *) =
		atomic_load_explicit(&kymo_runtime.sampling.settle, memory_order_acquire);

	if (__builtin_expect(settle != NULL, 0))
		settle(thread);
}

static bool is_icebp(uint64_t address)
{
	uint8_t byte = 0;
	struct iovec here = {&byte, 1}, there = {(void *)address, 1};

	sys_call6(SYS_process_vm_readv, (long)sys_getpid(), (long)&here, 1, (long)&there, 1, 0);
	return byte == 0xf1;
}

/* Is the thread behind an icebp? Or at one: KVM on processors of AMD has it trap before it is left
 * behind (seen on EPYC). Where nobody can be asked, it is. */
static bool is_by_icebp(const ucontext_t *context)
{
	uint64_t ip = (uint64_t)context->uc_mcontext.gregs[REG_RIP];

	return kymo_runtime.sealed || is_icebp(ip - 1) || is_icebp(ip);
}

/* A breakpoint of ours that the kernel does not know for one; it tells it as it tells debuggers',
 * which would kill a program that never had one (exc_debug_user() in the kernel's
 * arch/x86/kernel/traps.c). Either it was just taken away, and its processor had it still armed. Or
 * nothing is said of which it was, in debug register 6, and the kernel takes it for an icebp: seen
 * on KVM, where a virtual processor may lose that register between the trap and the look at it. (An
 * int3 has another code.) The instruction is stopped at again then, as nobody has set its resume
 * flag; of words that are watched others tell later (causal/points_named.c). */
static bool is_left_over(int signal, const siginfo_t *information, const ucontext_t *context)
{
	if (signal != SIGTRAP ||
	    !atomic_load_explicit(&kymo_runtime.sampling.visited, memory_order_acquire))
		return false;
	return information->si_code == TRAP_HWBKPT ||
	       (information->si_code == TRAP_BRKPT && !is_by_icebp(context));
}

/* False: no breakpoint of ours. */
static bool tell_visited(int signal, const siginfo_t *information, const void *context)
{
	void (*visited)(uint64_t, const void *) =
		atomic_load_explicit(&kymo_runtime.sampling.visited, memory_order_acquire);

	if (signal != SIGTRAP || information->si_code != TRAP_PERF)
		return false;
	if (__builtin_expect(visited != NULL, 0))
		visited(perf_data(information), context);
	return perf_data(information) - SAMPLER_MARK_POINT < SAMPLER_MARK_POINTS;
}

static void take_sample(struct thread *thread, enum spool_sample_source source,
			const ucontext_t *context)
{
	struct spool_file_header *header = kymo_runtime.spool.header;
	uint64_t start = ticks_now(), metrics[SPOOL_METRIC_COUNT], cpu = thread_cpu_ns(), weight,
		 spent, end;
	struct sampler_stack stack;

	weight = source == SPOOL_SOURCE_CPU ? cpu - thread->cpu_ns
					    : kymo_runtime.options.overflow.period;
	walk(thread, context, &stack);
	if (source == SPOOL_SOURCE_CPU) {
		thread->cpu_ns = cpu;
		tell_sampled(thread, &stack, weight, start);
	}
	if (sampler_write(thread, &stack, source, start, weight,
			  modules_stale(&kymo_runtime.modules),
			  read_metrics(thread, start, metrics))) {
		if (source == SPOOL_SOURCE_CPU)
			thread->covered_ns += weight;
		atomic_fetch_add_explicit((_Atomic uint64_t *)&header->stacks[stack.end], 1,
					  memory_order_relaxed);
	} else if (source == SPOOL_SOURCE_CPU) {
		thread->cpu_ns -= weight; /* the next sample stands for this time as well */
	}
	end = ticks_now();
	spent = end - start;
	/* A handler that the scheduler interrupted did not cost what the clock says. */
	if (spent > kymo_runtime.sampling.handler_ticks_believed)
		spent = kymo_runtime.sampling.handler_ticks_believed;
	thread->handler_ticks += spent;
	judge_cost(thread, end, spent);
}

static bool is_open(enum spool_sample_source source)
{
	const struct sampling *sampling = &kymo_runtime.sampling;

	if (!control_is_open(&kymo_runtime.control))
		return false;
	if (source == SPOOL_SOURCE_OVERFLOW)
		return atomic_load_explicit(&sampling->overflow_open, memory_order_relaxed);
	return atomic_load_explicit(&sampling->cpu_open, memory_order_relaxed) ||
	       atomic_load_explicit(&sampling->wall_open, memory_order_relaxed);
}

/* With room for all that it calls; not inlined, since it takes stack itself. */
__attribute__((noinline)) static void handle(int signal, siginfo_t *information, void *context)
{
	struct thread *thread = runtime_this_thread();
	enum spool_sample_source source = source_of(thread, signal, information);

	if (source == SPOOL_SOURCE_COUNT) {
		if (tell_visited(signal, information, context) ||
		    is_left_over(signal, information, context))
			return;
		/* The program has it blocked: it waits for the program to open it. A trap of the
		 * thread's own instruction cannot wait. */
		if (thread && thread->wants_blocked && information->si_code <= 0) {
			thread->foreign_pending = true;
			return;
		}
		program_signals_deliver(&kymo_runtime.signals, signal, information, context);
		return;
	}
	if (!thread || !runtime_active() ||
	    atomic_load_explicit(&thread->state, memory_order_relaxed) == THREAD_ENDED)
		return;
	tell_visited(signal, information, context);
	thread->signals++;
	if (atomic_exchange_explicit(&thread->in_handler, 1, memory_order_acquire)) {
		spool_count_loss(&kymo_runtime.spool, SPOOL_LOSS_REENTRY);
		return;
	}
	if (!atomic_load_explicit(&thread->excluded, memory_order_relaxed)) {
		if (is_open(source))
			take_sample(thread, source, context);
		else
			thread->cpu_ns = thread_cpu_ns();
	}
	/* release: what the walk read of the unwind view may be reclaimed from here on */
	atomic_store_explicit(&thread->in_handler, 0, memory_order_release);
	tell_settled(thread);
	interrupted_call_restart(&kymo_runtime.signals, context);
}

/* Is the stack nearly at its end? */
static inline __attribute__((always_inline)) bool is_short_of_stack(const struct thread *thread)
{
	uint64_t here;

	__asm__("movq %%rsp, %0" : "=r"(here));
	return here - kymo_runtime.sampling.main_stack_floor < STACK_ROOM ||
	       (thread && here - thread->bounds.low < STACK_ROOM + STACK_GUARD);
}

/* The program may live on the last bytes of its stack, and may handle its stack overflows; one in
 * our handler, which has SIGSEGV blocked, would kill it. (That signal cannot be left open: where a
 * fault and a sample come at once, the program's handler would be shown ours as what was
 * interrupted.) Nothing here takes stack. The next sample stands for this time as well. */
void sampler_handler(int signal, siginfo_t *information, void *context)
{
	if (__builtin_expect(is_short_of_stack(kymo_thread), 0) &&
	    source_of(kymo_thread, signal, information) != SPOOL_SOURCE_COUNT)
		return;
	handle(signal, information, context);
}
