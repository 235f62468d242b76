/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See helper.h. The program clones a task that clones the helper and ends, so that the helper is
 * nobody's child but init's, or kymo's where init does not reap (launch/reaper.c). A process that
 * would adopt it, because it adopts all orphans below it, has it as a child without an exit signal
 * instead, which wait(2) finds by __WALL and __WCLONE only.
 */
#include "core/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "common/syscalls.h"
#include "common/time_units.h"
#include "core/base/own_work.h"
#include "core/base/text.h"
#include "core/base/ticks.h"
#include "core/process/own_task.h"
#include "core/process/program_signals.h"
#include "core/process/task_state.h"

#define HELPER_STACK_SIZE            (16u << 10)
#define PROGRAM_END_POLL_PERIOD_NS   20000000
#define WAIT_POLL_PERIOD_NS          50000
#define OTHER_THREADS_END_TIMEOUT_NS 100000000ull
#define SUBREAPER_FILE_NAME          "/subreaper" /* beside the spool files */
#define PATH_SIZE                    4200
#define PR_YAMA_TRACER               0x59616d61 /* PR_SET_PTRACER (linux/prctl.h) */

/* AddressSanitizer unpoisons the stack before a call that does not return, and asks libc where the
 * stack of a thread is that it has not seen made. libc knows nothing of the helper's tasks. */
#define NO_ADDRESS_SANITIZER __attribute__((no_sanitize("address")))

/* Between the program and the helper. */
#define MIDDLE_TASK_CLONE_FLAGS                                                                    \
	(CLONE_VM | CLONE_SIGHAND | CLONE_VFORK | CLONE_UNTRACED | CLONE_SETTLS)
#define CHILD_HELPER_CLONE_FLAGS                                                                   \
	(CLONE_VM | CLONE_SIGHAND | CLONE_UNTRACED | CLONE_SETTLS | CLONE_PARENT_SETTID |          \
	 CLONE_CHILD_CLEARTID)
#define ORPHAN_HELPER_CLONE_FLAGS (CHILD_HELPER_CLONE_FLAGS | CLONE_FILES | CLONE_FS)

static struct {
	uint8_t *memory;      /* stack of the task between, stack of the first task, their TLS */
	_Atomic uint32_t pid; /* cleared by the kernel when its memory is let go of */
	uint32_t program_pid; /* the program's process */
	bool child;           /* of the program: it has to be reaped */
	uint32_t number;      /* as `pid`, but kept */
	int program_proc_fd, program_pidfd, wake_event_fd; /* in the helper's descriptor table */
	/* Where the kernel writes 0 when the program's first thread ends or executes another image
	 * (set_tid_address(2)); NULL: not known. */
	const volatile uint32_t *program_first_thread_tid_word;
	struct own_thread waiting_task; /* the first one; it only waits */
	struct own_thread *first;
	const char *name;
	void (*run)(void *argument);
	void *argument;
	void (*at_end)(void *argument);
	long result;
} helper = {.program_proc_fd = -1, .program_pidfd = -1, .wake_event_fd = -1};

bool helper_is_current_process(void)
{
	uint32_t pid = atomic_load_explicit(&helper.pid, memory_order_relaxed);

	return pid && pid == (uint32_t)sys_getpid();
}

bool helper_is_gone(void)
{
	return !atomic_load(&helper.pid);
}

bool helper_is_program_child(void)
{
	return helper.child && !helper_is_gone();
}

uint32_t helper_get_program_pid(void)
{
	return helper.program_pid;
}

int helper_get_program_proc_fd(void)
{
	return helper.program_proc_fd;
}

static void sleep_ns(long ns)
{
	struct timespec pause = {0, ns};

	sys_call4(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, (long)&pause, 0);
}

/* ---- the program, as the helper sees it ---- */

/* Field 3 and on of a "stat" file; NULL: it cannot be read. The name in field 2 may hold anything.
 */
static const char *read_proc_stat_fields(int directory, const char *path, char *buffer, size_t size)
{
	long fd = sys_call4(SYS_openat, directory, (long)path, O_RDONLY | O_CLOEXEC, 0), length;
	const char *last = NULL;

	if (fd < 0)
		return NULL;
	length = sys_read((int)fd, buffer, size - 1);
	sys_close((int)fd);
	buffer[length > 0 ? length : 0] = 0;
	for (const char *at = buffer; *at; at++) {
		if (*at == ')')
			last = at;
	}
	return last && last[1] == ' ' ? last + 2 : NULL;
}

