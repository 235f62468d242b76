/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What a process finds that looks at its own threads and children, and what the kernel refuses to
 * one that is not alone: each case prints what came of it, and the test compares that with a run
 * without kymo. All calls are raw system calls where libc's could be seen.
 *
 * usage: own_process CASE
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

#define BURN_MS 30

static const char *self;

static long result_of(long result)
{
	return result < 0 ? -errno : result;
}

static unsigned count_entries(const char *path)
{
	DIR *directory = opendir(path);
	struct dirent *entry;
	unsigned count = 0;

	CHECK(directory);
	while ((entry = readdir(directory)))
		count += entry->d_name[0] != '.';
	closedir(directory);
	return count;
}

/* Children by the kernel's own list; those that are waited for are counted apart. */
static unsigned count_children(void)
{
	char line[4096] = "";
	FILE *file = fopen("/proc/thread-self/children", "r");
	unsigned count = 0;

	if (!file)
		return 0;
	if (fgets(line, sizeof(line), file)) {
		for (const char *at = line; *at; at++)
			count += *at == ' ';
	}
	fclose(file);
	return count;
}

static void print_waits(unsigned count)
{
	static const int options[] = {0, __WALL, __WCLONE, __WNOTHREAD | __WALL};

	for (unsigned i = 0; i < count; i++)
		printf("wait4(-1, %#x): %ld\n", (unsigned)options[i],
		       result_of(syscall(SYS_wait4, -1, NULL, options[i] | WNOHANG, NULL)));
}

static void print_threads(void)
{
	struct stat status;

	CHECK(stat("/proc/self/task", &status) == 0);
	printf("tasks %u, links %u\n", count_entries("/proc/self/task"), (unsigned)status.st_nlink);
}

static void print_tasks(void)
{
	print_threads();
	printf("children %u\n", count_children());
	print_waits(4);
	fflush(stdout);
}

/* Where orphans would come to the process itself, or to another one of the session, the helper is a
 * child without an exit signal: only what asks for such children finds it
 * (docs/reference/fidelity.md). */
static void print_tasks_adopting(void)
{
	print_threads();
	print_waits(1);
	fflush(stdout);
}

static void *burn_and_wait(void *argument)
{
	check_burn_ms(BURN_MS);
	if (argument)
		pthread_barrier_wait(argument);
	return NULL;
}

/* With threads of its own, while they are there and when they have gone. */
static void threads(void)
{
	pthread_barrier_t barrier;
	pthread_t thread[3];

	CHECK(pthread_barrier_init(&barrier, NULL, 4) == 0);
	for (int i = 0; i < 3; i++)
		CHECK(pthread_create(&thread[i], NULL, burn_and_wait, &barrier) == 0);
	print_tasks();
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	print_tasks();
}

/* In a child, so that what is changed does not matter to the rest; prints how it ended. */
static void in_child(const char *name, void (*run)(void))
{
	int status = 0;
	pid_t child = fork();

	CHECK(child >= 0);
	if (!child) {
		run();
		fflush(stdout);
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child);
	printf("%s: status %#x\n", name, (unsigned)status);
	print_tasks();
}

static void unshare_user(void)
{
	check_burn_ms(BURN_MS);
	printf("unshare user: %ld\n", result_of(syscall(SYS_unshare, CLONE_NEWUSER)));
	check_burn_ms(BURN_MS);
}

static void unshare_rest(void)
{
	check_burn_ms(BURN_MS);
	printf("unshare thread: %ld\n", result_of(syscall(SYS_unshare, CLONE_THREAD)));
	printf("unshare fs: %ld\n", result_of(syscall(SYS_unshare, CLONE_FS | CLONE_FILES)));
	printf("unshare mount: %ld\n", result_of(syscall(SYS_unshare, CLONE_NEWNS)));
	printf("unshare pid: %ld\n", result_of(syscall(SYS_unshare, CLONE_NEWPID)));
	in_child("first child of a namespace", print_tasks_adopting);
}

static void join(const char *name, int kind)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/ns/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	printf("setns %s: %ld\n", name, result_of(syscall(SYS_setns, fd, kind)));
	close(fd);
}

static void join_namespaces(void)
{
	check_burn_ms(BURN_MS);
	join("user", CLONE_NEWUSER);
	join("mnt", CLONE_NEWNS);
	join("uts", CLONE_NEWUTS);
	join("net", CLONE_NEWNET);
}

