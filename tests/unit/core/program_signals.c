/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The program's view of the signal that kymo has taken: what it sets it reads back, and what is not
 * kymo's reaches it as it would have without kymo.
 */
#include "unit/core/core_test.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/process/program_signals.h"

static struct program_signals signals;
static volatile int calls, code, number, mask_has_own, mask_has_usr2, mask_has_term;
static void *volatile value;

/* Ours, as the sampler's would be: nothing here is kymo's, all is delivered. */
static void our_handler(int signal, siginfo_t *information, void *context)
{
	program_signals_run_program_action(&signals, signal, information, context);
}

static void note_mask(int signal)
{
	sigset_t mask;

	sigprocmask(SIG_SETMASK, NULL, &mask);
	mask_has_own = sigismember(&mask, signal);
	mask_has_usr2 = sigismember(&mask, SIGUSR2);
	mask_has_term = sigismember(&mask, SIGTERM);
}

static void simple_handler(int signal)
{
	calls++;
	number = signal;
	note_mask(signal);
}

static void full_handler(int signal, siginfo_t *information, void *context)
{
	calls++;
	number = signal;
	code = information->si_code;
	value = information->si_value.sival_ptr;
	note_mask(signal);
	if (!context)
		calls = -1;
}

static void take(int signal)
{
	assert_int_equal(program_signals_take_over_signal(&signals, signal, (void *)our_handler),
			 0);
}

static struct sigaction get(void)
{
	struct sigaction action;

	program_signals_emulate_sigaction(&signals, NULL, &action);
	return action;
}

static int reads_as_masking(int signal)
{
	struct sigaction action = get();

	return sigismember(&action.sa_mask, signal);
}

static void set(void (*handler)(int), int flags)
{
	const struct sigaction action = {.sa_handler = handler, .sa_flags = flags};

	program_signals_emulate_sigaction(&signals, &action, NULL);
}

static void *installed(int signal)
{
	struct kernel_sigaction_layout action;

	assert_int_equal(call_rt_sigaction(signal, NULL, &action), 0);
	return action.handler;
}

/* ---- what the program reads ---- */

static void an_untouched_signal_reads_as_default(void **state)
{
	(void)state;
	take(SIGURG);
	assert_ptr_equal(get().sa_handler, SIG_DFL);
	assert_int_equal(get().sa_flags, 0);
	assert_ptr_equal(installed(SIGURG), our_handler);
}

static void what_was_there_before_us_is_remembered(void **state)
{
	const struct kernel_sigaction_layout before = {.handler = (void *)simple_handler,
						       .flags = SA_RESTART,
						       .mask = signal_to_mask_bit(SIGUSR2)};

	(void)state;
	assert_int_equal(call_rt_sigaction(SIGURG, &before, NULL), 0);
	take(SIGURG);
	assert_ptr_equal(get().sa_handler, simple_handler);
	assert_int_equal(get().sa_flags, SA_RESTART);
	assert_int_equal(reads_as_masking(SIGUSR2), 1);
	raise(SIGURG);
	assert_int_equal(calls, 1);
}

static void what_is_set_is_read_back_and_the_kernel_keeps_ours(void **state)
{
	struct sigaction fresh = {.sa_sigaction = full_handler,
				  .sa_flags = (int)(SA_SIGINFO | SA_RESETHAND | SA_NODEFER)};
	struct sigaction previous;

	(void)state;
	sigfillset(&fresh.sa_mask);
	take(SIGURG);
	program_signals_emulate_sigaction(&signals, &fresh, &previous);
	assert_ptr_equal(previous.sa_handler, SIG_DFL);
	assert_ptr_equal(get().sa_sigaction, full_handler);
	assert_int_equal(get().sa_flags, fresh.sa_flags);
	assert_int_equal(reads_as_masking(SIGHUP), 1);
	assert_ptr_equal(installed(SIGURG), our_handler);
	program_signals_emulate_sigaction(&signals, &(struct sigaction){.sa_handler = SIG_IGN},
					  &previous);
	assert_ptr_equal(previous.sa_sigaction, full_handler);
	assert_ptr_equal(get().sa_handler, SIG_IGN);
	assert_ptr_equal(installed(SIGURG), our_handler);
}

static void a_signal_that_cannot_be_taken_is_an_error(void **state)
{
	(void)state;
	assert_int_equal(program_signals_take_over_signal(&signals, SIGKILL, (void *)our_handler),
			 -EINVAL);
	assert_int_equal(program_signals_take_over_signal(&signals, 65, (void *)our_handler),
			 -EINVAL);
}

/* ---- what reaches the program ---- */

static void a_simple_handler_is_called(void **state)
{
	(void)state;
	take(SIGURG);
	set(simple_handler, 0);
	raise(SIGURG);
	raise(SIGURG);
	assert_int_equal(calls, 2);
	assert_int_equal(number, SIGURG);
}