/* The number of the calling process's parent in this /proc, which may belong to another pid
 * namespace. */
static uint64_t read_parent_pid_in_proc(void)
{
	char buffer[512];
	const char *at = read_proc_stat_fields((int)SYS_WORKING_DIRECTORY_FD, "/proc/self/stat",
					       buffer, sizeof(buffer));
	uint64_t parent = 0;

	for (at = at && *at ? at + 2 : ""; *at >= '0' && *at <= '9'; at++)
		parent = parent * 10 + (unsigned)(*at - '0');
	return parent;
}

/* By a child of the program: its parent cannot have become anybody else's number. Nothing of the
 * program's descriptors is kept, so no pipe of its stays open. */
NO_ADDRESS_SANITIZER static void close_inherited_and_open_helper_fds(void)
{
	char path[64];
	struct text_buffer text = text_buffer_init(path, sizeof(path));
	long number = (long)helper.program_pid, fd;
	uint64_t parent;

	own_task_close_descriptors_from(0);
	parent = read_parent_pid_in_proc();
	text_append_string(&text, "/proc/");
	text_append_unsigned(&text, parent);
	fd = parent ? sys_open(path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0) : -ENOENT;
	helper.program_proc_fd = (int)fd;
	task_state_set_program_proc_fd(helper.program_proc_fd);
	helper.program_pidfd = (int)sys_call2(SYS_pidfd_open, number, 0); /* Linux 5.3 */
	helper.wake_event_fd = (int)sys_call2(SYS_eventfd2, 0, O_CLOEXEC | O_NONBLOCK);
	if (sys_call0(SYS_getppid) != number)
		helper_exit_now();
}

/* 0: the two processes have the same memory; 1: not; negative: nobody may know (kcmp(2)). */
static int compare_address_spaces(uint32_t one, uint32_t other)
{
	long order = sys_call6(SYS_kcmp, one, other, KCMP_VM, 0, 0, 0);

	return order < 0 ? (int)order : order != 0;
}

static bool program_main_thread_has_ended(void)
{
	char buffer[512];
	const char *state = helper.program_proc_fd >= 0
				    ? read_proc_stat_fields(helper.program_proc_fd, "stat", buffer,
							    sizeof(buffer))
				    : NULL;

	return state && *state == 'Z';
}

bool helper_program_is_gone(void)
{
	int other;

	if (helper.program_first_thread_tid_word && *helper.program_first_thread_tid_word)
		return false;
	other = compare_address_spaces(helper.program_pid, (uint32_t)sys_getpid());
	if (!other || (other < 0 && !helper.program_first_thread_tid_word))
		return false;
	/* A first thread that has ended has no memory, while others of the program go on. */
	return !program_main_thread_has_ended();
}

/* ---- its tasks ---- */

void helper_exit_now(void)
{
	for (;;)
		sys_call1(SYS_exit_group, 0);
}

NO_ADDRESS_SANITIZER void helper_exit_after_threads(void)
{
	uint64_t end = read_posix_clock_ns(CLOCK_MONOTONIC) + OTHER_THREADS_END_TIMEOUT_NS;

	while (own_threads_count_running() > 1 && read_posix_clock_ns(CLOCK_MONOTONIC) < end)
		sleep_ns(WAIT_POLL_PERIOD_NS);
	helper_exit_now();
}

/* Waits for the end of the program. Not a signal at the end of the parent (PR_SET_PDEATHSIG): that
 * is of one thread. */
NO_ADDRESS_SANITIZER __attribute__((noreturn)) static void wait_for_program_end_and_exit(void)
{
	struct pollfd polled[] = {{.fd = helper.program_pidfd, .events = POLLIN},
				  {.fd = helper.wake_event_fd, .events = POLLIN}};
	uint64_t count;

	for (;;) {
		/* Without descriptors for processes it looks now and then. */
		struct timespec period = {0, PROGRAM_END_POLL_PERIOD_NS};

		sys_call6(SYS_ppoll, (long)polled, 2, helper.program_pidfd < 0 ? (long)&period : 0,
			  0, 0, 0);
		if (polled[0].revents || (helper.program_pidfd < 0 &&
					  sys_call2(SYS_kill, helper.program_pid, 0) == -ESRCH)) {
			if (helper.at_end)
				helper.at_end(helper.argument);
			helper_exit_now();
		}
		if (polled[1].revents)
			sys_read(helper.wake_event_fd, &count, sizeof(count));
		own_thread_apply_credentials_if_new(&helper.waiting_task);
	}
}

