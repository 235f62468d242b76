/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See dormant.h. A dormant process has one thread, of which `dormant.thread` is the block: its view
 * of the signals is kept as that of any thread is.
 */
#include "libkymo/dormant.h"

#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <ucontext.h>

#include "causal/causal.h"
#include "common/syscalls.h"
#include "core/base/alignment_check.h"
#include "core/base/fork_state.h"
#include "core/base/own_work.h"
#include "core/base/ticks.h"
#include "core/process/interrupted_call.h"
#include "core/process/main_stack.h"
#include "core/process/thread_cpu_timer.h"
#include "core/sampler.h"
#include "core/spool/short_process.h"
#include "instrument/rewritten.h"

/* The CPU time that a process has used when it wakes. The kernel looks at the
 * timer when it ticks, so it may be a tick more. The first sample, where the process woke, stands
 * for all of it. */
#define WAKE_AFTER_CPU_LEAST_NS 1000000
#define WAKE_AFTER_CPU_MOST_NS  4000000
/* Waking takes about as long as so many entries of the shared file. */
#define WAKE_AFTER_ENTRIES 24
#define WAKE_RETRY_CPU_NS  1000000
#define WAKE_TIMER_COOKIE  0x6b796d6f00000005ull /* as SAMPLER_SIGNAL_COOKIE_CPU */
#define WAKE_STACK_BYTES   65536                 /* waking has a stack of its own */

KYMO_FORK_STATE static struct {
	struct thread thread;       /* large: the rest lies behind it, with what follows */
	bool is_dormancy_allowed;   /* this process, and what it forks */
	bool is_forked_from_active; /* from a process that was not dormant: what was made there is
				       here */
	bool has_announced_exec;    /* that it executes another image */
	struct short_process process;
	int wake_timer_id;
	/* Wraps the program's calls; NULL: done, here or in a parent. */
	void (*install_wrappers)(struct runtime *runtime);
} dormant_process_state = {.wake_timer_id = -1};

KYMO_FORK_STATE bool kymo_dormant_has_pending_wrappers;

/* Set at the start, and the same in all children. */
static struct runtime *collector;
static char executable_path[PATH_MAX], shared_file_path[SHORT_PROCESS_PATH_BYTES],
	host_name[SHORT_PROCESS_HOST_BYTES];

/* ---- the timer ---- */

/* Since it began. */
KYMO_FORK_CODE static uint64_t get_thread_cpu_ns_since_start(void)
{
	return own_work_read_clock_ns() - dormant_process_state.process.start_cpu_ns;
}

KYMO_FORK_CODE static void arm_wake_timer(long ns)
{
	struct itimerspec time = {.it_value = {0, ns}};

	sys_call4(SYS_timer_settime, dormant_process_state.wake_timer_id, 0, (long)&time, 0);
}

/* Waking costs the more the slower the machine is, and pays where the process lives on for longer
 * than that. What one entry of the shared file took is what is known of it here. */
KYMO_FORK_CODE static long choose_wake_cpu_ns(void)
{
	uint64_t ns = WAKE_AFTER_ENTRIES * dormant_process_state.process.entry_write_ns;

	if (ns < WAKE_AFTER_CPU_LEAST_NS)
		return WAKE_AFTER_CPU_LEAST_NS;
	return ns < WAKE_AFTER_CPU_MOST_NS ? (long)ns : WAKE_AFTER_CPU_MOST_NS;
}

KYMO_FORK_CODE static bool create_wake_timer(int signal)
{
	dormant_process_state.wake_timer_id = thread_cpu_timer_create(signal, WAKE_TIMER_COOKIE);
	if (dormant_process_state.wake_timer_id < 0)
		return false;
	arm_wake_timer(choose_wake_cpu_ns());
	return true;
}

static void delete_wake_timer(void)
{
	if (dormant_process_state.wake_timer_id >= 0)
		sys_call1(SYS_timer_delete, dormant_process_state.wake_timer_id);
	dormant_process_state.wake_timer_id = -1;
}

static bool is_wake_timer_signal(const siginfo_t *information)
{
	return information->si_code == SI_TIMER &&
	       (uint64_t)(uintptr_t)information->si_value.sival_ptr == WAKE_TIMER_COOKIE;
}

/* ---- waking ---- */

/* The signal may be another one from here on. What the program believes of the old one is put in
 * place; of the new one, what was in place is what it believes. */
