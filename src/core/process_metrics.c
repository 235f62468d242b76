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

#include "common/array.h"
#include "common/syscalls.h"
#include "common/time_units.h"
#include "core/base/text.h"
#include "core/base/ticks.h"
#include "core/process/cgroup_cpu.h"
#include "core/program.h"

#define PROC_BUFFER_SIZE  8192
#define PAGE_SIZE         4096u
#define PROC_STAT_TICK_NS 10000000u /* USER_HZ is 100 in /proc on every architecture of Linux */

/* Reads a small file whole; returns its length, 0 when it cannot be read. */
static size_t read_small_file(const char *path, char *buffer, size_t size)
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

static uint64_t parse_next_number(const char **at)
{
	uint64_t value = 0;

	while (**at && (**at < '0' || **at > '9') && **at != '\n')
		++*at;
	for (; **at >= '0' && **at <= '9'; ++*at)
		value = value * 10 + (unsigned)(**at - '0');
	return value;
}

/* The number after `key` at the beginning of a line. */
static uint64_t find_number_after_line_key(const char *text, const char *key)
{
	size_t length = strlen(key);

	for (const char *at = text; *at; at++) {
		if ((at == text || at[-1] == '\n') && !strncmp(at, key, length)) {
			at += length;
			return parse_next_number(&at);
		}
	}
	return 0;
}

/* /proc/PID/stat from field 3 on: the name in field 2 may hold anything, so count from its last
 * parenthesis. */
static const char *find_stat_field(const char *text, unsigned field)
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

uint64_t process_get_start_time_clock_ticks(void)
{
	char buffer[1024];
	const char *at;

	program_read_proc_file("stat", buffer, sizeof(buffer));
	at = find_stat_field(buffer, 22);
	return parse_next_number(&at);
}

uint32_t process_count_allowed_cpus(void)
{
	uint64_t mask[128] = {0};
	long size = sys_call3(SYS_sched_getaffinity, 0, sizeof(mask), (long)mask);
	uint32_t count = 0;

	for (long i = 0; i < size / 8; i++)
		count += (uint32_t)__builtin_popcountll(mask[i]);
	return count ? count : 1;
}

static void append_link_target_to_record(struct process_records *track, const char *path)
{
	char buffer[4096];
	long length = sys_call3(SYS_readlink, (long)path, (long)buffer, sizeof(buffer));

	process_record_append_bytes(track, buffer, length > 0 ? (size_t)length : 0);
}

static void append_kymo_environment_to_record(struct process_records *track,
					      char *const *environment)
{
	char buffer[PROC_BUFFER_SIZE];
	struct text_buffer text = text_buffer_init(buffer, sizeof(buffer));

	for (; environment && *environment; environment++) {
		if (strncmp(*environment, "KYMO_", 5))
			continue;
		if (text.length)
			text_append_character(&text, '\1');
		text_append_string(&text, *environment);
	}
	for (size_t i = 0; i < text.length; i++) {
		if (buffer[i] == '\1')
			buffer[i] = 0;
	}
	process_record_append_bytes(track, buffer, text.length);
}

void process_metrics_write_identity(struct process_records *track, uint32_t pid,
				    uint32_t parent_pid, char *const *environment)
{
	static char arguments[32768];
	struct utsname name = {0};
	size_t length = program_read_proc_file("cmdline", arguments, sizeof(arguments));

	sys_call1(SYS_uname, (long)&name);
	process_record_begin(track, SPOOL_RECORD_PROCESS);
	process_record_append_unsigned(track, pid);
	process_record_append_unsigned(track, parent_pid);
	process_record_append_unsigned(track, (uint64_t)sys_call0(SYS_getuid));
	process_record_append_unsigned(track, (uint64_t)sys_call0(SYS_getgid));
	append_link_target_to_record(track, "/proc/self/exe");
	process_record_append_bytes(track, arguments,
				    length && !arguments[length - 1] ? length - 1 : length);
	append_link_target_to_record(track, "/proc/self/cwd");
	process_record_append_string(track, name.nodename);
	append_kymo_environment_to_record(track, environment);
	process_record_end_and_commit(track);
}

struct metric_list_builder {
	uint32_t count;
	struct {
		uint32_t metric_id;
		uint64_t value;
	} entry[96];
};

static void add_metric(struct metric_list_builder *list, uint32_t metric, uint64_t value)
{
	if (list->count < ARRAY_SIZE(list->entry)) {
		list->entry[list->count].metric_id = metric;
		list->entry[list->count++].value = value;
	}
}

