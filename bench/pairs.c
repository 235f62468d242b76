/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What sampling costs a program, measured within one process: units of real work (liblzma, SQLite,
 * the compiler's own arithmetic) with sampling on or off in random order, CPU time, median of the
 * paired differences. Whole programs run one after the other scatter by far more than the effect on
 * a shared machine.
 *
 * Rows: nothing (A/A, the resolution of the method), kymo at three rates, the same event and
 * handler with libunwind's unw_step loop in place of kymo's walk (what profilers of this kind do),
 * gperftools, and the kernel's share alone (the same event with an empty handler).
 *
 * usage: pairs [PAIRS]
 */
#include <dlfcn.h>
#include <linux/perf_event.h>
#include <lzma.h>
#include <math.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "common/array.h"
#include "core/runtime.h"
#include "core/sources.h"

enum { WORKLOADS = 3, INPUT_SIZE = 128 << 10 };

static uint8_t input[INPUT_SIZE], output[2 * INPUT_SIZE];
static sqlite3 *database;
static volatile double sink;

static uint64_t cpu_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* ---- units of work, some milliseconds each ---- */

static void work_lzma(void)
{
	size_t length = 0;

	lzma_easy_buffer_encode(1, LZMA_CHECK_CRC32, NULL, input, sizeof(input), output, &length,
				sizeof(output));
}

static void work_sqlite(void)
{
	sqlite3_exec(database,
		     "select b % 100, count(*), max(c), avg(b) from t where c like '%7%' group by "
		     "1 order by 2 desc",
		     NULL, NULL, NULL);
}

static double recurse(int depth, double x)
{
	return depth ? recurse(depth - 1, x * 1.0000001) + 1e-9 : x;
}

static void work_recursion(void)
{
	for (int i = 0; i < 30000; i++)
		sink += recurse(40, i);
}

static void (*const work[WORKLOADS])(void) = {work_lzma, work_sqlite, work_recursion};
static const char *const work_names[WORKLOADS] = {"liblzma", "sqlite", "recursion"};

static void prepare_work(void)
{
	uint32_t random = 1;

	for (size_t i = 0; i < sizeof(input); i++) {
		random = random * 1664525u + 1013904223u;
		input[i] = (uint8_t)("etaoin shrdlu"[(random >> 24) % 13]);
	}
	sqlite3_open(":memory:", &database);
	sqlite3_exec(
		database,
		"create table t(a integer primary key, b int, c text);"
		"with recursive n(i) as (select 1 union all select i + 1 from n where i < 12000)"
		"insert into t select i, (i * 7919) % 100003, printf('row%d_%d', i, (i * 31) % "
		"977) from n;",
		NULL, NULL, NULL);
}

/* ---- what is switched on and off ---- */

struct row {
	const char *name;
	int hertz;
	int (*start)(int hertz); /* 0: available */
	void (*enable)(int on);
	uint64_t (*count)(void);
};

static int kymo_start(int hertz)
{
	if (!runtime_is_active())
		return -1;
	kymo_runtime.options.cpu.on = false;
	kymo_runtime.sampler.period = 1000000000u / (uint64_t)hertz;
	kymo_runtime.options.overhead_limit_fraction = 0;
	return 0;
}

/* The background thread follows the option at its next round; a flush is one. */
static void kymo_enable(int on)
{
	kymo_runtime.options.cpu.on = on;
	background_request_flush_and_wait(&kymo_runtime.background, 1000000000u);
	if (on)
		sources_randomize_period_of_thread(&kymo_runtime, kymo_thread);
}

static uint64_t kymo_count(void)
{
	return kymo_thread->sample_count;
}

static int event_fd = -1;
static uint64_t event_count;
static int (*lu_init)(void *, void *, int), (*lu_step)(void *), (*lu_get)(void *, int, uint64_t *);

static void empty_handler(int signal, siginfo_t *information, void *context)
{
	(void)signal;
	(void)information;
	(void)context;
	event_count++;
}

static void step_handler(int signal, siginfo_t *information, void *context)
{
	static uint64_t frames[512];
	uint64_t cursor[256];
	int count = 0;

	(void)signal;
	(void)information;
	event_count++;
	if (lu_init(cursor, context, 1))
		return;
	do
		lu_get(cursor, 16, &frames[count++]);
	while (count < 512 && lu_step(cursor) > 0);
}

/* The same event as kymo's best source, on SIGPROF's handler table entry of its own. */
static int event_start(int hertz, void (*handler)(int, siginfo_t *, void *))
{
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART};
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .config = PERF_COUNT_SW_TASK_CLOCK,
				       .size = sizeof(attr),
				       .sample_period = 1000000000u / (unsigned)hertz,
				       .disabled = 1,
				       .sigtrap = 1,
				       .remove_on_exec = 1,
				       .wakeup_events = 1};

	sigaction(SIGTRAP, &action, NULL);
	if (event_fd >= 0)
		close(event_fd);
	event_fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	event_count = 0;
	return event_fd < 0 ? -1 : 0;
}

static int empty_start(int hertz)
{
	return event_start(hertz, empty_handler);
}

