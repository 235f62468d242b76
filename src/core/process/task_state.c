/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See task_state.h.
 */
#include "core/process/task_state.h"

#include <fcntl.h>
#include <string.h>

#include "common/syscalls.h"
#include "core/base/text.h"
#include "core/process/state.h"

/* The process's directory in /proc, as the helper has it open. */
static int program_proc_directory_fd = -1;

void task_state_set_program_proc_fd(int directory)
{
	program_proc_directory_fd = directory;
}

/* Reads /proc/PID/task/TID/NAME into the buffer; false when there is nothing to read. */
static bool read_task_file(uint32_t tid, const char *name, char *buffer, size_t size)
{
	char path[64];
	struct text_buffer text = text_buffer_init(path, sizeof(path));
	long fd, length;

	bool inside = kymo_process.pid == (uint32_t)sys_getpid();

	text_append_string(&text, inside ? "/proc/self/task/" : "task/");
	text_append_unsigned(&text, tid);
	text_append_string(&text, name);
	fd = sys_call4(SYS_openat, inside ? SYS_WORKING_DIRECTORY_FD : program_proc_directory_fd,
		       (long)path, O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return false;
	length = sys_read((int)fd, buffer, size - 1);
	sys_close((int)fd);
	buffer[length > 0 ? length : 0] = 0;
	return length > 0;
}

static bool parse_next_hex(const char **at, uint64_t *ret)
{
	uint64_t value = 0;
	const char *start;

	while (**at == ' ')
		++*at;
	if ((*at)[0] == '0' && (*at)[1] == 'x')
		*at += 2;
	for (start = *at;; ++*at) {
		unsigned char c = (unsigned char)**at;
		if (c >= '0' && c <= '9')
			value = value << 4 | (c - (unsigned)'0');
		else if (c >= 'a' && c <= 'f')
			value = value << 4 | (c - (unsigned)'a' + 10);
		else
			break;
	}
	*ret = value;
	return *at != start;
}

static bool parse_next_decimal(const char **at, uint64_t *ret)
{
	uint64_t value = 0;
	const char *start;

	while (**at == ' ' || **at == '\t')
		++*at;
	for (start = *at; **at >= '0' && **at <= '9'; ++*at)
		value = value * 10 + (unsigned)(**at - '0');
	*ret = value;
	return *at != start;
}

/* "running", "number arg0…arg5 sp pc", or "-1 sp pc" when it waits outside a system call. */
enum task_run_state task_read_registers_if_blocked(uint32_t tid, struct task_registers *ret)
{
	char buffer[256];
	const char *at = buffer;
	uint64_t value;

	ret->first_argument = 0;
	if (!read_task_file(tid, "/syscall", buffer, sizeof(buffer)))
		return TASK_GONE;
	if (buffer[0] == 'r')
		return TASK_RUNNABLE;
	if (buffer[0] == '-') {
		at += 2;
	} else {
		while (*at && *at != ' ')
			at++;
		for (int i = 0; i < 6; i++) {
			if (!parse_next_hex(&at, i ? &value : &ret->first_argument))
				return TASK_GONE;
		}
	}
	return parse_next_hex(&at, &ret->sp) && parse_next_hex(&at, &ret->pc) ? TASK_BLOCKED
									      : TASK_GONE;
}

/* "run-ns queued-ns arrivals"; a kernel that does not keep them has no such file, or all are 0
 * (Documentation/scheduler/sched-stats.rst). */
bool task_read_run_queue_counts(uint32_t tid, struct task_run_queue_counts *ret)
{
	char buffer[96];
	const char *at = buffer;
	uint64_t run;

	return read_task_file(tid, "/schedstat", buffer, sizeof(buffer)) &&
	       parse_next_decimal(&at, &run) && parse_next_decimal(&at, &ret->queued_ns) &&
	       parse_next_decimal(&at, &ret->arrivals) && (run || ret->queued_ns || ret->arrivals);
}

bool task_read_voluntary_switch_count(uint32_t tid, uint64_t *ret)
{
	static const char key[] = "\nvoluntary_ctxt_switches:";
	char buffer[4096];
	const char *at;

	if (!read_task_file(tid, "/status", buffer, sizeof(buffer)))
		return false;
	for (at = buffer; *at; at++) {
		if (!strncmp(at, key, sizeof(key) - 1)) {
			at += sizeof(key) - 1;
			return parse_next_decimal(&at, ret);
		}
	}
	return false;
}

/* Field 22 of /proc/PID/task/TID/stat, in ticks of 100 Hz (USER_HZ). The name, field 2, stands in
 * parentheses and may hold any character. */
bool task_read_creation_time(uint32_t tid, uint64_t *ret_ns)
{
	char buffer[512];
	const char *at;
	uint64_t ticks;

	if (!read_task_file(tid, "/stat", buffer, sizeof(buffer)))
		return false;
	at = buffer + strlen(buffer);
	while (at > buffer && *at != ')')
		at--;
	for (int field = 2; field < 22; field++) {
		while (*at && *at != ' ')
			at++;
		while (*at == ' ')
			at++;
	}
	if (!parse_next_decimal(&at, &ticks))
		return false;
	*ret_ns = ticks * 10000000ull;
	return true;
}
