/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * signalfd() on the full set: reads what the program sent, in order, and nothing else; poll() finds
 * it quiet while CPU time goes by.
 */
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>

#include "check.h"

int main(void)
{
	struct signalfd_siginfo info;
	struct pollfd entry = {.events = POLLIN};
	sigset_t full;

	sigfillset(&full);
	CHECK(sigprocmask(SIG_SETMASK, &full, NULL) == 0);
	entry.fd = signalfd(-1, &full, SFD_CLOEXEC | SFD_NONBLOCK);
	CHECK(entry.fd >= 0);
	for (int round = 0; round < 40; round++) {
		int number = round % 2 ? SIGUSR1 : SIGTERM;

		check_burn_ms(5);
		CHECK(poll(&entry, 1, 0) == 0);
		CHECK(kill(getpid(), number) == 0);
		CHECK(poll(&entry, 1, 1000) == 1);
		CHECK(read(entry.fd, &info, sizeof(info)) == sizeof(info));
		CHECK((int)info.ssi_signo == number && (pid_t)info.ssi_pid == getpid());
	}
	CHECK(read(entry.fd, &info, sizeof(info)) == -1 && errno == EAGAIN);
	close(entry.fd);
	return check_passed("signal_signalfd");
}
