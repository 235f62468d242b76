/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See tracepoint.h. tracefs says which number and layout it has. Where tracefs is not mounted, it
 * is mounted for kymo alone (fsmount(2)): no path leads to it.
 */
#include "outside/tracepoint.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EVENT             "events/sched/sched_waking"
#define FSCONFIG_CREATE   6
#define INITIAL_NAMESPACE 0xeffffffcu /* number of the first PID namespace (linux/proc_ns.h) */
#define TEXT_BYTES_MAX    4096

/* A directory in which EVENT is, or -1. */
static int open_tracefs(void)
{
	static const char *const places[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
	int context, mounted = -1;

	for (unsigned i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		int place = open(places[i], O_PATH | O_DIRECTORY | O_CLOEXEC);

		if (place >= 0 && !faccessat(place, EVENT, R_OK, 0))
			return place;
		if (place >= 0)
			close(place);
	}
	context = (int)syscall(SYS_fsopen, "tracefs", 1 /* FSOPEN_CLOEXEC */);
	if (context < 0)
		return -1;
	if (!syscall(SYS_fsconfig, context, FSCONFIG_CREATE, NULL, NULL, 0))
		mounted = (int)syscall(SYS_fsmount, context, 1 /* FSMOUNT_CLOEXEC */, 0);
	close(context);
	return mounted;
}

static bool read_text(int directory, const char *name, char text[TEXT_BYTES_MAX])
{
	int file = openat(directory, name, O_RDONLY | O_CLOEXEC);
	ssize_t length;

	if (file < 0)
		return false;
	length = read(file, text, TEXT_BYTES_MAX - 1);
	close(file);
	text[length > 0 ? length : 0] = '\0';
	return length > 0;
}

/* The kernel's data have numbers of the first PID namespace, samples those of kymo's. */
static bool is_in_first_pid_namespace(void)
{
	struct stat status;

	return !stat("/proc/self/ns/pid", &status) && status.st_ino == INITIAL_NAMESPACE;
}

struct outside_tracepoint outside_tracepoint_find_waking(void)
{
	struct outside_tracepoint found = {0};
	char text[TEXT_BYTES_MAX];
	const char *field;
	int tracefs;

	if (!is_in_first_pid_namespace()) {
		found.why_not =
			"kymo runs in a PID namespace, and the kernel's scheduler events do "
			"not have its numbers";
		return found;
	}
	tracefs = open_tracefs();
	if (tracefs < 0 || !read_text(tracefs, EVENT "/id", text)) {
		found.why_not = "the tracepoint sched:sched_waking cannot be read: tracefs is "
				"root's, or this kernel has none";
	} else {
		found.id = strtoull(text, NULL, 10);
		field = read_text(tracefs, EVENT "/format", text)
				? strstr(text, "field:pid_t pid;\toffset:")
				: NULL;
		found.pid_offset = field ? (uint32_t)strtoul(strchr(field, '\t') + 8, NULL, 10) : 0;
		if (!found.pid_offset) {
			found.id = 0;
			found.why_not = "the tracepoint sched:sched_waking has another layout";
		}
	}
	if (tracefs >= 0)
		close(tracefs);
	return found;
}