static void a_handler_with_information_gets_it(void **state)
{
	const struct sigaction action = {.sa_sigaction = full_handler, .sa_flags = SA_SIGINFO};

	(void)state;
	take(SIGURG);
	program_signals_emulate_sigaction(&signals, &action, NULL);
	sigqueue(getpid(), SIGURG, (union sigval){.sival_ptr = &signals});
	assert_int_equal(calls, 1);
	assert_int_equal(code, SI_QUEUE);
	assert_ptr_equal(value, &signals);
}

static void in_the_handler_the_mask_is_what_the_program_asked_for(void **state)
{
	struct sigaction action = {.sa_handler = simple_handler};
	sigset_t term, after;

	(void)state;
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_BLOCK, &term, NULL);
	sigaddset(&action.sa_mask, SIGUSR2);
	take(SIGURG);
	program_signals_emulate_sigaction(&signals, &action, NULL);
	raise(SIGURG);
	assert_int_equal(calls, 1);
	assert_true(mask_has_own);  /* no SA_NODEFER */
	assert_true(mask_has_usr2); /* sa_mask */
	assert_true(mask_has_term); /* was blocked before */
	sigprocmask(SIG_SETMASK, NULL, &after);
	assert_int_equal(sigismember(&after, SIGURG), 0);
	assert_int_equal(sigismember(&after, SIGUSR2), 0);
	assert_int_equal(sigismember(&after, SIGTERM), 1);
}

static void nodefer_leaves_the_signal_open(void **state)
{
	(void)state;
	take(SIGURG);
	set(simple_handler, SA_NODEFER);
	raise(SIGURG);
	assert_int_equal(calls, 1);
	assert_false(mask_has_own);
	assert_false(mask_has_usr2);
}

static void resethand_calls_once(void **state)
{
	(void)state;
	take(SIGURG);
	set(simple_handler, (int)SA_RESETHAND);
	raise(SIGURG);
	assert_ptr_equal(get().sa_handler, SIG_DFL);
	raise(SIGURG); /* default action of SIGURG: ignored */
	assert_int_equal(calls, 1);
}

static void an_ignored_signal_does_nothing(void **state)
{
	(void)state;
	take(SIGUSR1);
	set(SIG_IGN, 0);
	raise(SIGUSR1);
	assert_int_equal(calls, 0);
}

static void signals_ignored_by_default_do_nothing(void **state)
{
	static const int ignored[] = {SIGURG, SIGCHLD, SIGWINCH};

	(void)state;
	for (size_t i = 0; i < LENGTH(ignored); i++) {
		take(ignored[i]);
		raise(ignored[i]);
		assert_ptr_equal(installed(ignored[i]), our_handler);
	}
}

/* Waits for a child that ends by the default action of a signal we had taken. */
static int status_after_default(int signal)
{
	const struct rlimit no_core = {0, 0};
	pid_t child = fork();
	int status;

	if (child == 0) {
		setrlimit(RLIMIT_CORE, &no_core);
		if (program_signals_take_over_signal(&signals, signal, (void *)our_handler))
			_exit(100);
		raise(signal);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, WUNTRACED), child);
	if (WIFSTOPPED(status)) {
		int end;
		kill(child, SIGKILL);
		waitpid(child, &end, 0);
	}
	return status;
}

static void the_default_action_ends_the_process_by_that_signal(void **state)
{
	static const int fatal[] = {SIGPROF, SIGVTALRM, SIGUSR1, SIGUSR2, SIGIO, SIGTRAP};

	(void)state;
	for (size_t i = 0; i < LENGTH(fatal); i++) {
		int status = status_after_default(fatal[i]);
		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), fatal[i]);
	}
}

static void the_default_action_stops_the_process(void **state)
{
	int status = status_after_default(SIGTSTP);

	(void)state;
	/* An orphaned process group is not stopped by SIGTSTP (setpgid(2)). */
	assert_true(WIFSTOPPED(status) || (WIFEXITED(status) && WEXITSTATUS(status) == 0));
}

/* ---- exec ---- */

static void an_ignored_signal_stays_ignored_over_exec(void **state)
{
	(void)state;
	take(SIGUSR1);
	program_signals_apply_ignore_at_exec(&signals);
	assert_ptr_equal(installed(SIGUSR1), our_handler); /* the kernel makes it the default */
	set(SIG_IGN, 0);
	program_signals_apply_ignore_at_exec(&signals);
	assert_ptr_equal(installed(SIGUSR1), SIG_IGN);
	program_signals_reinstall_our_handler(&signals, (void *)our_handler); /* exec failed */
	assert_ptr_equal(installed(SIGUSR1), our_handler);
	assert_ptr_equal(get().sa_handler, SIG_IGN);
}

