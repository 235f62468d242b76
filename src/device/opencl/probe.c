/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See probe.h.
 */
#include "device/opencl/probe.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/array.h"
#include "common/syscalls.h"

#define PROBE_TIMEOUT_MS 10000
#define SIGNAL_SET_BYTES 8 /* of the kernel's */

struct probe_process {
	char path[PATH_MAX];
	char **environment;
	int from, to, null; /* the two ends of a pipe */
};

/* Beside this library, or where the build tree has it. */
static bool find_probe_program(char path[PATH_MAX])
{
	static const char *const places[] = {"kymo-opencl-devices",
					     "../libkymo-opencl/kymo-opencl-devices"};
	static const char own;
	char library[PATH_MAX];
	char *slash;
	Dl_info self;

	if (dladdr(&own, &self) == 0 || self.dli_fname == NULL ||
	    realpath(self.dli_fname, library) == NULL || (slash = strrchr(library, '/')) == NULL)
		return false;
	*slash = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		if ((size_t)snprintf(path, PATH_MAX, "%s/%s", library, places[i]) < PATH_MAX &&
		    access(path, X_OK) == 0)
			return true;
	}
	return false;
}

/* What would put a profiler into it. */
static bool is_variable_for_profilers(const char *variable)
{
	static const char *const names[] = {"LD_PRELOAD=",
					    "LD_AUDIT=",
					    "OPENCL_LAYERS=",
					    "ROCP_TOOL_LIBRARIES=",
					    "CUDA_INJECTION64_PATH=",
					    "NVTX_INJECTION64_PATH=",
					    "HSA_TOOLS_LIB=",
					    "KYMO_SPOOL_DIRECTORY="};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (strncmp(variable, names[i], strlen(names[i])) == 0)
			return true;
	}
	return false;
}

static char **copy_environment_without_profilers(void)
{
	size_t count = 0, copied = 0;
	char **copy;

	while (environ != NULL && environ[count] != NULL)
		count++;
	copy = calloc(count + 1, sizeof(*copy));
	for (size_t i = 0; copy != NULL && i < count; i++) {
		if (!is_variable_for_profilers(environ[i]))
			copy[copied++] = environ[i];
	}
	return copy;
}

/* In a copy of the process that has this thread alone: system calls, nothing of libc. */
static void execute_probe_in_child(const struct probe_process *probe)
{
	struct {
		void *handler;
		unsigned long flags;
		void *restorer;
		uint64_t mask;
	} by_default = {0};
	const uint64_t none = 0;
	char *const arguments[] = {(char *)(uintptr_t)probe->path, NULL}; // NOLINT: not written to

	for (long number = 1; number < NSIG; number++)
		sys_call4(SYS_rt_sigaction, number, (long)&by_default, 0, SIGNAL_SET_BYTES);
	sys_call3(SYS_dup3, probe->null, STDIN_FILENO, 0);
	sys_call3(SYS_dup3, probe->to, STDOUT_FILENO, 0);
	sys_call3(SYS_dup3, probe->null, STDERR_FILENO, 0);
	sys_call3(SYS_close_range, STDERR_FILENO + 1, UINT_MAX, 0);
	sys_call4(SYS_rt_sigprocmask, SIG_SETMASK, (long)&none, 0, SIGNAL_SET_BYTES);
	sys_call3(SYS_execve, (long)probe->path, (long)arguments, (long)probe->environment);
	sys_call1(SYS_exit_group, 127);
}

/* Signals stay blocked in the child until its handlers are the default ones. No signal at its end
 * (the low byte of the flags), which also hides it from wait(2). */
static pid_t start_probe(const struct probe_process *probe)
{
	const uint64_t all = ~UINT64_C(0);
	uint64_t before;
	long pid;

	sys_call4(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&before, SIGNAL_SET_BYTES);
	pid = sys_call6(SYS_clone, 0, 0, 0, 0, 0, 0);
	if (pid == 0)
		execute_probe_in_child(probe);
	sys_call4(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, SIGNAL_SET_BYTES);
	return (pid_t)pid;
}

static int read_milliseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int)(now.tv_sec % 1000000 * 1000 + now.tv_nsec / 1000000);
}

/* Returns how many bytes came until the end or the timeout. */
static size_t read_until_end(int from, char *bytes, size_t room)
{
	int begun = read_milliseconds();
	size_t got = 0;

	while (got < room) {
		struct pollfd input = {.fd = from, .events = POLLIN};
		int left = PROBE_TIMEOUT_MS - (read_milliseconds() - begun);
		ssize_t now;

		if (left <= 0 || (poll(&input, 1, left) < 0 && errno != EINTR))
			break;
		if (input.revents == 0)
			continue;
		now = read(from, bytes + got, room - got);
		if (now == 0 || (now < 0 && errno != EINTR))
			break;
		got += now > 0 ? (size_t)now : 0;
	}
	return got;
}

static int move_past_standard_streams(int descriptor)
{
	int moved;

	if (descriptor < 0 || descriptor > STDERR_FILENO)
		return descriptor;
	moved = fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	close(descriptor);
	return moved;
}

static bool open_probe_descriptors(struct probe_process *probe)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) != 0)
		return false;
	probe->from = move_past_standard_streams(ends[0]);
	probe->to = move_past_standard_streams(ends[1]);
	probe->null = move_past_standard_streams(open("/dev/null", O_RDWR | O_CLOEXEC));
	return probe->from >= 0 && probe->to >= 0 && probe->null >= 0;
}

static void close_if_open(int *descriptor)
{
	if (*descriptor >= 0)
		close(*descriptor);
	*descriptor = -1;
}

static unsigned run_probe(struct probe_process *probe, struct opencl_device_facts *facts)
{
	pid_t pid = start_probe(probe);
	size_t got;

	if (pid < 0)
		return 0;
	close_if_open(&probe->to);
	got = read_until_end(probe->from, (char *)facts, OPENCL_DEVICES_MAX * sizeof(*facts));
	sys_call2(SYS_kill, pid, SIGKILL);
	while (sys_call4(SYS_wait4, pid, 0, __WALL, 0) == -EINTR)
		;
	return (unsigned)(got / sizeof(*facts));
}

unsigned opencl_probe_devices(struct opencl_device_facts facts[OPENCL_DEVICES_MAX])
{
	struct probe_process probe = {.from = -1, .to = -1, .null = -1};
	unsigned count = 0;
	int error = errno;

	if (getauxval(AT_SECURE) == 0 && find_probe_program(probe.path)) {
		probe.environment = copy_environment_without_profilers();
		if (probe.environment != NULL && open_probe_descriptors(&probe))
			count = run_probe(&probe, facts);
		free(probe.environment);
	}
	close_if_open(&probe.from);
	close_if_open(&probe.to);
	close_if_open(&probe.null);
	for (unsigned i = 0; i < count; i++) {
		facts[i].vendor[sizeof(facts[i].vendor) - 1] = '\0';
		facts[i].model[sizeof(facts[i].model) - 1] = '\0';
		facts[i].version[sizeof(facts[i].version) - 1] = '\0';
	}
	errno = error;
	return count;
}
