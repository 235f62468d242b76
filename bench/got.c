/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What a wrapped call costs: a function of libc that does next to nothing, and an uncontended
 * mutex, called bare, through a replacement that only calls the original, and under kymo with
 * nothing and with everything recorded. ns a call (a pair of lock and unlock), least of five
 * rounds.
 *
 * usage: got [KYMO]     (default: the one of the build directory)
 */
#include <gnu/libc-version.h>
#include <libgen.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/array.h"
#include "wrappers/got/got.h"

#define ROUNDS 40
#define CALLS  10000

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void call(void)
{
	for (int i = 0; i < CALLS; i++)
		(void)gnu_get_libc_version();
}

static void lock(void)
{
	for (int i = 0; i < CALLS; i++) {
		pthread_mutex_lock(&mutex);
		pthread_mutex_unlock(&mutex);
	}
}

static double measure(void (*loop)(void))
{
	double least = 0;

	for (int i = 0; i < ROUNDS; i++) {
		double begin = now(), taken;
		loop();
		taken = (now() - begin) / CALLS;
		if (!i || taken < least)
			least = taken;
	}
	return least;
}

static void print_row(const char *label)
{
	double function = measure(call), mutexes = measure(lock);

	printf("%-34s %8.1f %8.1f\n", label, function, mutexes);
	fflush(stdout);
}

/* ---- a replacement that only calls the original ---- */

static _Atomic(void *) original_function, original_lock, original_unlock;

static const char *empty_function(void)
{
	return ((const char *(*)(void))atomic_load_explicit(&original_function,
							    memory_order_relaxed))();
}

static int empty_lock(pthread_mutex_t *lock)
{
	return ((int (*)(pthread_mutex_t *))atomic_load_explicit(&original_lock,
								 memory_order_relaxed))(lock);
}

static int empty_unlock(pthread_mutex_t *lock)
{
	return ((int (*)(pthread_mutex_t *))atomic_load_explicit(&original_unlock,
								 memory_order_relaxed))(lock);
}

static struct got_wrapper empty[] = {
	{.symbol = "gnu_get_libc_version",
	 .replacement = (void *)empty_function,
	 .original = &original_function},
	{.symbol = "pthread_mutex_lock",
	 .replacement = (void *)empty_lock,
	 .original = &original_lock},
	{.symbol = "pthread_mutex_unlock",
	 .replacement = (void *)empty_unlock,
	 .original = &original_unlock},
};

static void measure_scans(void)
{
	double begin = now();

	got_scan_and_rewrite();
	printf("first scan: %.0f us; ", (now() - begin) / 1e3);
	begin = now();
	for (int i = 0; i < 1000; i++)
		got_scan_and_rewrite();
	printf("a scan that finds nothing new: %.0f ns\n", (now() - begin) / 1e3);
}

/* ---- under kymo ---- */

static void run_under(const char *kymo, const char *self, const char *label,
		      const char *const *settings)
{
	pid_t child = fork();
	char *arguments[] = {(char *)kymo,          "sample", "-q",         "-o",
			     "/tmp/kymo-bench-got", "--",     (char *)self, "row",
			     (char *)label,         NULL};

	if (!child) {
		setenv("KYMO_TRACE_THREAD_LOCKS", "on", 1);
		setenv("KYMO_WRAP", "*:gnu_get_libc_version", 1);
		setenv("KYMO_SAMPLING_CPUTIME", "off", 1);
		for (; *settings; settings += 2)
			setenv(settings[0], settings[1], 1);
		execv(kymo, arguments);
		_exit(127);
	}
	waitpid(child, NULL, 0);
}

static const struct {
	const char *label;
	const char *settings[8];
} cases[] = {
	{"kymo, not collecting", {"KYMO_INIT_ENABLED", "off"}},
	{"kymo, categories off", {"KYMO_DISABLE_CATEGORIES", "wrap,pthread"}},
	{"kymo, trace", {"KYMO_TRACE", "on", "KYMO_PROFILE", "off"}},
	{"kymo, profile", {"KYMO_TRACE", "off", "KYMO_PROFILE", "on"}},
	{"kymo, trace and profile", {"KYMO_TRACE", "on", "KYMO_PROFILE", "on"}},
};

int main(int count, char **arguments)
{
	char self[4096], build[4096], kymo[8192];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (count == 3 && !strcmp(arguments[1], "row")) {
		print_row(arguments[2]);
		return 0;
	}
	self[length > 0 ? length : 0] = 0;
	strcpy(build, self);
	snprintf(kymo, sizeof(kymo), "%s/src/cmd/kymo", dirname(dirname(build)));
	printf("%-34s %8s %8s\n", "ns", "function", "mutex");
	print_row("bare");
	if (got_add_wrappers(empty, ARRAY_SIZE(empty)))
		return 1;
	measure_scans();
	print_row("empty replacement");
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		run_under(count == 2 ? arguments[1] : kymo, self, cases[i].label,
			  cases[i].settings);
	return 0;
}
