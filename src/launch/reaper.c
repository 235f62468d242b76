/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See reaper.h. Whether a process reaps cannot be tried without leaving a zombie where it does not,
 * so those that do are known by their names.
 */
#include "launch/reaper.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/array.h"

#define REAP_PAUSE_NS  100000
#define REAP_TRIES_MAX 200u /* how long helpers may take to end: 20 ms */

static bool subreaper_active_flag;

static void sleep_briefly(void)
{
	static const struct timespec moment = {.tv_nsec = REAP_PAUSE_NS};

	nanosleep(&moment, NULL);
}

/* A nearer process that adopts orphans (a user's systemd, a container's shim) does it to reap them.
 */
static bool init_process_reaps_orphans(void)
{
	static const char *const known[] = {"systemd",     "init",      "tini",      "dumb-init",
					    "docker-init", "catatonit", "s6-svscan", "runit",
					    "openrc-init", "pause",     "my_init"};
	char name[32] = "";
	FILE *file = fopen("/proc/1/comm", "re");

	if (!file)
		return true;
	if (fgets(name, sizeof(name), file))
		name[strcspn(name, "\n")] = '\0';
	fclose(file);
	for (unsigned i = 0; i < ARRAY_SIZE(known); i++) {
		if (!strcmp(name, known[i]))
			return true;
	}
	return false;
}

void reaper_become_subreaper_if_needed(void)
{
	int adopts = 0;

	if (subreaper_active_flag)
		return;
	if (getpid() == 1 || (!prctl(PR_GET_CHILD_SUBREAPER, &adopts) && adopts))
		subreaper_active_flag = true;
	else if (!init_process_reaps_orphans())
		subreaper_active_flag = !prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

void reaper_wait_for_child(pid_t child)
{
	siginfo_t information;

	while (subreaper_active_flag) {
		information.si_pid = 0;
		if (waitid(P_ALL, 0, &information, WEXITED | WSTOPPED | WNOWAIT) && errno != EINTR)
			return;
		if (information.si_pid == child)
			return;
		if (!information.si_pid)
			continue;
		/* One that stands is not waited for: its stop is taken, and it goes on being a
		 * child. */
		waitid(P_PID, (id_t)information.si_pid, &information, WEXITED | WSTOPPED | WNOHANG);
	}
}

void reaper_reap_remaining(void)
{
	for (unsigned i = 0; subreaper_active_flag && i < REAP_TRIES_MAX; i++) {
		pid_t ended = waitpid(-1, NULL, WNOHANG);

		if (ended < 0)
			return;
		if (!ended)
			sleep_briefly();
	}
}
