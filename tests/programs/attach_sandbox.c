/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Goes into a seccomp sandbox when asked to by its standard input, in which any system call but
 * those of its own kills; and works there. Whoever has attached meanwhile must leave the thread
 * alone.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <sys/prctl.h>

#include "check.h"

#define ALLOW(number)                                                                              \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1),                                       \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static volatile unsigned spun;

__attribute__((noinline)) static void spin(unsigned turns)
{
	while (turns--)
		spun++;
}

int main(void)
{
	static struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ALLOW(SYS_write),
		ALLOW(SYS_exit_group),
		ALLOW(SYS_rt_sigreturn),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog filter = {sizeof(rules) / sizeof(rules[0]), rules};
	struct pollfd input = {.fd = 0, .events = POLLIN};

	while (poll(&input, 1, 0) != 1)
		spin(10000);
	CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter));
	spin(500000000);
	CHECK(write(1, "ok\n", 3) == 3);
	_exit(0);
}