static void without_a_signal_taken_exec_changes_nothing(void **state)
{
	(void)state;
	program_signals_apply_ignore_at_exec(&signals);
	program_signals_reinstall_our_handler(&signals, (void *)our_handler);
	assert_ptr_equal(installed(SIGURG), SIG_DFL);
}

/* ---- whose business EINTR is ---- */

static void handlers_of_asynchronous_signals_are_noted(void **state)
{
	(void)state;
	program_signals_note_has_handler(&signals, SIGSEGV, (const void *)simple_handler, 0);
	program_signals_note_has_handler(&signals, SIGTRAP, (const void *)simple_handler, 0);
	program_signals_note_has_handler(&signals, SIGCHLD, (const void *)SIG_DFL, 0);
	program_signals_note_has_handler(&signals, SIGPIPE, (const void *)SIG_IGN, 0);
	program_signals_note_has_handler(&signals, 0, (const void *)simple_handler, 0);
	program_signals_note_has_handler(&signals, 65, (const void *)simple_handler, 0);
	assert_int_equal(signals.has_program_handlers, 0);
	program_signals_note_has_handler(&signals, SIGALRM, (const void *)simple_handler, 0);
	assert_int_equal(signals.has_program_handlers, 1);
}

static bool is_on_alternate_stack(int signal)
{
	struct kernel_sigaction_layout action = {0};

	assert_int_equal(call_rt_sigaction(signal, NULL, &action), 0);
	return action.flags & SA_ONSTACK;
}

static void note(int signal, const void *handler, int flags)
{
	program_signals_note_has_handler(&signals, signal, handler, (uint64_t)flags);
}

/* A program that has all its handlers there may have stacks that bear no signal's frame. */
static void our_handler_goes_where_all_others_are(void **state)
{
	const void *handler = (const void *)simple_handler;

	(void)state;
	take(SIGURG);
	assert_false(is_on_alternate_stack(SIGURG));
	note(SIGSEGV, handler, SA_ONSTACK); /* stack overflows: says nothing of other signals */
	note(32, handler, 0);               /* libc's own */
	assert_false(is_on_alternate_stack(SIGURG));
	note(SIGTERM, handler, SA_ONSTACK);
	note(33, handler, 0);
	note(SIGPIPE, (const void *)SIG_IGN, 0);
	assert_true(is_on_alternate_stack(SIGURG));
	note(SIGUSR1, handler, 0);
	assert_false(is_on_alternate_stack(SIGURG));
	note(SIGUSR1, (const void *)SIG_DFL, 0);
	assert_true(is_on_alternate_stack(SIGURG));
	note(SIGTERM, handler, 0);
	assert_false(is_on_alternate_stack(SIGURG));
}

/* Many threads set and read while signals arrive: every reading is something that was set. */
static void setting_and_reading_never_mix(void **state)
{
	struct sigaction one = {.sa_handler = simple_handler, .sa_flags = SA_RESTART};
	struct sigaction other = {.sa_sigaction = full_handler, .sa_flags = SA_SIGINFO}, read;

	(void)state;
	take(SIGURG);
	for (int i = 0; i < 10000; i++) {
		program_signals_emulate_sigaction(&signals, i & 1 ? &one : &other, &read);
		if (i % 16 == 0)
			raise(SIGURG);
		if (i > 0) {
			assert_ptr_equal(read.sa_handler,
					 i & 1 ? other.sa_handler : one.sa_handler);
			assert_int_equal(read.sa_flags, i & 1 ? other.sa_flags : one.sa_flags);
		}
	}
	assert_int_equal(calls, 625);
}

static int set_up(void **state)
{
	static const struct kernel_sigaction_layout standard = {0};

	(void)state;
	memset(&signals, 0, sizeof(signals));
	calls = 0;
	for (int signal = 1; signal < 32; signal++)
		call_rt_sigaction(signal, &standard, NULL);
	return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, set_up)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(an_untouched_signal_reads_as_default),
		TEST(what_was_there_before_us_is_remembered),
		TEST(what_is_set_is_read_back_and_the_kernel_keeps_ours),
		TEST(a_signal_that_cannot_be_taken_is_an_error),
		TEST(a_simple_handler_is_called),
		TEST(a_handler_with_information_gets_it),
		TEST(in_the_handler_the_mask_is_what_the_program_asked_for),
		TEST(nodefer_leaves_the_signal_open),
		TEST(resethand_calls_once),
		TEST(an_ignored_signal_does_nothing),
		TEST(signals_ignored_by_default_do_nothing),
		TEST(the_default_action_ends_the_process_by_that_signal),
		TEST(the_default_action_stops_the_process),
		TEST(an_ignored_signal_stays_ignored_over_exec),
		TEST(without_a_signal_taken_exec_changes_nothing),
		TEST(handlers_of_asynchronous_signals_are_noted),
		TEST(our_handler_goes_where_all_others_are),
		TEST(setting_and_reading_never_mix),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
