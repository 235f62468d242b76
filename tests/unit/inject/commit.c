/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Patches written into a process whose threads run, are in signal handlers and wait, and taken out
 * of it again: a plan made by hand for functions made by hand, whose first instructions are slow,
 * so that many threads are met inside.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "inject/commit.h"
#include "inject/process.h"

/* The thread sanitizer makes vfork() a fork(), which lets its caller go on. */
#if defined(__SANITIZE_THREAD__)
#define UNDER_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNDER_TSAN 1
#endif
#endif
#ifndef UNDER_TSAN
#define UNDER_TSAN 0
#endif

#define FUNCTIONS    7000u
#define SPACING      352u /* bytes from one to the next: 600 pages */
#define CODE_SIZE    ((FUNCTIONS * SPACING + PLAN_PAGE) & ~(PLAN_PAGE - 1))
#define STUB_SIZE    32u
#define STUBS_SIZE   (FUNCTIONS * STUB_SIZE)
#define ARENA        CODE_SIZE /* directly behind */
#define WINDOW       8u
#define BUSY         32
#define CYCLES       15
#define TICK_US      500
#define LONG_CALL_US 1000000

/* pause; pause; pause; xchg %ax,%ax: slow, and one is left as it is; then rax := rdi + rsi + 1 */
static const uint8_t function_code[] = {0xf3, 0x90, 0xf3, 0x90, 0xf3, 0x90, 0x66,
					0x90, 0x48, 0x8d, 0x44, 0x37, 0x01, 0xc3};

/* What both sides see. */
struct shared {
	atomic_int ready, stop;
	atomic_ulong calls, wrong, interrupted, handled;
	atomic_ulong counter; /* of calls that passed a stub */
	atomic_ulong waited;
	int pipes[2];
};

static struct shared *shared;
static uint8_t *code;

/* ---- the plan ---- */

struct made_plan {
	struct plan_header header;
	struct plan_function functions[FUNCTIONS];
	struct plan_site sites[FUNCTIONS];
	struct plan_move moves[FUNCTIONS * 4];
	uint8_t modes[FUNCTIONS];
};

static struct made_plan *plan;

static void put_offset(uint8_t *to, uint64_t from_end, uint64_t target)
{
	int32_t offset = (int32_t)(target - from_end);

	memcpy(to, &offset, sizeof(offset));
}

/* lock incq counter; the displaced instructions; jmp back */
static void make_stub(uint32_t number, uint64_t counter)
{
	uint64_t at = ARENA + PLAN_STUBS + number * STUB_SIZE;
	uint8_t *stub = code + at;

	memcpy(stub, "\xf0\x48\xff\x05", 4);
	put_offset(stub + 4, at + 8, counter - (uint64_t)code);
	memcpy(stub + 8, function_code, WINDOW);
	stub[8 + WINDOW] = 0xe9;
	put_offset(stub + 9 + WINDOW, at + 13 + WINDOW, (uint64_t)number * SPACING + WINDOW);
}

static void make_function(uint32_t number)
{
	uint64_t at = (uint64_t)number * SPACING + number % 5; /* also across lines of cache */
	uint64_t stub = ARENA + PLAN_STUBS + number * STUB_SIZE;
	struct plan_site *site = &plan->sites[number];

	memcpy(code + at, function_code, sizeof(function_code));
	plan->functions[number] = (struct plan_function){.vaddr = at, .site = number};
	*site = (struct plan_site){.vaddr = at,
				   .function = number,
				   .length = 5,
				   .window = WINDOW,
				   .move_count = 4,
				   .first_move = 4 * number};
	memcpy(site->original, function_code, 8);
	memcpy(site->patched, function_code, 8);
	site->patched[0] = 0xe9;
	put_offset(site->patched + 1, at + 5, stub);
	for (uint32_t i = 0; i < 4; i++)
		plan->moves[4 * number + i] =
			(struct plan_move){2 * i, (uint32_t)(stub + 8 + 2 * i - ARENA)};
	/* the way back */
	make_stub(number, (uint64_t)(uintptr_t)code + CODE_SIZE + PLAN_STUBS + STUBS_SIZE + 8);
	put_offset(code + stub + 9 + WINDOW, stub + 13 + WINDOW, at + WINDOW);
	plan->modes[number] = PLAN_MODE_FULL;
}

