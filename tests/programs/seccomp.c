/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Seccomp filters.
 *
 * usage: seccomp deny-perf PROGRAM ARGUMENTS   perf_event_open fails with EPERM, as in containers;
 *                                              everything started from here inherits it
 *        seccomp strict                        the program allows itself a handful of calls; any
 *                                              other one, the profiler's included, kills it
 *        seccomp at-once                       the same, as the first thing in children
 *        seccomp ask                           calls that can only fail, as programs make them to
 * ask whether there are filters: nothing is to change
 */
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "check.h"

#define LOAD(field)                                                                                \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)offsetof(struct seccomp_data, field))
#define ALLOW(number)                                                                              \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),                                         \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static void install(struct sock_filter *filter, size_t length)
{
	struct sock_fprog program = {.len = (unsigned short)length, .filter = filter};

	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

static void deny_perf(void)
{
	struct sock_filter filter[] = {
		LOAD(nr),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	install(filter, sizeof(filter) / sizeof(filter[0]));
}

/* What a sandboxed worker typically keeps: reading, writing, returning from handlers, the clock,
 * ending. rt_sigreturn is what makes being interrupted possible at all. */
static void strict(void)
{
	struct sock_filter filter[] = {
		LOAD(nr),
		ALLOW(SYS_read),
		ALLOW(SYS_write),
		ALLOW(SYS_rt_sigreturn),
		ALLOW(SYS_clock_gettime),
		ALLOW(SYS_fstat),
		ALLOW(SYS_newfstatat),
		ALLOW(SYS_exit),
		ALLOW(SYS_exit_group),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};

	install(filter, sizeof(filter) / sizeof(filter[0]));
}

/* From what the heap has. */
static void allocate(void)
{
	for (int i = 0; i < 1000; i++) {
		void *volatile block = malloc(64);

		CHECK(block);
		free(block);
	}
}

static void strict_in_children(void)
{
	allocate();
	for (int i = 0; i < 30; i++) {
		pid_t child = fork();
		int status = 0;

		CHECK(child >= 0);
		if (!child) {
			strict();
			check_burn_ms(20);
			allocate();
			_exit(7);
		}
		CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) &&
		      WEXITSTATUS(status) == 7);
	}
}

__attribute__((noinline)) static void after_asking(void)
{
	check_burn_ms(400);
	__asm__ volatile("");
}

static void ask(void)
{
	struct sock_filter no_return[] = {LOAD(nr)};
	struct sock_fprog empty = {.len = 0}, nowhere = {.len = 4, .filter = (void *)16},
			  unsound = {.len = 1, .filter = no_return};

	errno = 0;
	CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) == -1 && errno == EFAULT);
	CHECK(prctl(PR_SET_SECCOMP, 77, NULL) == -1 && errno == EINVAL);
	CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &empty) == -1 && errno == EINVAL);
	CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, NULL) ==
		      -1 &&
	      errno == EFAULT);
	CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 1, NULL) == -1 && errno == EINVAL);
	CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &nowhere) == -1 && errno == EFAULT);
	/* What only the kernel can find out. */
	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &unsound) == -1 && errno == EINVAL);
	CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &unsound) ==
		      -1 &&
	      errno == EINVAL);
}

int main(int argc, char **argv)
{
	if (argc > 2 && strcmp(argv[1], "deny-perf") == 0) {
		deny_perf();
		execvp(argv[2], argv + 2);
		return 127;
	}
	if (argc > 1 && strcmp(argv[1], "ask") == 0) {
		ask();
		after_asking();
		return check_passed("seccomp");
	}
	if (argc > 1 && strcmp(argv[1], "at-once") == 0) {
		strict_in_children();
		return check_passed("seccomp");
	}
	setvbuf(stdout, NULL, _IOLBF, 4096);
	printf("before\n");
	check_burn_ms(100);
	strict();
	check_burn_ms(300);
	return check_passed("seccomp");
}
