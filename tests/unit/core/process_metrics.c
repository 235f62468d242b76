/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What is recorded about the process as a whole, compared with what the system says.
 */
#include "unit/core/core_test.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "core/base/ticks.h"
#include "core/process_metrics.h"
#include "unit/core/spool_read.h"
#include "unit/core/spool_test.h"

static struct spool_writer spool;
static struct process_records track;

static int set_up(void **state)
{
	if (test_directory_create(state))
		return -1;
	spool_test_start(&spool, *state, 0, false);
	return process_records_init(&track, &spool);
}

static int tear_down(void **state)
{
	close(spool.fd);
	spool_unmap_old_run(&spool);
	return test_directory_remove(state);
}

static void check_process(const struct spool_read_record *record, void *context)
{
	struct spool_fields fields = spool_fields(record);
	char buffer[4096], name[256];
	const char *text;
	ssize_t length;
	size_t size;

	assert_int_equal(record->kind, SPOOL_RECORD_PROCESS);
	assert_int_equal(spool_field_unsigned(&fields), getpid());
	assert_int_equal(spool_field_unsigned(&fields), getppid());
	assert_int_equal(spool_field_unsigned(&fields), getuid());
	assert_int_equal(spool_field_unsigned(&fields), getgid());
	length = readlink("/proc/self/exe", buffer, sizeof(buffer) - 1);
	assert_true(length > 0);
	buffer[length] = 0;
	assert_string_equal(spool_field_string(&fields, NULL), buffer);
	text = spool_field_string(&fields, &size);
	assert_int_equal(size, strlen(text)); /* one argument: no zero in it or after it */
	assert_non_null(strstr(text, "process_metrics"));
	assert_non_null(getcwd(buffer, sizeof(buffer)));
	assert_string_equal(spool_field_string(&fields, NULL), buffer);
	assert_int_equal(gethostname(name, sizeof(name)), 0);
	assert_string_equal(spool_field_string(&fields, NULL), name);
	text = spool_field_string(&fields, &size);
	assert_int_equal(size, sizeof("KYMO_ONE=1\0KYMO_TWO=") - 1);
	assert_memory_equal(text, "KYMO_ONE=1\0KYMO_TWO=", size);
	assert_ptr_equal(fields.at, fields.end);
	++*(int *)context;
}

static void the_process_is_described_as_the_system_does(void **state)
{
	static char *const environment[] = {"PATH=/bin", "KYMO_ONE=1", "KYMOTHREE=3",
					    "KYMO_TWO=", "MY_KYMO_X=", NULL};
	int records = 0;

	process_metrics_write_identity(&track, (uint32_t)getpid(), (uint32_t)getppid(),
				       environment);
	spool_read(spool_test_path(*state, 0), check_process, &records);
	assert_int_equal(records, 1);
}

struct metrics {
	uint64_t value[SPOOL_HOST_CPU_FREQUENCY_KHZ + 64];
	bool known[SPOOL_HOST_CPU_FREQUENCY_KHZ + 64];
};

static void read_metrics(const struct spool_read_record *record, void *context)
{
	struct spool_fields fields = spool_fields(record);
	struct metrics *metrics = context;
	uint64_t count;

	assert_int_equal(record->kind, SPOOL_RECORD_PROCESS_METRICS);
	assert_in_range(spool_field_fixed(&fields), spool.header->start_ticks, ticks_now());
	count = spool_field_unsigned(&fields);
	for (uint64_t i = 0; i < count; i++) {
		uint64_t metric = spool_field_unsigned(&fields);
		assert_true(metric < LENGTH(metrics->value));
		assert_false(metrics->known[metric]);
		metrics->known[metric] = true;
		metrics->value[metric] = spool_field_unsigned(&fields);
	}
	assert_ptr_equal(fields.at, fields.end);
}

static uint64_t time_ns(struct timeval time)
{
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_usec * 1000;
}

/* Uses memory, CPU time and I/O, so that no metric is zero. */
static void be_busy(void)
{
	clock_t end = clock() + CLOCKS_PER_SEC / 50;
	FILE *null = fopen("/dev/null", "w");
	char *memory = malloc(8 << 20);

	assert_non_null(null);
	memset(memory, 1, 8 << 20);
	while (clock() < end)
		fprintf(null, "%p", (void *)memory);
	fclose(null);
	free(memory);
}

static void *be_busy_elsewhere(void *argument)
{
	be_busy();
	return argument;
}

/* The helper is another process, which is told less than the process has noted of itself. */
static void metrics_lie_between_two_readings_of_getrusage(void **state)
{
	struct metrics metrics = {0};
	struct rusage before, after;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, be_busy_elsewhere, NULL), 0);
	pthread_join(thread, NULL);
	getrusage(RUSAGE_SELF, &before);
	process_usage_update();
	process_metrics_write_record(&track, 0);
	getrusage(RUSAGE_SELF, &after);
	spool_read(spool_test_path(*state, 0), read_metrics, &metrics);
