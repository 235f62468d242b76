/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The program under supervision ends as it would alone: status, signals, mask, dispositions.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch/supervise.h"

static struct supervised_program_end run_shell(const char *script)
{
	char *arguments[] = {"sh", "-c", (char *)(uintptr_t)script, NULL};
	struct supervised_program_end end;

	assert_int_equal(supervise_run_program("/bin/sh", arguments, environ, &end), 0);
	return end;
}

static void status_is_kept(void **state)
{
	struct supervised_program_end end = run_shell("exit 42");

	(void)state;
	assert_int_equal(end.exec_errno, 0);
	assert_true(WIFEXITED(end.wait_status));
	assert_int_equal(WEXITSTATUS(end.wait_status), 42);
	end = run_shell("kill -KILL $$");
	assert_true(WIFSIGNALED(end.wait_status));
	assert_int_equal(WTERMSIG(end.wait_status), SIGKILL);
}

static void failing_to_execute_is_told(void **state)
{
	char *arguments[] = {"x", NULL};
	struct supervised_program_end end;

	(void)state;
	assert_int_equal(supervise_run_program("/nonexistent/x", arguments, environ, &end), 0);
	assert_int_equal(end.exec_errno, ENOENT);
}

/* What a program says of its signals, with and without supervision in between. */
static void signals_are_as_the_caller_left_them(void **state)
{
	static const char script[] = "grep '^Sig[BIC]' /proc/self/status >%s";
	char alone[64], supervised[64];
	sigset_t mask, before;

	(void)state;
	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR2);
	sigprocmask(SIG_BLOCK, &mask, &before);
	signal(SIGHUP, SIG_IGN);
	snprintf(alone, sizeof(alone), script, "signals-alone");
	snprintf(supervised, sizeof(supervised), script, "signals-supervised");
	if (!fork()) {
		execl("/bin/sh", "sh", "-c", alone, (char *)NULL);
		_exit(1);
	}
	wait(NULL);
	assert_int_equal(run_shell(supervised).wait_status, 0);
	assert_int_equal(system("cmp signals-alone signals-supervised && rm signals-*"), 0);
	signal(SIGHUP, SIG_DFL);
	sigprocmask(SIG_SETMASK, &before, NULL);
}

static void signals_sent_to_kymo_are_passed_on(void **state)
{
	struct supervised_program_end end;

	(void)state;
	end = run_shell("trap 'exit 7' TERM; kill -TERM $PPID; while :; do sleep 0.01; done");
	assert_int_equal(WEXITSTATUS(end.wait_status), 7);
	end = run_shell("trap 'exit 8' USR1; kill -USR1 $PPID; while :; do sleep 0.01; done");
	assert_int_equal(WEXITSTATUS(end.wait_status), 8);
}

static void one_interrupt_is_survived_and_two_give_up(void **state)
{
	struct supervised_program_end end =
		run_shell("trap 'exit 9' INT; kill -INT $PPID; while :; do sleep 0.01; done");

	(void)state;
	assert_int_equal(WEXITSTATUS(end.wait_status), 9);
	assert_false(end.discards_results);
	end = run_shell("trap : INT; kill -INT $PPID; sleep 0.1; kill -INT $PPID; sleep 0.1");
	assert_true(end.discards_results);
}

/* exec keeps interval timers, fork does not: the program must get its caller's alarm. */
static void alarms_reach_the_program(void **state)
{
	struct itimerval soon = {.it_value = {.tv_usec = 50000}};
	struct supervised_program_end end;

	(void)state;
	setitimer(ITIMER_REAL, &soon, NULL);
	end = run_shell("sleep 5; exit 1");
	assert_true(WIFSIGNALED(end.wait_status));
	assert_int_equal(WTERMSIG(end.wait_status), SIGALRM);
}

static void cpu_time_is_measured(void **state)
{
	struct supervised_program_end end =
		run_shell("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done");

	(void)state;
	assert_true(end.user_ns + end.system_ns > 0);
}

static int status_of_exit_like(int wait_status)
{
	int status;
	pid_t pid = fork();

	if (!pid)
		supervise_exit_like_program(wait_status);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void kymo_ends_as_the_program_did(void **state)
{
	(void)state;
	assert_int_equal(status_of_exit_like(W_EXITCODE(3, 0)), W_EXITCODE(3, 0));
	assert_int_equal(status_of_exit_like(W_EXITCODE(0, SIGTERM)), W_EXITCODE(0, SIGTERM));
	assert_int_equal(status_of_exit_like(W_EXITCODE(0, SIGKILL)), W_EXITCODE(0, SIGKILL));
	/* The program's core was dumped; kymo leaves none of its own. */
	assert_int_equal(status_of_exit_like(W_EXITCODE(0, SIGSEGV) | WCOREFLAG),
			 W_EXITCODE(0, SIGSEGV));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(status_is_kept),
		cmocka_unit_test(failing_to_execute_is_told),
		cmocka_unit_test(signals_are_as_the_caller_left_them),
		cmocka_unit_test(signals_sent_to_kymo_are_passed_on),
		cmocka_unit_test(one_interrupt_is_survived_and_two_give_up),
		cmocka_unit_test(alarms_reach_the_program),
		cmocka_unit_test(cpu_time_is_measured),
		cmocka_unit_test(kymo_ends_as_the_program_did),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
