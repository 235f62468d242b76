/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See process_metrics.h; file formats in proc(5).
 */
#include "core/process_metrics.h"

#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#include "common/syscalls.h"
#include "core/text.h"
#include "core/ticks.h"

#define BUFFER_SIZE  8192
#define PAGE_SIZE    4096u
#define STAT_TICK_NS 10000000u /* USER_HZ is 100 in /proc on every architecture of Linux */

/* Reads a small file whole; returns its length, 0 when it cannot be read. */
static size_t read_file(const char *path, char *buffer, size_t size)
{
	long fd = sys_open(path, O_RDONLY | O_CLOEXEC, 0), count;
	size_t length = 0;

	buffer[0] = 0;
	if (fd < 0)
		return 0;
	while (length + 1 < size &&
	       (count = sys_read((int)fd, buffer + length, size - length - 1)) > 0)
		length += (size_t)count;
	sys_close((int)fd);
	buffer[length] = 0;
	return length;
}

static uint64_t parse_number(const char **at)
{
	uint64_t value = 0;

	while (**at && (**at < '0' || **at > '9') && **at != '\n')
		++*at;
	for (; **at >= '0' && **at <= '9'; ++*at)
		value = value * 10 + (unsigned)(**at - '0');
	return value;
}

/* The number after `key` at the beginning of a line. */
static uint64_t number_after(const char *text, const char *key)
{
	size_t length = strlen(key);

	for (const char *at = text; *at; at++) {
		if ((at == text || at[-1] == '\n') && !strncmp(at, key, length)) {
			at += length;
			return parse_number(&at);
		}
	}
	return 0;
}

/* /proc/self/stat from field 3 on: the name in field 2 may hold anything, so count from its last
 * parenthesis. */
static const char *stat_field(const char *text, unsigned field)
{
	const char *at = text, *last = NULL;

	for (; *at; at++) {
		if (*at == ')')
			last = at;
	}
	if (!last)
		return "";
	at = last + 1;
	for (unsigned i = 2; i < field && *at; at++) {
		if (*at == ' ')
			i++;
	}
	return at;
}

uint64_t process_metrics_start_time(void)
{
	char buffer[1024];
	const char *at;

	read_file("/proc/self/stat", buffer, sizeof(buffer));
	at = stat_field(buffer, 22);
	return parse_number(&at);
}

uint32_t process_metrics_cpus(void)
{
	uint64_t mask[128] = {0};
	long size = sys_call3(SYS_sched_getaffinity, 0, sizeof(mask), (long)mask);
	uint32_t count = 0;

	for (long i = 0; i < size / 8; i++)
		count += (uint32_t)__builtin_popcountll(mask[i]);
	return count ? count : 1;
}

static void write_link(struct track *track, const char *path)
{
	char buffer[4096];
	long length = sys_call3(SYS_readlink, (long)path, (long)buffer, sizeof(buffer));

	track_bytes(track, buffer, length > 0 ? (size_t)length : 0);
}

static void write_session_environment(struct track *track, char *const *environment)
{
	char buffer[BUFFER_SIZE];
	struct text text = text_on(buffer, sizeof(buffer));

	for (; environment && *environment; environment++) {
		if (strncmp(*environment, "KYMO_", 5))
			continue;
		if (text.length)
			text_character(&text, '\1');
		text_string(&text, *environment);
	}
	for (size_t i = 0; i < text.length; i++) {
		if (buffer[i] == '\1')
			buffer[i] = 0;
	}
	track_bytes(track, buffer, text.length);
}

void process_metrics_describe(struct track *track, char *const *environment)
{
	static char arguments[32768];
	struct utsname name = {0};
	size_t length = read_file("/proc/self/cmdline", arguments, sizeof(arguments));

	sys_call1(SYS_uname, (long)&name);
	track_begin(track, SPOOL_RECORD_PROCESS);
	track_unsigned(track, (uint64_t)sys_getpid());
	track_unsigned(track, (uint64_t)sys_call0(SYS_getppid));
	track_unsigned(track, (uint64_t)sys_call0(SYS_getuid));
	track_unsigned(track, (uint64_t)sys_call0(SYS_getgid));
	write_link(track, "/proc/self/exe");
	track_bytes(track, arguments, length && !arguments[length - 1] ? length - 1 : length);
	write_link(track, "/proc/self/cwd");
	track_string(track, name.nodename);
	write_session_environment(track, environment);
	track_end(track);
}

struct metric_list {
	uint32_t count;
	struct {
		uint32_t metric;
		uint64_t value;
	} entry[96];
};

static void add(struct metric_list *list, uint32_t metric, uint64_t value)
{
	if (list->count < sizeof(list->entry) / sizeof(list->entry[0])) {
		list->entry[list->count].metric = metric;
		list->entry[list->count++].value = value;
	}
}

static uint64_t timeval_ns(const struct timeval *time)
{
	return (uint64_t)time->tv_sec * 1000000000u + (uint64_t)time->tv_usec * 1000u;
}

/* What kymo's own thread, which calls this, took is not the program's: its readings alone are
 * thousands of switches. */