/* ---- what only the process itself can read exactly ---- */

#define USAGE_UPDATE_THREADS_MAX                                                                   \
	1000u /* the kernel adds up all threads, under a lock that they all take */

_Atomic uint32_t process_usage_update_requested;

static struct {
	_Atomic uint32_t lock;
	uint64_t peak_resident_bytes, minor_fault_count, major_fault_count, voluntary_switch_count,
		involuntary_switch_count, user_ns, system_ns;
} latest_process_usage;

static bool process_usage_try_lock(void)
{
	return !atomic_exchange_explicit(&latest_process_usage.lock, 1, memory_order_acquire);
}

static void process_usage_unlock(void)
{
	atomic_store_explicit(&latest_process_usage.lock, 0, memory_order_release);
}

void process_usage_update(void)
{
	struct rusage usage;

	atomic_store_explicit(&process_usage_update_requested, 0, memory_order_relaxed);
	if (!process_usage_try_lock())
		return;
	if (!sys_call2(SYS_getrusage, RUSAGE_SELF, (long)&usage)) {
		latest_process_usage.peak_resident_bytes = (uint64_t)usage.ru_maxrss * 1024;
		latest_process_usage.minor_fault_count = (uint64_t)usage.ru_minflt;
		latest_process_usage.major_fault_count = (uint64_t)usage.ru_majflt;
		latest_process_usage.voluntary_switch_count = (uint64_t)usage.ru_nvcsw;
		latest_process_usage.involuntary_switch_count = (uint64_t)usage.ru_nivcsw;
		latest_process_usage.user_ns = timeval_to_ns(&usage.ru_utime);
		latest_process_usage.system_ns = timeval_to_ns(&usage.ru_stime);
	}
	process_usage_unlock();
}

void process_usage_reset(void)
{
	memset(&latest_process_usage, 0, sizeof(latest_process_usage));
	process_usage_update_requested = 0;
}

static uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Anybody may read the faults and, in ticks, of the times; of the switches of the first
 * thread alone. The rest the process itself notes when it takes a sample: none of it can be larger
 * than the truth, so the larger one counts. */
static void add_usage_metrics(struct metric_list_builder *list, char *buffer, uint32_t *ret_threads)
{
	uint64_t field[21] = {0}, voluntary, involuntary, peak;
	const char *at;

	program_read_proc_file("stat", buffer, PROC_BUFFER_SIZE);
	at = find_stat_field(buffer, 9);
	for (int i = 9; i <= 20 && *at; i++)
		field[i] = parse_next_number(&at);
	program_read_proc_file("status", buffer, PROC_BUFFER_SIZE);
	peak = find_number_after_line_key(buffer, "VmHWM:") * 1024;
	voluntary = find_number_after_line_key(buffer, "voluntary_ctxt_switches:");
	involuntary = find_number_after_line_key(buffer, "nonvoluntary_ctxt_switches:");
	while (!process_usage_try_lock())
		sys_call0(SYS_sched_yield);
	add_metric(list, SPOOL_PROCESS_PEAK_RSS_BYTES,
		   max_u64(peak, latest_process_usage.peak_resident_bytes));
	add_metric(list, SPOOL_PROCESS_MINOR_FAULTS,
		   max_u64(field[10], latest_process_usage.minor_fault_count));
	add_metric(list, SPOOL_PROCESS_MAJOR_FAULTS,
		   max_u64(field[12], latest_process_usage.major_fault_count));
	add_metric(list, SPOOL_PROCESS_VOLUNTARY_SWITCHES,
		   max_u64(voluntary, latest_process_usage.voluntary_switch_count));
	add_metric(list, SPOOL_PROCESS_INVOLUNTARY_SWITCHES,
		   max_u64(involuntary, latest_process_usage.involuntary_switch_count));
	add_metric(list, SPOOL_PROCESS_USER_NS,
		   max_u64(field[14] * PROC_STAT_TICK_NS, latest_process_usage.user_ns));
	add_metric(list, SPOOL_PROCESS_SYSTEM_NS,
		   max_u64(field[15] * PROC_STAT_TICK_NS, latest_process_usage.system_ns));
	process_usage_unlock();
	*ret_threads = (uint32_t)field[20];
}