/* As seen through libc, which kymo's wrappers see: memory that is shared refuses these. */
static void need_own_memory(void)
{
	int fd = open("/proc/self/ns/time", O_RDONLY | O_CLOEXEC);

	check_burn_ms(BURN_MS);
	printf("unshare memory: %ld\n", result_of(unshare(CLONE_VM)));
	if (fd >= 0)
		printf("setns time: %ld\n", result_of(setns(fd, CLONE_NEWTIME)));
}

static bool first_thread_has_ended(void)
{
	char path[64], line[512] = "";
	const char *after_name;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)getpid());
	file = fopen(path, "r");
	if (!file)
		return true;
	after_name = fgets(line, sizeof(line), file) ? strrchr(line, ')') : NULL;
	fclose(file);
	return after_name && after_name[2] == 'Z';
}

static void *exit_raw_later(void *argument)
{
	(void)argument;
	while (!first_thread_has_ended())
		check_burn_ms(1);
	check_burn_ms(BURN_MS);
	syscall(SYS_exit, 9);
	return NULL;
}

/* The last thread ends the process, by the call that ends a thread. */
static void exit_by_last_thread(void)
{
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, exit_raw_later, NULL) == 0);
	check_burn_ms(BURN_MS);
	syscall(SYS_exit, 5);
}

static void exit_raw(void)
{
	check_burn_ms(BURN_MS);
	fflush(stdout);
	syscall(SYS_exit, 8);
}

static void end_group_by_thread(void)
{
	pthread_t thread[2];

	for (int i = 0; i < 2; i++)
		CHECK(pthread_create(&thread[i], NULL, burn_and_wait, NULL) == 0);
	check_burn_ms(BURN_MS);
	syscall(SYS_exit_group, 6);
}

static void kill_itself(void)
{
	check_burn_ms(BURN_MS);
	kill(getpid(), SIGKILL);
}

static void abort_itself(void)
{
	struct rlimit none = {0, 0};

	setrlimit(RLIMIT_CORE, &none);
	check_burn_ms(BURN_MS);
	abort();
}

static void strict_sandbox(void)
{
	check_burn_ms(BURN_MS);
	CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0);
	for (volatile long i = 0; i < 50000000; i++)
		;
	syscall(SYS_exit, 4);
}

static void leave_orphan(void)
{
	check_burn_ms(BURN_MS);
	if (!fork()) {
		check_burn_ms(2 * BURN_MS);
		_exit(3);
	}
}

static void execute_itself(void)
{
	check_burn_ms(BURN_MS);
	execl(self, self, "tasks", (char *)NULL);
	_exit(127);
}

static void execute_below(void)
{
	check_burn_ms(BURN_MS);
	execl(self, self, "tasks-adopting", (char *)NULL);
	_exit(127);
}

/* A process that adopts the orphans of those below it: they are its children, and nothing else is.
 */
static void adopt(void)
{
	static void (*const below[])(void) = {leave_orphan, execute_below, execute_below};
	unsigned ended = 0;
	pid_t pid;

	CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1L, 0L, 0L, 0L) == 0);
	for (unsigned i = 0; i < sizeof(below) / sizeof(*below); i++) {
		if (!fork()) {
			below[i]();
			fflush(stdout);
			_exit(0);
		}
	}
	while ((pid = waitpid(-1, NULL, 0)) > 0 || errno == EINTR)
		ended += pid > 0;
	printf("%u ended, then %s\n", ended, strerrorname_np(errno));
	print_tasks();
}

/* Another one asks for it by a system call that nobody sees, before it has children. */
static void adopt_unseen(void)
{
	long result;

	__asm__ volatile("xorl %%r10d, %%r10d\n\txorl %%r8d, %%r8d\n\tsyscall"
			 : "=a"(result)
			 : "0"((long)SYS_prctl), "D"((long)PR_SET_CHILD_SUBREAPER), "S"(1L), "d"(0L)
			 : "rcx", "r8", "r10", "r11", "memory");
	CHECK(result == 0);
	adopt();
}

