/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Children that share the memory and have a thread pointer of their own, to a zeroed buffer, as
 * Chromium's sandbox makes them: what libc does there without thread-local variables works, and so
 * do the ends of such children, by _exit and by exec.
 */
#include <sched.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define STACK_BYTES 65536

enum child_kind { ENDS, SECOND_NAME_OF_END, EXECUTES, CALLS, KINDS };

static int child(void *argument)
{
	int kind = *(int *)argument;

	if (kind == SECOND_NAME_OF_END)
		_Exit(40 + kind);
	if (kind == EXECUTES) {
		char *arguments[] = {"sh", "-c", "exit 42", NULL};

		execve("/bin/sh", arguments, environ);
	}
	if (kind == CALLS) {
		char name[16];

		if (chdir("/proc/self/fdinfo") || chdir("/") || prctl(PR_GET_NAME, name) ||
		    write(STDOUT_FILENO, "called\n", 7) != 7)
			_exit(1);
	}
	_exit(40 + kind);
}

int main(void)
{
	static char stack[STACK_BYTES] __attribute__((aligned(64)));
	static char pointed[STACK_BYTES] __attribute__((aligned(64)));

	for (int turn = 0; turn < 20; turn++) {
		for (int kind = 0; kind < KINDS; kind++) {
			int status, pid = clone(child, stack + STACK_BYTES,
						CLONE_VM | CLONE_FS | CLONE_VFORK | CLONE_SETTLS |
							SIGCHLD,
						&kind, NULL, pointed + STACK_BYTES / 2, NULL);

			CHECK(pid > 0);
			CHECK(waitpid(pid, &status, 0) == pid);
			CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 40 + kind);
			CHECK(chdir("/") == 0);
		}
		check_burn_ms(20);
	}
	return check_passed("thread_pointer");
}