static void move_signal_view_to_new_signal(int old, uint64_t *mask)
{
	const struct program_signals *signals = &collector->signals;
	struct thread *thread = kymo_thread;
	uint64_t fresh = signal_to_mask_bit(signals->signal);
	bool pending = dormant_process_state.thread.is_program_signal_pending;

	if (old == signals->signal) {
		thread->is_program_signal_pending = pending;
		return;
	}
	if (dormant_process_state.thread.wants_signal_blocked)
		*mask |= signal_to_mask_bit(old);
	thread->wants_signal_blocked = *mask & fresh;
	*mask &= ~fresh;
	if (pending)
		sys_call3(SYS_tgkill, sys_getpid(), sys_gettid(), old);
}

/* `mask`: that of the thread; in a handler that of what it interrupted. */
static void begin_collection(bool interrupted, uint64_t *mask)
{
	struct runtime *runtime = collector;
	struct runtime_start_conditions beginning = {
		.stack_bounds = dormant_process_state.thread.stack_bounds,
		.wants_signal_blocked = dormant_process_state.thread.wants_signal_blocked,
		.forked = dormant_process_state.is_forked_from_active,
		.interrupted = true};
	uint32_t expected = RUNTIME_DORMANT;
	uint64_t trap = signal_to_mask_bit(SIGTRAP);
	int signal = runtime->signals.signal;
	uint64_t work_begun_ns;
	bool begun;

	if (kymo_process.pid != (uint32_t)sys_getpid() ||
	    !atomic_compare_exchange_strong(&kymo_process.state, &expected, RUNTIME_STARTING))
		return;
	work_begun_ns = own_work_read_clock_ns();
	delete_wake_timer();
	kymo_thread = NULL;
	/* Kernels before 5.18 end a program that is sent this one while it is blocked. */
	if (!(*mask & trap))
		call_rt_sigprocmask(SIG_UNBLOCK, &trap, NULL);
	if (interrupted)
		beginning.sampled_from_cpu_ns = dormant_process_state.process.start_cpu_ns;
	else
		beginning.unsampled_cpu_ns = get_thread_cpu_ns_since_start();
	program_signals_reinstall_our_handler(&runtime->signals, (void *)sampler_handle_signal);
	begun = runtime_begin_collection(runtime, &beginning);
	if (!begun) {
		static const struct short_process_notice notice = {
			.kind = SPOOL_NOTICE_DISABLED,
			.text = "a process ran unprofiled: kymo could not start in it"};
		short_process_write_notice(&dormant_process_state.process, SPOOL_STATE_OPEN,
					   &notice);
		return;
	}
	move_signal_view_to_new_signal(signal, mask);
	kymo_dormant_has_pending_wrappers = dormant_process_state.install_wrappers != NULL;
	short_process_write_end(&dormant_process_state.process, SPOOL_STATE_MOVED, 0);
	own_work_add_since(work_begun_ns);
	if (!interrupted)
		dormant_install_pending_wrappers_now();
}

void dormant_wake_now(void)
{
	uint64_t all = ~0ull, mask = 0;

	call_rt_sigprocmask(SIG_BLOCK, &all, &mask);
	begin_collection(false, &mask);
	call_rt_sigprocmask(SIG_SETMASK, &mask, NULL);
}

