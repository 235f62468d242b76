/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A parent that traces its child like a debugger: it swallows SIGTRAP and hands every other signal
 * on. The child works under that and ends with its status.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "check.h"

static int traced_child(void)
{
	CHECK(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0);
	CHECK(raise(SIGSTOP) == 0);
	check_burn_ms(150);
	exit(17);
}

int main(void)
{
	pid_t child = fork();
	int status, stops = 0;

	CHECK(child >= 0);
	if (child == 0)
		return traced_child();
	for (;;) {
		CHECK(waitpid(child, &status, 0) == child);
		if (!WIFSTOPPED(status))
			break;
		int number = WSTOPSIG(status);

		stops += number == SIGSTOP;
		CHECK(ptrace(PTRACE_CONT, child, NULL,
			     (long)(number == SIGTRAP || number == SIGSTOP ? 0 : number)) == 0);
	}
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 17 && stops == 1);
	return check_passed("ptrace");
}
