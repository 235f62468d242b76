/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * System calls that our signal interrupts go on as if nothing had happened, where SA_RESTART alone
 * would let the program see EINTR (signal(7)). A one-shot real timer sends the signal into calls of
 * libc's own.
 */
#include "unit/core/core_test.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "common/time_units.h"
#include "core/process/interrupted_call.h"

static struct program_signals signals;
static volatile int calls;

static void our_handler(int signal, siginfo_t *information, void *context)
{
	(void)signal;
	(void)information;
	calls++;
	interrupted_call_restart_if_by_us(&signals, context);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 * MILLISECOND_NS + (uint64_t)now.tv_nsec;
}

/* Our signal comes once, after ten milliseconds. */
static void signal_soon(void)
{
	const struct itimerval timer = {.it_value = {.tv_usec = 10000}};

	setitimer(ITIMER_REAL, &timer, NULL);
}

static int set_up(void **state)
{
	(void)state;
	memset(&signals, 0, sizeof(signals));
	calls = 0;
	return program_signals_take_over_signal(&signals, SIGALRM, (void *)our_handler);
}

static int tear_down(void **state)
{
	static const struct kernel_sigaction_layout standard = {0};

	(void)state;
	return (int)call_rt_sigaction(SIGALRM, &standard, NULL);
}

/* Each waits at least 30 ms by libc, and gives what libc gave. */

static int by_poll(void)
{
	return poll(NULL, 0, 30);
}

static int by_ppoll(void)
{
	const struct timespec time = {0, 30 * MILLISECOND_NS};

	return ppoll(NULL, 0, &time, NULL);
}

static int by_select(void)
{
	struct timeval time = {0, 30000};

	return select(0, NULL, NULL, NULL, &time);
}

static int by_nanosleep(void)
{
	const struct timespec time = {0, 30 * MILLISECOND_NS};

	return nanosleep(&time, NULL);
}

static int by_clock_nanosleep(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	time.tv_nsec += 30 * MILLISECOND_NS;
	time.tv_sec += time.tv_nsec / (1000 * MILLISECOND_NS);
	time.tv_nsec %= 1000 * MILLISECOND_NS;
	return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
}

static int by_usleep(void)
{
	return usleep(30000);
}

static int by_epoll(void)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC), result;
	struct epoll_event event;

	result = epoll_wait(epoll, &event, 1, 30);
	close(epoll);
	return result;
}

static int by_semaphore(void)
{
	struct timespec time;
	sem_t semaphore;

	sem_init(&semaphore, 0, 0);
	clock_gettime(CLOCK_REALTIME, &time);
	time.tv_nsec += 30 * MILLISECOND_NS;
	time.tv_sec += time.tv_nsec / (1000 * MILLISECOND_NS);
	time.tv_nsec %= 1000 * MILLISECOND_NS;
	return sem_timedwait(&semaphore, &time) == -1 && errno == ETIMEDOUT ? 0 : -1;
}

static int by_system_v_semaphore(void)
{
	const struct timespec time = {0, 30 * MILLISECOND_NS};
	struct sembuf take = {.sem_op = -1};
	int id = semget(IPC_PRIVATE, 1, 0600), result;

	if (id < 0) /* not in this sandbox */
		return by_poll();
	result = semtimedop(id, &take, 1, &time) == -1 && errno == EAGAIN ? 0 : -1;
	semctl(id, 0, IPC_RMID);
	return result;
}

static int by_receive_with_timeout(void)
{
	const struct timeval time = {.tv_usec = 30000};
	int pair[2], result;
	char byte;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		return -1;
	setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time));
	result = recv(pair[0], &byte, 1, 0) == -1 && errno == EAGAIN ? 0 : -1;
	close(pair[0]);
	close(pair[1]);
	return result;
}

static int by_sigtimedwait(void)
{
	const struct timespec time = {0, 30 * MILLISECOND_NS};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	return sigtimedwait(&set, NULL, &time) == -1 && errno == EAGAIN ? 0 : -1;
}

static void waits_go_on_when_our_signal_interrupts_them(void **state)
{
	static const struct {
		const char *name;
		int (*wait)(void);
	} waits[] = {{"poll", by_poll},
		     {"ppoll", by_ppoll},
		     {"select", by_select},
		     {"nanosleep", by_nanosleep},
		     {"clock_nanosleep", by_clock_nanosleep},
		     {"usleep", by_usleep},
		     {"epoll_wait", by_epoll},
		     {"sem_timedwait", by_semaphore},
		     {"semtimedop", by_system_v_semaphore},
		     {"recv", by_receive_with_timeout},
		     {"sigtimedwait", by_sigtimedwait}};

	(void)state;
	for (size_t i = 0; i < LENGTH(waits); i++) {
		uint64_t start = now_ns();
		int result;

		calls = 0;
		signal_soon();
		result = waits[i].wait();
		if (result || calls != 1 || now_ns() - start < 29 * MILLISECOND_NS)
			fail_msg("%s: result %d, %d signals, errno %d, %d us", waits[i].name,
				 result, calls, errno, (int)((now_ns() - start) / 1000));
	}
}