static void add_usage(struct metric_list *list)
{
	struct rusage usage, own;

	/* The part before the whole: no difference can be below 0. */
	if (sys_call2(SYS_getrusage, RUSAGE_THREAD, (long)&own) ||
	    sys_call2(SYS_getrusage, RUSAGE_SELF, (long)&usage))
		return;
	usage.ru_minflt -= own.ru_minflt;
	usage.ru_majflt -= own.ru_majflt;
	usage.ru_nvcsw -= own.ru_nvcsw;
	usage.ru_nivcsw -= own.ru_nivcsw;
	add(list, SPOOL_PROCESS_PEAK_RSS_BYTES, (uint64_t)usage.ru_maxrss * 1024);
	add(list, SPOOL_PROCESS_MINOR_FAULTS, (uint64_t)usage.ru_minflt);
	add(list, SPOOL_PROCESS_MAJOR_FAULTS, (uint64_t)usage.ru_majflt);
	add(list, SPOOL_PROCESS_VOLUNTARY_SWITCHES, (uint64_t)usage.ru_nvcsw);
	add(list, SPOOL_PROCESS_INVOLUNTARY_SWITCHES, (uint64_t)usage.ru_nivcsw);
	add(list, SPOOL_PROCESS_USER_NS, timeval_ns(&usage.ru_utime));
	add(list, SPOOL_PROCESS_SYSTEM_NS, timeval_ns(&usage.ru_stime));
}

static void add_memory(struct metric_list *list, char *buffer)
{
	const char *at = buffer;

	if (!read_file("/proc/self/statm", buffer, BUFFER_SIZE))
		return;
	add(list, SPOOL_PROCESS_VIRTUAL_BYTES, parse_number(&at) * PAGE_SIZE);
	add(list, SPOOL_PROCESS_RSS_BYTES, parse_number(&at) * PAGE_SIZE);
}

static void add_threads(struct metric_list *list, char *buffer)
{
	const char *at;
	uint64_t threads;

	if (!read_file("/proc/self/stat", buffer, BUFFER_SIZE))
		return;
	at = stat_field(buffer, 20);
	threads = parse_number(&at);
	add(list, SPOOL_PROCESS_THREADS,
	    threads ? threads - 1 : 0); /* kymo's own thread is not the program's */
}

static void add_io(struct metric_list *list, char *buffer)
{
	static const struct {
		const char *key;
		uint32_t metric;
	} fields[] = {{"rchar:", SPOOL_PROCESS_READ_CHARS},
		      {"wchar:", SPOOL_PROCESS_WRITTEN_CHARS},
		      {"read_bytes:", SPOOL_PROCESS_READ_BYTES},
		      {"write_bytes:", SPOOL_PROCESS_WRITTEN_BYTES}};
	uint64_t own[4], value;

	if (!read_file("/proc/thread-self/io", buffer, BUFFER_SIZE))
		return;
	for (int i = 0; i < 4; i++)
		own[i] = number_after(buffer, fields[i].key);
	if (!read_file("/proc/self/io", buffer, BUFFER_SIZE))
		return;
	for (int i = 0; i < 4; i++) {
		value = number_after(buffer, fields[i].key);
		add(list, fields[i].metric, value > own[i] ? value - own[i] : 0);
	}
}

/* First line of /proc/stat: user nice system idle iowait irq softirq steal, in ticks. */
static void add_host(struct metric_list *list, char *buffer)
{
	uint64_t value[8], total = 0;
	const char *at = buffer;

	if (!read_file("/proc/stat", buffer, BUFFER_SIZE))
		return;
	for (int i = 0; i < 8; i++)
		total += value[i] = parse_number(&at);
	add(list, SPOOL_HOST_CPU_TOTAL_NS, total * STAT_TICK_NS);
	add(list, SPOOL_HOST_CPU_BUSY_NS, (total - value[3] - value[4]) * STAT_TICK_NS);
}

static void add_frequency(struct metric_list *list, char *buffer, uint32_t cpu)
{
	char path[96];
	struct text text = text_on(path, sizeof(path));
	const char *at = buffer;

	text_string(&text, "/sys/devices/system/cpu/cpu");
	text_unsigned(&text, cpu);
	text_string(&text, "/cpufreq/scaling_cur_freq");
	if (read_file(path, buffer, BUFFER_SIZE))
		add(list, SPOOL_HOST_CPU_FREQUENCY_KHZ + cpu, parse_number(&at));
}

void process_metrics_write(struct track *track, uint32_t frequency_cpus)
{
	static char buffer[BUFFER_SIZE];
	static struct metric_list list;

	list.count = 0;
	add_usage(&list);
	add_memory(&list, buffer);
	add_threads(&list, buffer);
	add_io(&list, buffer);
	add_host(&list, buffer);
	for (uint32_t cpu = 0; cpu < frequency_cpus && cpu < 64; cpu++)
		add_frequency(&list, buffer, cpu);
	track_begin(track, SPOOL_RECORD_PROCESS_METRICS);
	track_fixed(track, ticks_now());
	track_unsigned(track, list.count);
	for (uint32_t i = 0; i < list.count; i++) {
		track_unsigned(track, list.entry[i].metric);
		track_unsigned(track, list.entry[i].value);
	}
	track_end(track);
}