static void add_memory_metrics(struct metric_list_builder *list, char *buffer)
{
	const char *at = buffer;

	if (!program_read_proc_file("statm", buffer, PROC_BUFFER_SIZE))
		return;
	add_metric(list, SPOOL_PROCESS_VIRTUAL_BYTES, parse_next_number(&at) * PAGE_SIZE);
	add_metric(list, SPOOL_PROCESS_RSS_BYTES, parse_next_number(&at) * PAGE_SIZE);
}

static void add_io_metrics(struct metric_list_builder *list, char *buffer)
{
	static const struct {
		const char *key;
		uint32_t metric_id;
	} fields[] = {{"rchar:", SPOOL_PROCESS_READ_CHARS},
		      {"wchar:", SPOOL_PROCESS_WRITTEN_CHARS},
		      {"read_bytes:", SPOOL_PROCESS_READ_BYTES},
		      {"write_bytes:", SPOOL_PROCESS_WRITTEN_BYTES}};

	if (!program_read_proc_file("io", buffer, PROC_BUFFER_SIZE))
		return;
	for (int i = 0; i < 4; i++)
		add_metric(list, fields[i].metric_id,
			   find_number_after_line_key(buffer, fields[i].key));
}

/* First line of /proc/stat: user nice system idle iowait irq softirq steal, in ticks. */
static void add_host_cpu_metrics(struct metric_list_builder *list, char *buffer)
{
	uint64_t value[8], total = 0;
	const char *at = buffer;

	if (!read_small_file("/proc/stat", buffer, PROC_BUFFER_SIZE))
		return;
	for (int i = 0; i < 8; i++)
		total += value[i] = parse_next_number(&at);
	add_metric(list, SPOOL_HOST_CPU_TOTAL_NS, total * PROC_STAT_TICK_NS);
	add_metric(list, SPOOL_HOST_CPU_BUSY_NS, (total - value[3] - value[4]) * PROC_STAT_TICK_NS);
}

static void add_cpu_frequency_metric(struct metric_list_builder *list, char *buffer, uint32_t cpu)
{
	char path[96];
	struct text_buffer text = text_buffer_init(path, sizeof(path));
	const char *at = buffer;

	text_append_string(&text, "/sys/devices/system/cpu/cpu");
	text_append_unsigned(&text, cpu);
	text_append_string(&text, "/cpufreq/scaling_cur_freq");
	if (read_small_file(path, buffer, PROC_BUFFER_SIZE))
		add_metric(list, SPOOL_HOST_CPU_FREQUENCY_KHZ + cpu, parse_next_number(&at));
}

static void add_cpu_limit_metrics(struct metric_list_builder *list)
{
	struct cgroup_cpu_limits cgroup;

	if (!cgroup_cpu_read(&cgroup))
		return;
	add_metric(list, SPOOL_CGROUP_CPU_LIMIT, cgroup.limit_millicpus);
	add_metric(list, SPOOL_CGROUP_PERIODS, cgroup.enforcement_period_count);
	add_metric(list, SPOOL_CGROUP_THROTTLED_PERIODS, cgroup.throttled_period_count);
	add_metric(list, SPOOL_CGROUP_THROTTLED_NS, cgroup.throttled_ns);
}

void process_metrics_write_record(struct process_records *track, uint32_t frequency_cpus)
{
	static char buffer[PROC_BUFFER_SIZE];
	static struct metric_list_builder list;
	uint32_t threads = 0;

	list.count = 0;
	add_usage_metrics(&list, buffer, &threads);
	add_memory_metrics(&list, buffer);
	add_metric(&list, SPOOL_PROCESS_THREADS, threads);
	add_io_metrics(&list, buffer);
	add_host_cpu_metrics(&list, buffer);
	add_cpu_limit_metrics(&list);
	for (uint32_t cpu = 0; cpu < frequency_cpus && cpu < 64; cpu++)
		add_cpu_frequency_metric(&list, buffer, cpu);
	if (threads < USAGE_UPDATE_THREADS_MAX)
		atomic_store_explicit(&process_usage_update_requested, 1, memory_order_relaxed);
	process_record_begin(track, SPOOL_RECORD_PROCESS_METRICS);
	process_record_append_fixed64(track, ticks_now());
	process_record_append_unsigned(track, list.count);
	for (uint32_t i = 0; i < list.count; i++) {
		process_record_append_unsigned(track, list.entry[i].metric_id);
		process_record_append_unsigned(track, list.entry[i].value);
	}
	process_record_end_and_commit(track);
}