/* The code is a file's, as that of programs; the counter lies behind it. */
static uint64_t *counter_in_code(void)
{
	return (uint64_t *)(code + CODE_SIZE + PLAN_STUBS + STUBS_SIZE + 8);
}

static void make_program(void)
{
	size_t size = CODE_SIZE + PLAN_STUBS + STUBS_SIZE + PLAN_PAGE;
	int file = memfd_create("code", MFD_CLOEXEC);
	uint8_t *view;

	assert_true(file >= 0);
	assert_int_equal(ftruncate(file, (off_t)size), 0);
	code = mmap(NULL, size, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE, file, 0);
	plan = calloc(1, sizeof(*plan));
	assert_true(code != MAP_FAILED && plan);
	for (uint32_t i = 0; i < FUNCTIONS; i++)
		make_function(i);
	view = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	assert_true(view != MAP_FAILED);
	memcpy(view, code, size);
	munmap(view, size);
	munmap(code, size);
	assert_ptr_equal(mmap(code, size, PROT_READ | PROT_WRITE | PROT_EXEC,
			      MAP_PRIVATE | MAP_FIXED, file, 0),
			 code);
	close(file);
	plan->header.arena_vaddr = ARENA;
	plan->header.functions =
		(struct plan_table){offsetof(struct made_plan, functions), FUNCTIONS};
	plan->header.sites = (struct plan_table){offsetof(struct made_plan, sites), FUNCTIONS};
	plan->header.moves = (struct plan_table){offsetof(struct made_plan, moves), 4 * FUNCTIONS};
}

/* ---- the program ---- */

typedef uint64_t (*function_type)(uint64_t, uint64_t);

static void call_one(uint32_t number)
{
	function_type function = (function_type)(uintptr_t)(code + plan->sites[number].vaddr);

	if (function(number, 5) != number + 6)
		atomic_fetch_add(&shared->wrong, 1);
}

static void on_tick(int signal)
{
	struct timespec moment = {.tv_nsec = 300000};

	(void)signal;
	atomic_fetch_add(&shared->handled, 1);
	syscall(SYS_nanosleep, &moment, NULL);
}

static void *be_busy(void *argument)
{
	uint32_t seed = (uint32_t)(uintptr_t)argument;

	while (!atomic_load(&shared->stop)) {
		for (int i = 0; i < 1000; i++) {
			seed = seed * 1664525 + 1013904223;
			call_one(seed % FUNCTIONS);
		}
		atomic_fetch_add(&shared->calls, 1000);
	}
	return NULL;
}

/* The same with handlers on a stack of their own. */
static void *be_busy_elsewhere(void *argument)
{
	static uint8_t stacks[BUSY][64 << 10];
	stack_t stack = {.ss_sp = stacks[(uintptr_t)argument], .ss_size = sizeof(stacks[0])};

	sigaltstack(&stack, NULL);
	return be_busy(argument);
}

/* Calls that stops end with EINTR, and signals of the program never: it blocks them here. */
static void *wait_in_epoll(void *argument)
{
	int set = epoll_create1(0);
	struct epoll_event event = {.events = EPOLLIN};
	sigset_t all;

	(void)argument;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	epoll_ctl(set, EPOLL_CTL_ADD, shared->pipes[0], &event);
	while (epoll_wait(set, &event, 1, -1) != 1)
		atomic_fetch_add(&shared->interrupted, 1);
	atomic_fetch_add(&shared->waited, 1);
	return NULL;
}

static void *come_and_go(void *argument)
{
	(void)argument;
	call_one(17);
	return NULL;
}

/* Without signals: the thread sanitizer runs handlers at once within a join, also while the stack
 * of the thread that ended is given back under a lock that the handler's entry takes (clang 14). */
static void join(pthread_t thread)
{
	sigset_t alarms;

	sigemptyset(&alarms);
	sigaddset(&alarms, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &alarms, NULL);
	pthread_join(thread, NULL);
	pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
}

