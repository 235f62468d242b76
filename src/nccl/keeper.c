/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See keeper.h. It is made as libkymo's helper is (docs/internals/helper-task.md): by a task
 * between that ends at once, so that it is nobody's child but init's; where the program would adopt
 * it, as a child without an exit signal, which wait(2) finds by __WALL and __WCLONE only. No libc
 * in it: raw system calls, and thread-local data of its own.
 */
#include "nccl/keeper.h"

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
#include <sys/wait.h>
#include <time.h>

#include "common/syscalls.h"
#include "common/time_units.h"
#include "core/process/own_task.h"
#include "nccl/store.h"
#include "nccl/write_out.h"

#define KEEPER_STACK_SIZE      (16u << 10)
#define BUSY_ROUND_INTERVAL_NS (50 * (long)MILLISECOND_NS)
#define IDLE_ROUND_INTERVAL_NS (250 * (long)MILLISECOND_NS)
#define IDLE_AFTER_ROUNDS      20
#define CHECK_ROUNDS           20 /* rounds from one look at who the program is to the next */
#define WAIT_TIMEOUT_NS        (200 * (long)MILLISECOND_NS)
#define WAIT_PAUSE_NS          100000

#define NO_ADDRESS_SANITIZER __attribute__((no_sanitize("address")))

#define MIDDLE_TASK_CLONE_FLAGS (CLONE_VM | CLONE_VFORK | CLONE_UNTRACED | CLONE_SETTLS)
#define CHILD_KEEPER_CLONE_FLAGS                                                                   \
	(CLONE_VM | CLONE_UNTRACED | CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID)
#define ORPHAN_KEEPER_CLONE_FLAGS (CHILD_KEEPER_CLONE_FLAGS | CLONE_FILES | CLONE_FS)

static struct {
	uint8_t *memory;      /* stacks of the task between and of the keeper, their TLS */
	_Atomic uint32_t pid; /* cleared by the kernel when it has let go of its memory */
	uint32_t program_pid;
	uint32_t program_user;   /* effective, at the start */
	bool is_child;           /* of the program: it has to be reaped */
	int program_pidfd, file; /* in the keeper's descriptor table */
	_Atomic bool is_ready;   /* it has the lock of the file */
	_Atomic uint64_t cpu_ns;
} keeper = {.program_pidfd = -1};

bool keeper_is_running(void)
{
	return atomic_load_explicit(&keeper.pid, memory_order_relaxed) != 0;
}

uint64_t keeper_get_cpu_ns(void)
{
	return atomic_load_explicit(&keeper.cpu_ns, memory_order_relaxed);
}

__attribute__((noreturn)) static void exit_task(void)
{
	for (;;)
		sys_call1(SYS_exit_group, 0);
}

/* ---- in the keeper ---- */

/* The second number of the "Uid:" line; `otherwise` where it cannot be read. */
NO_ADDRESS_SANITIZER static uint32_t read_user_of_program(uint32_t otherwise)
{
	char path[32] = "/proc/", text[1024];
	unsigned at = 6, digits = 0, fields = 0;
	uint32_t number = keeper.program_pid, user = 0;
	long file, length;

	for (uint32_t rest = number; rest; rest /= 10)
		digits++;
	for (unsigned i = digits; i--; number /= 10)
		path[at + i] = (char)('0' + number % 10);
	at += digits;
	for (const char *end = "/status"; *end; end++)
		path[at++] = *end;
	path[at] = 0;
	file = sys_open(path, O_RDONLY | O_CLOEXEC, 0);
	length = file < 0 ? 0 : sys_read((int)file, text, sizeof(text) - 1);
	if (file >= 0)
		sys_close((int)file);
	text[length > 0 ? length : 0] = 0;
	for (const char *line = text; *line; line++) {
		if (line[0] != '\n' || line[1] != 'U' || line[2] != 'i' || line[3] != 'd')
			continue;
		for (line += 4; *line && *line != '\n' && fields < 3; line++) {
			fields += *line == '\t';
			if (fields == 2 && *line >= '0' && *line <= '9')
				user = user * 10 + (uint32_t)(*line - '0');
		}
		return user;
	}
	return otherwise;
}

/* It executed another image, or gave up its user: who shares its memory must not keep more rights.
 */
NO_ADDRESS_SANITIZER static bool program_is_another(void)
{
	return sys_call6(SYS_kcmp, keeper.program_pid, sys_getpid(), KCMP_VM, 0, 0, 0) > 0 ||
	       read_user_of_program(keeper.program_user) != keeper.program_user;
}

NO_ADDRESS_SANITIZER static void note_cpu_time(void)
{
	struct timespec used = {0};

	sys_call2(SYS_clock_gettime, CLOCK_PROCESS_CPUTIME_ID, (long)&used);
	atomic_store_explicit(&keeper.cpu_ns,
			      (uint64_t)used.tv_sec * SECOND_NS + (uint64_t)used.tv_nsec,
			      memory_order_relaxed);
}