NO_ADDRESS_SANITIZER static void run_helper_first_task(void *argument)
{
	struct rlimit none = {0, 0};

	(void)argument;
	if (helper.child)
		close_inherited_and_open_helper_fds();
	/* Signals of the terminal and of process groups are the program's alone, and a core file
	 * too. */
	sys_call0(SYS_setsid);
	sys_call4(SYS_prlimit64, 0, RLIMIT_CORE, (long)&none, 0);
	sys_call2(SYS_prctl, PR_SET_NAME, (long)"kymo");
	if (own_thread_start(helper.first, helper.name, helper.run, helper.argument))
		helper_exit_now();
	wait_for_program_end_and_exit();
}

static void *init_helper_task_tls(void)
{
	return own_task_init_tls(helper.memory + 2 * HELPER_STACK_SIZE);
}

static void run_middle_task(void *argument)
{
	(void)argument;
	close_inherited_and_open_helper_fds();
	helper.result =
		own_task_clone(ORPHAN_HELPER_CLONE_FLAGS, helper.memory + 2 * HELPER_STACK_SIZE,
			       &helper.pid, init_helper_task_tls(), run_helper_first_task, NULL);
	for (;;)
		sys_call1(SYS_exit, 0);
}

/* Returns the CPU time that it used. */
static uint64_t reap_child(uint32_t pid)
{
	struct rusage usage = {0};

	while (sys_call4(SYS_wait4, pid, 0, __WALL, (long)&usage) == -EINTR)
		;
	return timeval_to_ns(&usage.ru_utime) + timeval_to_ns(&usage.ru_stime);
}

static long start_orphan_helper(void)
{
	long middle;

	helper.result = -ECHILD;
	middle = own_task_clone(MIDDLE_TASK_CLONE_FLAGS, helper.memory + HELPER_STACK_SIZE, NULL,
				init_helper_task_tls(), run_middle_task, NULL);
	if (middle < 0)
		return middle;
	own_work_add_ns(reap_child((uint32_t)middle));
	return helper.result;
}

static long start_child_helper(void)
{
	long child =
		own_task_clone(CHILD_HELPER_CLONE_FLAGS, helper.memory + 2 * HELPER_STACK_SIZE,
			       &helper.pid, init_helper_task_tls(), run_helper_first_task, NULL);

	return child;
}

/* ---- orphans ---- */

static const char *format_subreaper_file_path(const char *directory, char *space)
{
	struct text_buffer text = text_buffer_init(space, PATH_SIZE);

	text_append_string(&text, directory);
	text_append_string(&text, SUBREAPER_FILE_NAME);
	return space;
}

/* mknod(2), not open(2): no descriptor of the program's table is taken, however briefly. Not
 * inlined: each fork of a program that is none would write a page more of its stack. */
__attribute__((noinline)) static void create_subreaper_file(const char *directory)
{
	char space[PATH_SIZE];

	sys_call4(SYS_mknodat, SYS_WORKING_DIRECTORY_FD,
		  (long)format_subreaper_file_path(directory, space), S_IFREG | 0600, 0);
}

void helper_record_if_program_is_subreaper(const char *directory)
{
	if (directory && *directory && own_task_process_is_subreaper())
		create_subreaper_file(directory);
}

/* Would an orphan of this process become a child of it, or of another one of the session? */
static bool orphan_would_be_adopted(const char *directory)
{
	char space[PATH_SIZE];

	if (helper.program_pid == 1 || own_task_process_is_subreaper())
		return true;
	return directory && *directory &&
	       !sys_call3(SYS_faccessat, SYS_WORKING_DIRECTORY_FD,
			  (long)format_subreaper_file_path(directory, space), 0);
}

/* ---- start and end ---- */

