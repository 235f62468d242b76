/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What a thread finds in its libc, which nobody else may have changed: no message of the loader's
 * that it has not caused, its own message until it asks for it, errno, the locale. The message is
 * left pending across the calls that profilers look at.
 */
#include <dlfcn.h>
#include <execinfo.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "check.h"

static char *(*volatile last_error)(void) = dlerror;

static void *in_thread(void *argument)
{
	CHECK(errno == 0);
	CHECK(last_error() == NULL);
	check_burn_ms(20);
	CHECK(last_error() == NULL);
	return argument;
}

static void handle(int number)
{
	(void)number;
}

/* What is wrapped, and what is found late. */
static void call_around(void)
{
	struct sigaction action = {.sa_handler = handle};
	void *addresses[8], *volatile block = malloc(100);
	sigset_t mask;
	pthread_t thread;
	pid_t child;

	free(block);
	sigemptyset(&mask);
	CHECK(sigaction(SIGUSR1, &action, NULL) == 0 && raise(SIGUSR1) == 0);
	CHECK(sigprocmask(SIG_BLOCK, &mask, NULL) == 0 &&
	      pthread_sigmask(SIG_BLOCK, &mask, NULL) == 0);
	CHECK(prctl(PR_SET_NAME, "state") == 0);
	CHECK(write(1, "", 0) == 0);
	CHECK(pthread_create(&thread, NULL, in_thread, NULL) == 0 &&
	      pthread_join(thread, NULL) == 0);
	CHECK(usleep(1000) == 0);
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		execl("/bin/true", "true", (char *)NULL);
		_exit(1);
	}
	CHECK(waitpid(child, NULL, 0) == child);
	CHECK(backtrace(addresses, 8) > 0);
	check_burn_ms(30);
}

static void check_pending(const char *name)
{
	char *text;

	errno = 77;
	CHECK(dlsym(RTLD_DEFAULT, name) == NULL);
	call_around();
	text = last_error();
	CHECK(text != NULL && strstr(text, name) != NULL);
	CHECK(last_error() == NULL);
}

int main(void)
{
	int first = errno;
	char *text = last_error();

	CHECK(first == 0);
	CHECK(text == NULL);
	CHECK(!strcmp(setlocale(LC_ALL, NULL), "C"));
	call_around();
	CHECK(last_error() == NULL);
	/* backtrace has loaded what it needs by now, which may take a message away. */
	check_pending("no_function_has_this_name");
	return check_passed("loader_state");
}