/* The child asks to be traced; its parent follows what it clones. */
static void trace_child(void)
{
	unsigned events = 0, stops = 0;
	int status;
	pid_t child = fork(), pid;

	CHECK(child >= 0);
	if (!child) {
		pthread_t thread;

		CHECK(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0);
		raise(SIGSTOP);
		CHECK(pthread_create(&thread, NULL, burn_and_wait, NULL) == 0);
		pthread_join(thread, NULL);
		_exit(0);
	}
	CHECK(waitpid(child, &status, __WALL) == child && WIFSTOPPED(status));
	CHECK(ptrace(PTRACE_SETOPTIONS, child, NULL,
		     (void *)(PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK)) ==
	      0);
	ptrace(PTRACE_CONT, child, NULL, NULL);
	while ((pid = waitpid(-1, &status, __WALL)) > 0) {
		long signal = 0;

		if (!WIFSTOPPED(status))
			continue;
		if (status >> 16)
			events++;
		else if (WSTOPSIG(status) == SIGSTOP)
			stops++;
		else
			signal = WSTOPSIG(status);
		ptrace(PTRACE_CONT, pid, NULL, (void *)signal);
	}
	printf("followed %u, began stopped %u, then %s\n", events, stops, strerrorname_np(errno));
}

/* A child traces its parent, as programs do that want no debugger. */
static void traced_by_child(void)
{
	int status = 0;
	pid_t child = fork();

	CHECK(child >= 0);
	if (!child) {
		pid_t parent = getppid();

		if (ptrace(PTRACE_ATTACH, parent, NULL, NULL) ||
		    waitpid(parent, &status, __WALL) != parent)
			_exit(1);
		_exit(ptrace(PTRACE_DETACH, parent, NULL, NULL) ? 2 : 0);
	}
	prctl(PR_SET_PTRACER, (long)child);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	printf("traced: status %#x\n", (unsigned)status);
}

static void *execute(void *argument)
{
	(void)argument;
	check_burn_ms(BURN_MS);
	execute_itself();
	return NULL;
}

/* The new image finds itself as it would without kymo, whichever thread executed it. */
static void execute_by_thread(void)
{
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, execute, NULL) == 0);
	for (;;)
		pause();
}

static void *outlive(void *argument)
{
	(void)argument;
	check_burn_ms(2 * BURN_MS);
	printf("first thread gone: tasks %u\n", count_entries("/proc/self/task"));
	fflush(stdout);
	execute_itself();
	return NULL;
}

static void end_first_thread(void)
{
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, outlive, NULL) == 0);
	pthread_exit(NULL);
}

/* Executed by a system call that no wrapper sees. */
static void execute_unseen(void)
{
	extern char **environ;
	const char *arguments[] = {self, "tasks", NULL};
	long result;

	check_burn_ms(BURN_MS);
	fflush(stdout);
	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "0"((long)SYS_execve), "D"(self), "S"(arguments), "d"(environ)
			 : "rcx", "r11", "memory");
	_exit(127);
}

static const struct {
	const char *name;
	void (*run)(void);
	bool child;
} cases[] = {
	{"tasks", print_tasks, false},
	{"tasks-adopting", print_tasks_adopting, false},
	{"threads", threads, false},
	{"fork", print_tasks, true},
	{"unshare-user", unshare_user, true},
	{"unshare-user-first", unshare_user, false},
	{"unshare", unshare_rest, true},
	{"setns", join_namespaces, true},
	{"memory", need_own_memory, true},
	{"raw-exit", exit_raw, false},
	{"raw-exit-child", exit_raw, true},
	{"raw-exit-last", exit_by_last_thread, false},
	{"raw-exit-last-child", exit_by_last_thread, true},
	{"exit-group", end_group_by_thread, true},
	{"kill", kill_itself, true},
	{"kill-first", kill_itself, false},
	{"abort", abort_itself, true},
	{"strict", strict_sandbox, true},
	{"adopt", adopt, false},
	{"adopt-unseen", adopt_unseen, false},
	{"trace", trace_child, false},
	{"traced", traced_by_child, false},
	{"exec-thread", execute_by_thread, false},
	{"exec-last-thread", end_first_thread, false},
	{"exec-unseen", execute_unseen, false},
	{"exec-child", execute_itself, true},
};

int main(int argc, char **argv)
{
	const char *wanted = argc > 1 ? argv[1] : "";

	self = argv[0];
	if (strcmp(wanted, "list") == 0) {
		for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++)
			puts(cases[i].name);
		return 0;
	}
	check_burn_ms(BURN_MS);
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		if (strcmp(wanted, cases[i].name))
			continue;
		fflush(stdout);
		if (cases[i].child)
			in_child(wanted, cases[i].run);
		else
			cases[i].run();
		fflush(stdout);
		return 0;
	}
	fprintf(stderr, "own_process: no such case: %s\n", wanted);
	return 2;
}