/* Who reads the records of a process that has ended waits for it (F_OFD_GETLK). */
NO_ADDRESS_SANITIZER static int open_and_lock_file(void)
{
	struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int file = own_file_reopen(&store.file);

	if (file >= 0)
		sys_call3(SYS_fcntl, file, F_OFD_SETLK, (long)&whole);
	return file;
}

NO_ADDRESS_SANITIZER __attribute__((noreturn)) static void write_until_program_ends(void)
{
	struct pollfd polled = {.fd = keeper.program_pidfd, .events = POLLIN};
	bool ended = keeper.file < 0;
	unsigned quiet = 0;

	for (unsigned round = 1; !ended; round++) {
		struct timespec period = {0, quiet > IDLE_AFTER_ROUNDS ? IDLE_ROUND_INTERVAL_NS
								       : BUSY_ROUND_INTERVAL_NS};

		sys_call6(SYS_ppoll, (long)&polled, 1, (long)&period, 0, 0, 0);
		ended = polled.revents || (round % CHECK_ROUNDS == 0 && program_is_another());
		quiet = write_out_new_records(keeper.file) ? 0 : quiet + 1;
		note_cpu_time();
	}
	exit_task();
}

/* The program runs on when that is done: it may be killed at once. */
NO_ADDRESS_SANITIZER static void open_own_descriptors(void)
{
	own_task_close_descriptors_from(0);
	keeper.program_pidfd = (int)sys_call2(SYS_pidfd_open, keeper.program_pid, 0);
	keeper.file = open_and_lock_file();
	atomic_store(&keeper.is_ready, true);
}

NO_ADDRESS_SANITIZER static void run_keeper(void *argument)
{
	struct rlimit none = {0, 0};

	(void)argument;
	if (keeper.is_child)
		open_own_descriptors();
	sys_call0(SYS_setsid);
	sys_call4(SYS_prlimit64, 0, RLIMIT_CORE, (long)&none, 0);
	sys_call2(SYS_prctl, PR_SET_NAME, (long)"kymo-nccl");
	if (keeper.program_pidfd < 0) /* before Linux 5.3: nothing tells when it ends */
		exit_task();
	write_until_program_ends();
}

/* ---- start and end ---- */

static void *get_task_tls(void)
{
	return own_task_init_tls(keeper.memory + 2 * KEEPER_STACK_SIZE);
}

static void run_middle_task(void *argument)
{
	(void)argument;
	open_own_descriptors();
	own_task_clone(ORPHAN_KEEPER_CLONE_FLAGS, keeper.memory + 2 * KEEPER_STACK_SIZE,
		       &keeper.pid, get_task_tls(), run_keeper, NULL);
	for (;;)
		sys_call1(SYS_exit, 0);
}

static void reap(long pid)
{
	while (sys_call4(SYS_wait4, pid, 0, __WALL, 0) == -EINTR)
		;
}

static bool orphan_would_be_adopted(void)
{
	return keeper.program_pid == 1 || own_task_process_is_subreaper();
}

static bool child_is_starting(void)
{
	return keeper_is_running() && !atomic_load(&keeper.is_ready);
}

static void wait_while(bool (*is_so)(void))
{
	struct timespec pause = {0, WAIT_PAUSE_NS};

	for (long waited = 0; is_so() && waited < WAIT_TIMEOUT_NS; waited += WAIT_PAUSE_NS)
		sys_call4(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, (long)&pause, 0);
}

void keeper_start(void)
{
	uint64_t all = ~0ull, before = 0;
	uint8_t *memory;
	long middle;

	if (own_task_would_be_namespace_init())
		return;
	memory = sys_mmap(NULL, 2 * KEEPER_STACK_SIZE + OWN_TASK_TLS_SIZE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (sys_mmap_failed(memory))
		return;
	sys_madvise(memory, 2 * KEEPER_STACK_SIZE + OWN_TASK_TLS_SIZE, MADV_WIPEONFORK);
	keeper.memory = memory;
	keeper.program_pid = (uint32_t)sys_getpid();
	keeper.program_user = (uint32_t)sys_call0(SYS_geteuid);
	keeper.is_child = orphan_would_be_adopted();
	sys_call4(SYS_rt_sigprocmask, SIG_BLOCK, (long)&all, (long)&before, sizeof(all));
	if (keeper.is_child) {
		own_task_clone(CHILD_KEEPER_CLONE_FLAGS, memory + 2 * KEEPER_STACK_SIZE,
			       &keeper.pid, get_task_tls(), run_keeper, NULL);
		wait_while(child_is_starting);
	} else {
		middle = own_task_clone(MIDDLE_TASK_CLONE_FLAGS, memory + KEEPER_STACK_SIZE, NULL,
					get_task_tls(), run_middle_task, NULL);
		if (middle > 0)
			reap(middle);
	}
	sys_call4(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, sizeof(before));
}

void keeper_stop(void)
{
	uint32_t pid = atomic_load(&keeper.pid);

	if (!pid)
		return;
	sys_call2(SYS_kill, pid, SIGKILL);
	wait_while(keeper_is_running);
	if (keeper.is_child)
		reap(pid);
}

void keeper_forget_after_fork(void)
{
	atomic_store(&keeper.pid, 0);
}
