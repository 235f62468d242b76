/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Seccomp filters.
 *
 * usage: seccomp deny-perf PROGRAM ARGUMENTS   perf_event_open fails with EPERM, as in containers;
 *                                              everything started from here inherits it
 *        seccomp strict                        the program allows itself a handful of calls; any
 *                                              other one, the profiler's included, kills it
 */
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>

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

int main(int argc, char **argv)
{
	if (argc > 2 && strcmp(argv[1], "deny-perf") == 0) {
		deny_perf();
		execvp(argv[2], argv + 2);
		return 127;
	}
	setvbuf(stdout, NULL, _IOLBF, 4096);
	printf("before\n");
	check_burn_ms(100);
	strict();
	check_burn_ms(300);
	return check_passed("seccomp");
}