static _Noreturn void run_program(void)
{
	struct itimerval timer = {{0, TICK_US}, {0, TICK_US}};
	struct sigaction action = {.sa_handler = on_tick, .sa_flags = SA_RESTART | SA_ONSTACK};
	pthread_t threads[BUSY + 1], thread;

	prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nothing busy behind */
	sigaction(SIGALRM, &action, NULL);
	for (uintptr_t i = 0; i < BUSY; i++)
		pthread_create(&threads[i], NULL, i % 2 ? be_busy : be_busy_elsewhere, (void *)i);
	pthread_create(&threads[BUSY], NULL, wait_in_epoll, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
	atomic_store(&shared->ready, 1);
	while (!atomic_load(&shared->stop)) { /* threads that are met when they begin */
		if (!pthread_create(&thread, NULL, come_and_go, NULL))
			join(thread);
	}
	for (int i = 0; i < BUSY; i++)
		join(threads[i]);
	if (write(shared->pipes[1], "x", 1) != 1)
		_exit(2);
	join(threads[BUSY]);
	_exit(atomic_load(&shared->wrong) ? 1 : 0);
}

static pid_t start_program(void)
{
	pid_t child;

	memset(shared, 0, sizeof(*shared));
	assert_int_equal(pipe(shared->pipes), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child)
		run_program();
	while (!atomic_load(&shared->ready))
		usleep(1000);
	return child;
}

static void end_program(pid_t child)
{
	int status;

	atomic_store(&shared->stop, 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(atomic_load(&shared->wrong), 0);
	assert_int_equal(atomic_load(&shared->interrupted), 0);
	assert_int_equal(atomic_load(&shared->waited), 1);
	close(shared->pipes[0]);
	close(shared->pipes[1]);
}

/* ---- tests ---- */

static int set_up(void **state)
{
	(void)state;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	make_program();
	return shared == MAP_FAILED;
}

static struct patched_module made_module(void)
{
	return (struct patched_module){
		.plan = &plan->header, .modes = plan->modes, .bias = (uint64_t)(uintptr_t)code};
}

static uint64_t counter_of(pid_t pid)
{
	char path[64];
	uint64_t value = 0;
	int memory;

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	memory = open(path, O_RDONLY);
	assert_true(process_read_memory(memory, (uint64_t)(uintptr_t)counter_in_code(), &value, 8));
	close(memory);
	return value;
}

static void check_originals(pid_t pid)
{
	uint8_t *now = malloc(CODE_SIZE);
	char path[64];
	int memory;

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	memory = open(path, O_RDONLY);
	assert_true(process_read_memory(memory, (uint64_t)(uintptr_t)code, now, CODE_SIZE));
	assert_memory_equal(now, code, CODE_SIZE);
	close(memory);
	free(now);
}

static void threads_go_on(void **state)
{
	pid_t child = start_program();
	struct patched_module module = made_module();
	struct commit_result result;
	struct problem problem = {""};
	uint64_t before, moved = 0, longest = 0, total = 0;

	(void)state;
	for (int i = 0; i < CYCLES; i++) {
		before = counter_of(child);
		if (commit_write_patches(child, &module, 1, &result, &problem))
			fail_msg("%s", problem.text);
		assert_int_equal(result.sites, FUNCTIONS);
		assert_int_equal(result.skipped, 0);
		assert_true(result.threads >= BUSY + 2);
		moved += result.moved_thread_count;
		total += result.longest_stop_ns;
		longest = result.longest_stop_ns > longest ? result.longest_stop_ns : longest;
		usleep(5000);
		assert_true(counter_of(child) > before);
		if (commit_restore_code(child, &module, 1, &result, &problem))
			fail_msg("%s", problem.text);
		assert_int_equal(result.sites, FUNCTIONS);
		check_originals(child);
	}
	print_message("moved %lu; stopped %.2f ms on average, %.2f ms at most; %lu calls, %lu "
		      "signals\n",
		      moved, (double)total / CYCLES / 1e6, (double)longest / 1e6,
		      atomic_load(&shared->calls), atomic_load(&shared->handled));
	assert_true(moved > 0);
	end_program(child);
}

static void other_bytes_are_left(void **state)
{
	pid_t child = start_program();
	struct patched_module module = made_module();
	uint8_t kept = plan->sites[3].original[1];
	struct commit_result result;
	struct problem problem = {""};

	(void)state;
	plan->sites[3].original[1] ^= 1;
	plan->sites[7].island = 4; /* goes with the other one */
	assert_int_equal(commit_write_patches(child, &module, 1, &result, &problem), 0);
	assert_int_equal(result.sites, FUNCTIONS - 2);
	assert_int_equal(result.skipped, 2);
	assert_int_equal(commit_write_patches(child, &module, 1, &result, &problem), 0);
	assert_int_equal(result.sites, FUNCTIONS - 2);
	assert_int_equal(result.threads, 0);
	plan->sites[3].original[1] = kept;
	plan->sites[7].island = 0;
	assert_int_equal(commit_restore_code(child, &module, 1, &result, &problem), 0);
	assert_int_equal(result.sites, FUNCTIONS);
	check_originals(child);
	end_program(child);
}

static void only_what_is_selected(void **state)
{
	pid_t child = start_program();
	struct patched_module module = made_module();
	uint8_t modes[FUNCTIONS] = {[10] = PLAN_MODE_COUNT, [6999] = PLAN_MODE_FULL};
	struct commit_result result;
	struct problem problem = {""};

	(void)state;
	module.modes = modes;
	assert_int_equal(commit_write_patches(child, &module, 1, &result, &problem), 0);
	assert_int_equal(result.sites, 2);
	assert_int_equal(commit_restore_code(child, &module, 1, &result, &problem), 0);
	assert_int_equal(result.sites, 2);
	check_originals(child);
	end_program(child);
}

/* Is anybody tracing the process that this one was made by? */
static bool is_parent_traced(void)
{
	char path[64], status[4096], value[64];

	snprintf(path, sizeof(path), "/proc/%d/status", (int)getppid());
	return process_read_proc_file(path, status, sizeof(status)) > 0 &&
	       process_read_status_field(status, "TracerPid", value, sizeof(value)) &&
	       strcmp(value, "0") != 0;
}

/* Nothing stops it before its own child has ended (vfork(2)). */
static _Noreturn void run_uninterruptible(void)
{
	pid_t child;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	child = vfork();
	if (!child) {
		atomic_store(&shared->ready, 1);
		while (!is_parent_traced())
			usleep(1000);
		usleep(LONG_CALL_US);
		_exit(0);
	}
	while (!atomic_load(&shared->stop))
		usleep(1000);
	_exit(waitpid(child, NULL, 0) == child ? 0 : 1);
}

static void long_stops_are_given_up(void **state)
{
	struct patched_module module = made_module();
	struct commit_result result;
	struct problem problem = {""};
	pid_t child;
	int status;

	(void)state;
	if (UNDER_TSAN)
		skip();
	memset(shared, 0, sizeof(*shared));
	child = fork();
	assert_true(child >= 0);
	if (!child)
		run_uninterruptible();
	while (!atomic_load(&shared->ready))
		usleep(1000);
	if (commit_write_patches(child, &module, 1, &result, &problem))
		fail_msg("%s", problem.text);
	assert_true(result.stop_count > 1);
	assert_true(result.longest_stop_ns < LONG_CALL_US * 1000ull);
	assert_int_equal(result.sites, FUNCTIONS);
	atomic_store(&shared->stop, 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
}

static void says_what_is_in_the_way(void **state)
{
	struct patched_module module = made_module();
	struct commit_result result;
	struct problem problem = {""};
	pid_t child = fork();
	int status;

	(void)state;
	if (!child) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(commit_write_patches(child, &module, 1, &result, &problem), -EPERM);
	assert_non_null(strstr(problem.text, "traced"));
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(commit_write_patches(child, &module, 1, &result, &problem), -ESRCH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_go_on),
		cmocka_unit_test(other_bytes_are_left),
		cmocka_unit_test(only_what_is_selected),
		cmocka_unit_test(long_stops_are_given_up),
		cmocka_unit_test(says_what_is_in_the_way),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