static int step_start(int hertz)
{
	void *library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);

	if (!library)
		return -1;
	lu_init = (int (*)(void *, void *, int))dlsym(library, "_ULx86_64_init_local2");
	lu_step = (int (*)(void *))dlsym(library, "_ULx86_64_step");
	lu_get = (int (*)(void *, int, uint64_t *))dlsym(library, "_ULx86_64_get_reg");
	return lu_init && lu_step && lu_get ? event_start(hertz, step_handler) : -1;
}

static void event_enable(int on)
{
	ioctl(event_fd, on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
}

static uint64_t event_counted(void)
{
	return event_count;
}

static int (*gperf_begin)(const char *);
static void (*gperf_end)(void);

static int gperf_start(int hertz)
{
	char number[16];
	void *library;

	snprintf(number, sizeof(number), "%d", hertz);
	setenv("CPUPROFILE_FREQUENCY", number, 1);
	if (!freopen("/dev/null", "w", stderr)) /* it reports every stop */
		return -1;
	library = dlopen("libprofiler.so.0", RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return -1;
	gperf_begin = (int (*)(const char *))dlsym(library, "ProfilerStart");
	gperf_end = (void (*)(void))dlsym(library, "ProfilerStop");
	return gperf_begin && gperf_end ? 0 : -1;
}

static void gperf_enable(int on)
{
	if (on)
		gperf_begin("/dev/null");
	else
		gperf_end();
}

static int nothing_start(int hertz)
{
	(void)hertz;
	return 0;
}

static void nothing_enable(int on)
{
	(void)on;
}

static uint64_t nothing_count(void)
{
	return 0;
}

static const struct row rows[] = {
	{"nothing (A/A)", 1000, nothing_start, nothing_enable, nothing_count},
	{"kymo", 100, kymo_start, kymo_enable, kymo_count},
	{"kymo", 1000, kymo_start, kymo_enable, kymo_count},
	{"kymo", 10000, kymo_start, kymo_enable, kymo_count},
	{"event alone, empty handler", 100, empty_start, event_enable, event_counted},
	{"event alone, empty handler", 1000, empty_start, event_enable, event_counted},
	{"event alone, empty handler", 10000, empty_start, event_enable, event_counted},
	{"libunwind unw_step", 1000, step_start, event_enable, event_counted},
	{"libunwind unw_step", 10000, step_start, event_enable, event_counted},
	{"gperftools (tick-limited)", 100, gperf_start, gperf_enable, nothing_count},
	{"gperftools (tick-limited)", 1000, gperf_start, gperf_enable, nothing_count},
};

/* ---- measuring ---- */

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *values, int count)
{
	qsort(values, (size_t)count, sizeof(*values), compare);
	return values[count / 2];
}

static double timed(void (*unit)(void))
{
	uint64_t start = cpu_ns();

	unit();
	return (double)(cpu_ns() - start);
}

static void measure(const struct row *row, int index, int pairs)
{
	double *difference = calloc((size_t)pairs, sizeof(double)),
	       *off = calloc((size_t)pairs, sizeof(double));
	double cost, base;
	uint64_t before = row->count(), samples;

	for (int i = 0; i < pairs; i++) {
		double with = 0;
		int first = rand() & 1;
		for (int k = 0; k < 2; k++) {
			if (k == first) {
				row->enable(1);
				with = timed(work[index]);
				row->enable(0);
			} else {
				off[i] = timed(work[index]);
			}
		}
		difference[i] = with - off[i];
	}
	samples = row->count() - before;
	cost = median(difference, pairs);
	base = median(off, pairs);
	if (!samples && row->count != nothing_count) /* what was measured is noise */
		printf("  no sample: no cost ");
	else if (samples)
		printf("  %6.2f %% (%4.1f us)", 100 * cost / base,
		       cost * pairs / (double)samples / 1e3);
	else
		printf("  %6.2f %%          ", 100 * cost / base);
	fflush(stdout);
	free(difference);
	free(off);
}

int main(int argc, char **argv)
{
	int pairs = argc > 1 ? atoi(argv[1]) : 60;
	char directory[] = "/tmp/kymo-bench-XXXXXX", variable[64], command[64];
	char *environment[] = {variable, "KYMO_SAMPLING_SOURCE=perf", NULL};

	if (!mkdtemp(directory))
		return 1;
	snprintf(variable, sizeof(variable), "KYMO_SPOOL_DIRECTORY=%s", directory);
	prepare_work();
	for (int i = 0; i < WORKLOADS; i++) {
		for (int k = 0; k < 5; k++)
			work[i]();
	}
	printf("CPU time added by sampling, median of %d pairs (microseconds a sample)\n%-28s %6s",
	       pairs, "", "Hz");
	for (int i = 0; i < WORKLOADS; i++)
		printf("  %-19s", work_names[i]);
	printf("\n");
	/* The runtime takes SIGTRAP for good, so its rows come last. */
	for (int pass = 0; pass < 2; pass++) {
		if (pass == 1)
			runtime_start(environment);
		for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
			if ((rows[i].start == kymo_start) != (pass == 1))
				continue;
			printf("%-28s %6d", rows[i].name, rows[i].hertz);
			if (rows[i].start(rows[i].hertz)) {
				printf("  not available here\n");
				continue;
			}
			for (int k = 0; k < WORKLOADS; k++)
				measure(&rows[i], k, pairs);
			printf("\n");
		}
	}
	runtime_finish();
	snprintf(command, sizeof(command), "rm -rf %s", directory);
	return system(command) ? 1 : 0;
}