#define BETWEEN(metric, low, high)                                                                 \
	do {                                                                                       \
		assert_true(metrics.known[metric]);                                                \
		assert_in_range(metrics.value[metric], (uint64_t)(low), (uint64_t)(high));         \
	} while (0)
	BETWEEN(SPOOL_PROCESS_PEAK_RSS_BYTES, before.ru_maxrss * 1024, after.ru_maxrss * 1024);
	BETWEEN(SPOOL_PROCESS_MINOR_FAULTS, before.ru_minflt, after.ru_minflt);
	BETWEEN(SPOOL_PROCESS_MAJOR_FAULTS, before.ru_majflt, after.ru_majflt);
	BETWEEN(SPOOL_PROCESS_VOLUNTARY_SWITCHES, before.ru_nvcsw, after.ru_nvcsw);
	BETWEEN(SPOOL_PROCESS_INVOLUNTARY_SWITCHES, before.ru_nivcsw, after.ru_nivcsw);
	BETWEEN(SPOOL_PROCESS_USER_NS, time_ns(before.ru_utime), time_ns(after.ru_utime));
	BETWEEN(SPOOL_PROCESS_SYSTEM_NS, time_ns(before.ru_stime), time_ns(after.ru_stime));
	BETWEEN(SPOOL_PROCESS_RSS_BYTES, 1 << 20, UINT64_MAX);
	BETWEEN(SPOOL_PROCESS_VIRTUAL_BYTES, metrics.value[SPOOL_PROCESS_RSS_BYTES], UINT64_MAX);
	BETWEEN(SPOOL_HOST_CPU_TOTAL_NS, metrics.value[SPOOL_HOST_CPU_BUSY_NS], UINT64_MAX);
}

/* "VmRSS" and the like in kB. */
static uint64_t status_number(const char *key)
{
	FILE *status = fopen("/proc/self/status", "r");
	unsigned long long value = 0;
	char line[256];

	assert_non_null(status);
	while (fgets(line, sizeof(line), status)) {
		if (!strncmp(line, key, strlen(key)))
			sscanf(line + strlen(key), ": %llu", &value);
	}
	fclose(status);
	return value;
}

static void memory_is_what_proc_status_says(void **state)
{
	struct metrics metrics = {0};
	uint64_t size = status_number("VmSize") << 10;

	process_metrics_write_record(&track, 0);
	spool_read(spool_test_path(*state, 0), read_metrics, &metrics);
	assert_in_range(metrics.value[SPOOL_PROCESS_VIRTUAL_BYTES], size - (4 << 20),
			size + (4 << 20));
	assert_true(metrics.value[SPOOL_PROCESS_RSS_BYTES] <=
		    metrics.value[SPOOL_PROCESS_PEAK_RSS_BYTES] + (4 << 20));
}

static void cumulative_metrics_never_fall(void **state)
{
	static const enum spool_process_metric cumulative[] = {
		SPOOL_PROCESS_MINOR_FAULTS, SPOOL_PROCESS_USER_NS,       SPOOL_PROCESS_SYSTEM_NS,
		SPOOL_PROCESS_READ_CHARS,   SPOOL_PROCESS_WRITTEN_CHARS, SPOOL_HOST_CPU_TOTAL_NS};
	struct metrics first = {0}, second;
	struct spool_writer *writer = &spool;

	process_metrics_write_record(&track, 0);
	spool_read(spool_test_path(*state, 0), read_metrics, &first);
	be_busy();
	track.chunk->header->committed = track.chunk->written = track.used =
		0; /* read the second one only */
	memset(&second, 0, sizeof(second));
	process_metrics_write_record(&track, 0);
	assert_ptr_equal(track.spool, writer);
	spool_read(spool_test_path(*state, 0), read_metrics, &second);
	for (size_t i = 0; i < LENGTH(cumulative); i++) {
		assert_int_equal(first.known[cumulative[i]], second.known[cumulative[i]]);
		assert_true(second.value[cumulative[i]] >= first.value[cumulative[i]]);
	}
	assert_true(second.value[SPOOL_PROCESS_USER_NS] + second.value[SPOOL_PROCESS_SYSTEM_NS] >
		    first.value[SPOOL_PROCESS_USER_NS] + first.value[SPOOL_PROCESS_SYSTEM_NS]);
}

static void frequencies_are_left_out_where_there_are_none(void **state)
{
	struct metrics metrics = {0};
	bool there = access("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", R_OK) == 0;

	process_metrics_write_record(&track, 1000); /* more than fit */
	spool_read(spool_test_path(*state, 0), read_metrics, &metrics);
	assert_int_equal(metrics.known[SPOOL_HOST_CPU_FREQUENCY_KHZ], there);
}

static void the_start_time_is_the_same_each_time_and_in_the_past(void **state)
{
	uint64_t start = process_get_start_time_clock_ticks();

	(void)state;
	assert_int_equal(process_get_start_time_clock_ticks(), start);
	assert_true(start > 0);
	assert_true(start <= read_posix_clock_ns(CLOCK_BOOTTIME) / 10000000 + 1);
}

static void cpus_are_those_that_the_process_may_use(void **state)
{
	cpu_set_t set;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	assert_int_equal(process_count_allowed_cpus(), CPU_COUNT(&set));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(the_process_is_described_as_the_system_does),
		TEST(metrics_lie_between_two_readings_of_getrusage),
		TEST(memory_is_what_proc_status_says),
		TEST(cumulative_metrics_never_fall),
		TEST(frequencies_are_left_out_where_there_are_none),
		TEST(the_start_time_is_the_same_each_time_and_in_the_past),
		TEST(cpus_are_those_that_the_process_may_use),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