/* A program with handlers of its own must see EINTR: it may wait for it. */
static void programs_with_handlers_see_eintr(void **state)
{
	(void)state;
	program_signals_note_has_handler(&signals, SIGUSR1, (const void *)our_handler, 0);
	signal_soon();
	assert_int_equal(poll(NULL, 0, 1000), -1);
	assert_int_equal(errno, EINTR);
	assert_int_equal(calls, 1);
}

/* Another signal may be what the call has to end for: with SIGUSR1 pending and the call made again,
 * its default action or the program's business would wait. */
static void with_another_signal_pending_the_call_is_left_alone(void **state)
{
	sigset_t set;

	(void)state;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	raise(SIGUSR1);
	signal_soon();
	assert_int_equal(poll(NULL, 0, 1000), -1);
	assert_int_equal(errno, EINTR);
	sigwaitinfo(&set, NULL);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static void calls_that_failed_for_reasons_of_their_own_stay_failed(void **state)
{
	ucontext_t context = {0};
	static const uint8_t code[16]
		__attribute__((aligned(16))) = {0xb8, 0x07, 0, 0, 0, 0x0f, 0x05, 0x48};

	(void)state;
	context.uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)(code + 7);
	context.uc_mcontext.gregs[REG_RAX] = -EFAULT;
	interrupted_call_restart_if_by_us(&signals, &context);
	assert_int_equal(context.uc_mcontext.gregs[REG_RAX], -EFAULT);
	context.uc_mcontext.gregs[REG_RAX] = -EINTR;
	interrupted_call_restart_if_by_us(&signals, &context);
	assert_int_equal(context.uc_mcontext.gregs[REG_RAX], 7);
	assert_int_equal(context.uc_mcontext.gregs[REG_RIP], (greg_t)(uintptr_t)(code + 5));
}

/* pselect, epoll_pwait, … of a program with threads: the first argument is loaded in between. */
static void the_number_may_stand_before_the_first_argument(void **state)
{
	static const uint8_t code[16] __attribute__((aligned(16))) = {
		0xb8, 0x0e, 0x01, 0, 0, 0x8b, 0x7c, 0x24, 0x1c, 0x0f, 0x05, 0x48};
	ucontext_t context = {0};

	(void)state;
	context.uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)(code + 11);
	context.uc_mcontext.gregs[REG_RAX] = -EINTR;
	interrupted_call_restart_if_by_us(&signals, &context);
	assert_int_equal(context.uc_mcontext.gregs[REG_RAX], SYS_pselect6);
	assert_int_equal(context.uc_mcontext.gregs[REG_RIP], (greg_t)(uintptr_t)(code + 9));
}

/* -EINTR in rax by chance, and no system call before the interrupted instruction. */
static void code_that_is_no_system_call_is_left_alone(void **state)
{
	static const uint8_t codes[][16] __attribute__((aligned(16))) = {
		{0xb8, 0x07, 0, 0, 0, 0x0f, 0x0b}, /* ud2 */
		{0xb9, 0x07, 0, 0, 0, 0x0f, 0x05}, /* number not in eax */
		{0xb8, 0x01, 0, 0, 0, 0x0f, 0x05}, /* write: the kernel restarts it */
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(codes); i++) {
		ucontext_t context = {0};

		context.uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)(codes[i] + 7);
		context.uc_mcontext.gregs[REG_RAX] = -EINTR;
		interrupted_call_restart_if_by_us(&signals, &context);
		assert_int_equal(context.uc_mcontext.gregs[REG_RAX], -EINTR);
		assert_int_equal(context.uc_mcontext.gregs[REG_RIP],
				 (greg_t)(uintptr_t)(codes[i] + 7));
	}
}

/* The bytes before may be on a page that is not there. */
static void nothing_is_read_before_the_page_of_the_instruction(void **state)
{
	ucontext_t context = {0};

	(void)state;
	context.uc_mcontext.gregs[REG_RIP] = 0x7000 + 3; /* no such page */
	context.uc_mcontext.gregs[REG_RAX] = -EINTR;
	interrupted_call_restart_if_by_us(&signals, &context);
	assert_int_equal(context.uc_mcontext.gregs[REG_RIP], 0x7000 + 3);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(waits_go_on_when_our_signal_interrupts_them),
		TEST(programs_with_handlers_see_eintr),
		TEST(with_another_signal_pending_the_call_is_left_alone),
		TEST(calls_that_failed_for_reasons_of_their_own_stay_failed),
		TEST(the_number_may_stand_before_the_first_argument),
		TEST(code_that_is_no_system_call_is_left_alone),
		TEST(nothing_is_read_before_the_page_of_the_instruction),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