/* What the program was doing may have left little room on its stack. */
static void begin_collection_on_stack(uint8_t *stack, uint64_t *mask)
{
	register void (*call)(bool, uint64_t *) __asm__("rax") =
		(void (*)(bool, uint64_t *))(void *)begin_collection;
	register uint64_t interrupted __asm__("rdi") = 1;
	register uint64_t *argument __asm__("rsi") = mask;

	__asm__ volatile("movq %%rsp, %%rbx\n\t"
			 "movq %[top], %%rsp\n\t"
			 "call *%[call]\n\t"
			 "movq %%rbx, %%rsp"
			 : [call] "+r"(call), "+r"(interrupted), "+r"(argument)
			 : [top] "r"(stack + WAKE_STACK_BYTES)
			 : "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "memory", "cc", "xmm0",
			   "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
			   "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
}

static void wake_in_handler(ucontext_t *context)
{
	uint8_t *stack = sys_mmap(NULL, WAKE_STACK_BYTES, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint64_t mask;

	if (sys_mmap_failed(stack)) {
		arm_wake_timer(WAKE_RETRY_CPU_NS);
		return;
	}
	memcpy(&mask, &context->uc_sigmask, sizeof(mask));
	begin_collection_on_stack(stack, &mask);
	memcpy(&context->uc_sigmask, &mask, sizeof(mask));
	sys_munmap(stack, WAKE_STACK_BYTES);
}

static void take_first_sample(siginfo_t *information, void *context)
{
	struct thread *thread = kymo_thread;

	if (!runtime_is_active())
		return;
	if (thread)
		thread->takes_first_sample = true;
	information->si_value.sival_ptr = (void *)SAMPLER_SIGNAL_COOKIE_CPU;
	sampler_handle_signal(collector->signals.signal, information, context);
	if (thread)
		thread->takes_first_sample = false;
}

static void handle_wake_signal(int signal, siginfo_t *information, void *context)
{
	alignment_check_end_in_handler(context);
	if (!is_wake_timer_signal(information)) {
		sampler_handle_signal(signal, information, context);
		return;
	}
	if (!dormant_is_this_process())
		return;
	wake_in_handler(context);
	take_first_sample(information, context);
	interrupted_call_restart_if_by_us(&collector->signals, context);
}

void dormant_install_pending_wrappers_now(void)
{
	void (*install)(struct runtime * runtime) = dormant_process_state.install_wrappers;
	uint64_t work_begun_ns;

	if (!install || !runtime_is_active() || kymo_process.pid != (uint32_t)sys_getpid())
		return;
	work_begun_ns = own_work_read_clock_ns();
	kymo_dormant_has_pending_wrappers = false;
	dormant_process_state.install_wrappers = NULL;
	install(collector);
	own_work_add_since(work_begun_ns);
}

/* ---- falling asleep ---- */

static bool options_allow_dormancy(const struct options *options)
{
	return options->cpu.on && !options->wall.on && !options->overflow.on &&
	       !options->cpu.tids.count && !options->cpu.window.delay_ns &&
	       !options->cpu.window.duration_ns && !options->collection_period_count &&
	       !options->process_metrics_delay_ns && options->regions.start &&
	       !*options->regions.selected && !options->regions.control_signal &&
	       !options->wrappers.wrap_memory && !options->wrappers.is_any_wrapper_requested &&
	       !*options->wrappers.wrapped_functions_spec && !*options->instrument.socket &&
	       !options->python_calls.on && !*options->counters;
}

/* Libraries of which every call counts. */
static int match_library_of_which_all_calls_count(struct dl_phdr_info *object, size_t size,
						  void *context)
{
	static const char *const names[] = {"/libmpi",    "/libnccl",   "/librccl",     "/libomp.",
					    "/libiomp5.", "/libkokkos", "/libkymo-user"};
	bool *found = context;

	(void)size;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		*found = *found || strstr(object->dlpi_name, names[i]);
	return *found;
}

static bool can_be_dormant(const struct runtime *runtime)
{
	bool found = false;

	if (runtime->attached || runtime->opened || !options_allow_dormancy(&runtime->options) ||
	    !short_process_is_usable_spool_directory(runtime->options.spool_directory) ||
	    causal_is_requested_in_environment(runtime->environment) || rewritten_any_loaded() ||
	    sys_getpid() == 1)
		return false;
	dl_iterate_phdr(match_library_of_which_all_calls_count, &found);
	return !found;
}

static void find_main_stack_bounds(struct runtime *runtime)
{
	struct main_stack stack = main_stack_find_without_proc();

	if (stack.floor)
		runtime->sampler.main_stack_floor = stack.floor;
	dormant_process_state.thread.stack_bounds =
		(struct unwind_stack_bounds){.low = stack.low, .high = stack.high};
}

static void set_process_arguments_to_announce(char *const *arguments)
{
	size_t count = 0;

	dormant_process_state.process.arguments = "";
	dormant_process_state.process.arguments_bytes = 0;
	while (arguments[count])
		count++;
	if (!count)
		return;
	dormant_process_state.process.arguments = arguments[0];
	dormant_process_state.process.arguments_bytes =
		(size_t)(arguments[count - 1] + strlen(arguments[count - 1]) - arguments[0]);
	if (dormant_process_state.process.arguments_bytes > 32768)
		dormant_process_state.process.arguments_bytes = 32768;
}

static void set_program_to_announce(const struct runtime *runtime, char *const *arguments)
{
	long length = sys_call3(SYS_readlink, (long)"/proc/self/exe", (long)executable_path,
				sizeof(executable_path) - 1);

	executable_path[length > 0 ? length : 0] = 0;
	short_process_set_path(shared_file_path, runtime->options.spool_directory);
	dormant_process_state.process.path = shared_file_path;
	dormant_process_state.process.executable = executable_path;
	short_process_read_host_name(host_name);
	dormant_process_state.process.host = host_name;
	set_process_arguments_to_announce(arguments);
}

KYMO_FORK_CODE static void set_dormant_thread_as_main_thread(struct runtime *runtime)
{
	struct thread *thread = &dormant_process_state.thread;

	thread->sampler = &runtime->sampler;
	thread->tid = (uint32_t)sys_gettid();
	thread->origin = THREAD_ORIGIN_MAIN;
	thread->perf_event_fd = thread->overflow_event_fd = thread->timer = -1;
	kymo_thread = thread;
}

KYMO_FORK_CODE static bool take_over_wake_signal(struct runtime *runtime)
{
	struct program_signals *signals = &runtime->signals;
	uint64_t bit, previous = 0;

	if (signals->signal)
		program_signals_reinstall_our_handler(signals, (void *)handle_wake_signal);
	else if (program_signals_take_over_signal(
			 signals, runtime->options.signal ? runtime->options.signal : SIGURG,
			 (void *)handle_wake_signal))
		return false;
	bit = signal_to_mask_bit(signals->signal);
	call_rt_sigprocmask(SIG_UNBLOCK, &bit, &previous);
	if (previous & bit)
		dormant_process_state.thread.wants_signal_blocked = true;
	return true;
}

/* False: collection has to begin. */
KYMO_FORK_CODE static bool begin_dormancy(struct runtime *runtime)
{
	if (!runtime_prepare_dormant(runtime) ||
	    !short_process_write_start(&dormant_process_state.process))
		return false;
	set_dormant_thread_as_main_thread(runtime);
	dormant_process_state.has_announced_exec = false;
	dormant_process_state.process.start_cpu_ns = own_work_read_clock_ns();
	if (take_over_wake_signal(runtime) && create_wake_timer(runtime->signals.signal)) {
		atomic_store(&kymo_process.state, RUNTIME_DORMANT);
		return true;
	}
	kymo_thread = NULL;
	short_process_write_end(&dormant_process_state.process, SPOOL_STATE_MOVED, 0);
	return false;
}

bool dormant_begin_dormancy_if_allowed(struct runtime *runtime, char *const *arguments,
				       void (*install)(struct runtime *runtime))
{
	collector = runtime;
	dormant_process_state.is_dormancy_allowed = can_be_dormant(runtime);
	if (!dormant_process_state.is_dormancy_allowed)
		return false;
	set_program_to_announce(runtime, arguments);
	find_main_stack_bounds(runtime);
	dormant_process_state.install_wrappers = install;
	if (!short_process_create_file(shared_file_path) && begin_dormancy(runtime))
		return true;
	dormant_process_state.install_wrappers = NULL;
	return false;
}

void dormant_forbid_for_children(void)
{
	dormant_process_state.is_dormancy_allowed = false;
}

KYMO_FORK_CODE bool dormant_begin_in_forked_child(void)
{
	struct runtime *runtime = collector;
	uint32_t state = atomic_load(&kymo_process.state);
	bool begun = state == RUNTIME_ACTIVE || state == RUNTIME_STARTING;
	struct runtime_start_conditions beginning = {.unsampled_cpu_ns = 0};

	if (!runtime ||
	    (state != RUNTIME_DORMANT && (!begun || !dormant_process_state.is_dormancy_allowed)))
		return false;
	if (!runtime->options.follow_children ||
	    (kymo_thread && kymo_thread->has_own_seccomp_filter))
		return false;
	if (begun) {
		const struct thread *thread = kymo_thread;
		dormant_process_state.thread.stack_bounds =
			thread ? thread->stack_bounds : (struct unwind_stack_bounds){0, 0};
		dormant_process_state.thread.wants_signal_blocked =
			thread && thread->wants_signal_blocked;
		dormant_process_state.thread.is_program_signal_pending = false;
		control_add_closed_reason(&runtime->control, CONTROL_CLOSED_NOT_STARTED);
		dormant_process_state.is_forked_from_active = true;
	}
	process_state_reset_fork_detector();
	kymo_process.pid = (uint32_t)sys_getpid();
	dormant_process_state.wake_timer_id = -1;
	kymo_dormant_has_pending_wrappers = false;
	if (begin_dormancy(runtime))
		return true;
	beginning.forked = dormant_process_state.is_forked_from_active;
	beginning.stack_bounds = dormant_process_state.thread.stack_bounds;
	beginning.wants_signal_blocked = dormant_process_state.thread.wants_signal_blocked;
	kymo_thread = NULL;
	program_signals_reinstall_our_handler(&runtime->signals, (void *)sampler_handle_signal);
	runtime_begin_collection(runtime, &beginning);
	return true;
}

/* ---- the end ---- */

KYMO_FORK_CODE static bool is_dormant_process_itself(void)
{
	return dormant_is_this_process() && kymo_process.pid == (uint32_t)sys_getpid();
}

KYMO_FORK_CODE void dormant_write_process_end(void)
{
	uint32_t expected = RUNTIME_DORMANT;

	/* The timer may wake it at any moment before. */
	if (!is_dormant_process_itself() ||
	    !atomic_compare_exchange_strong(&kymo_process.state, &expected, RUNTIME_INACTIVE))
		return;
	dormant_process_state.process.own_work_begun_cpu_ns = own_work_read_clock_ns();
	short_process_write_end(&dormant_process_state.process, SPOOL_STATE_EXITED,
				get_thread_cpu_ns_since_start());
}

static void drain_pending_wake_signal(uint64_t bit)
{
	struct timespec now = {0, 0};

	while (sys_call4(SYS_rt_sigtimedwait, (long)&bit, 0, (long)&now, sizeof(bit)) > 0)
		;
}

void dormant_write_process_notice(enum spool_notice kind, uint64_t argument, const char *text,
				  const char *more)
{
	struct short_process_notice notice = {kind, argument, text, more};

	short_process_write_notice(&dormant_process_state.process, SPOOL_STATE_OPEN, &notice);
}

void dormant_write_not_followed_notice(int pid, const char *path, const char *obstacle)
{
	dormant_write_process_notice(SPOOL_NOTICE_NOT_FOLLOWED, (uint64_t)pid, path, obstacle);
}

/* Between this process's being seen dormant and its timer's end the timer may wake it: then it has
 * events whose signals would end the new image. */
static bool stop_wake_timer_unless_awake(uint64_t bit)
{
	uint64_t before = 0;

	call_rt_sigprocmask(SIG_BLOCK, &bit, &before);
	if (!is_dormant_process_itself()) {
		call_rt_sigprocmask(SIG_SETMASK, &before, NULL);
		return false;
	}
	delete_wake_timer();
	return true;
}

bool dormant_prepare_exec(const char *path, const char *obstacle, uint64_t work_begun_ns)
{
	struct runtime *runtime = collector;
	struct short_process_notice executed = {SPOOL_NOTICE_EXEC, 0, path, NULL};
	uint64_t bit = signal_to_mask_bit(runtime->signals.signal);

	if (kymo_process.pid == (uint32_t)sys_getpid() && !stop_wake_timer_unless_awake(bit))
		return false;
	if (obstacle)
		dormant_write_not_followed_notice(sys_getpid(), path, obstacle);
	if (!is_dormant_process_itself())
		return true;
	dormant_process_state.process.own_work_begun_cpu_ns = work_begun_ns;
	drain_pending_wake_signal(bit);
	if (path)
		short_process_write_notice(&dormant_process_state.process, SPOOL_STATE_OPEN,
					   &executed);
	short_process_write_end(&dormant_process_state.process, SPOOL_STATE_EXEC,
				get_thread_cpu_ns_since_start());
	dormant_process_state.has_announced_exec = true;
	program_signals_apply_ignore_at_exec(&runtime->signals);
	if (!dormant_process_state.thread.wants_signal_blocked)
		call_rt_sigprocmask(SIG_UNBLOCK, &bit, NULL);
	return true;
}

void dormant_resume_after_failed_exec(void)
{
	struct runtime *runtime = collector;
	uint64_t bit = signal_to_mask_bit(runtime->signals.signal);

	if (!dormant_process_state.has_announced_exec || !is_dormant_process_itself())
		return;
	dormant_process_state.has_announced_exec = false;
	dormant_process_state.process.own_work_begun_cpu_ns = 0; /* it has been added up */
	short_process_write_end(&dormant_process_state.process, SPOOL_STATE_OPEN,
				get_thread_cpu_ns_since_start());
	program_signals_reinstall_our_handler(&runtime->signals, (void *)handle_wake_signal);
	create_wake_timer(runtime->signals.signal);
	call_rt_sigprocmask(SIG_UNBLOCK, &bit, NULL);
}