static bool map_helper_stacks_and_tls_once(void)
{
	uint8_t *memory = helper.memory;

	if (memory)
		return true;
	memory = sys_mmap(NULL, 2 * HELPER_STACK_SIZE + OWN_TASK_TLS_SIZE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (sys_mmap_failed(memory))
		return false;
	/* Of use to this process's helper alone; forks copy none of it. */
	sys_madvise(memory, 2 * HELPER_STACK_SIZE + OWN_TASK_TLS_SIZE, MADV_WIPEONFORK);
	helper.memory = memory;
	return true;
}

/* The calling thread's own is the word of the first thread where it is that: in the constructor,
 * and in a child that was forked. */
static const volatile uint32_t *find_main_thread_tid_address(void)
{
	uint32_t *word = NULL;

	if (sys_gettid() != sys_getpid() || sys_call2(SYS_prctl, PR_GET_TID_ADDRESS, (long)&word) ||
	    !word || *word != (uint32_t)sys_gettid())
		return NULL;
	return word;
}

void helper_set_program_end_callback(void (*at_end)(void *argument))
{
	helper.at_end = at_end;
}

int helper_start(struct own_thread *thread, const char *name, void (*run)(void *argument),
		 void *argument, const char *directory)
{
	uint64_t all = ~0ull, mask = 0;
	long result;

	if (own_task_would_be_namespace_init())
		return -EINVAL;
	if (!map_helper_stacks_and_tls_once())
		return -ENOMEM;
	helper.first = thread;
	helper.name = name;
	helper.run = run;
	helper.argument = argument;
	helper.program_pid = (uint32_t)sys_getpid();
	helper.program_first_thread_tid_word = find_main_thread_tid_address();
	helper.program_proc_fd = helper.program_pidfd = helper.wake_event_fd = -1;
	helper.number = 0;
	own_thread_mark_credentials_current(&helper.waiting_task);
	atomic_store(&helper.pid, 0);
	own_threads_clear_lists();
	helper.child = orphan_would_be_adopted(directory);
	call_rt_sigprocmask(SIG_BLOCK, &all, &mask);
	result = helper.child ? start_child_helper() : start_orphan_helper();
	call_rt_sigprocmask(SIG_SETMASK, &mask, NULL);
	if (result < 0)
		return (int)result;
	helper.number = (uint32_t)result;
	return 0;
}

void helper_allow_to_ptrace_program(void)
{
	uint32_t pid = atomic_load(&helper.pid);

	if (pid)
		sys_call6(SYS_prctl, PR_YAMA_TRACER, pid, 0, 0, 0, 0);
}

void helper_update_first_task_credentials(uint64_t timeout_ns)
{
	uint64_t one = 1, end = read_posix_clock_ns(CLOCK_MONOTONIC) + timeout_ns;

	sys_call3(SYS_write, helper.wake_event_fd, (long)&one, sizeof(one));
	while (!own_thread_has_latest_credentials(&helper.waiting_task) &&
	       read_posix_clock_ns(CLOCK_MONOTONIC) < end)
		sleep_ns(WAIT_POLL_PERIOD_NS);
}

static bool process_shares_our_memory(uint32_t number)
{
	return !compare_address_spaces(number, (uint32_t)sys_getpid());
}

void helper_wait_until_gone(uint64_t timeout_ns)
{
	uint64_t end = read_posix_clock_ns(CLOCK_MONOTONIC) + timeout_ns;

	while (!helper_is_gone() || own_threads_count_running()) {
		if (read_posix_clock_ns(CLOCK_MONOTONIC) >= end)
			return;
		sleep_ns(WAIT_POLL_PERIOD_NS);
	}
	/* It is marked as ended a moment before it is. */
	while (helper.number &&
	       (process_shares_our_memory(helper.number) ||
		own_threads_any_matches(process_shares_our_memory)) &&
	       read_posix_clock_ns(CLOCK_MONOTONIC) < end)
		sleep_ns(WAIT_POLL_PERIOD_NS);
	if (!helper.number || !helper.child)
		return;
	reap_child(helper.number);
	helper.number = 0;
}

void helper_wait_until_reaped(uint64_t timeout_ns)
{
	uint64_t end = read_posix_clock_ns(CLOCK_MONOTONIC) + timeout_ns;

	helper_wait_until_gone(timeout_ns);
	while (helper.number && sys_call2(SYS_kill, helper.number, 0) != -ESRCH &&
	       read_posix_clock_ns(CLOCK_MONOTONIC) < end)
		sleep_ns(WAIT_POLL_PERIOD_NS);
}
