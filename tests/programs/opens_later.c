/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Opens the library beside it some times, calls into it, closes it, while another thread calls
 * functions of the program: opens_later [TIMES [MILLISECONDS-TO-WAIT-BEFORE]].
 */
#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "check.h"

#define CALLS 100

static atomic_int stop;

__attribute__((noinline)) static int own_function(int value)
{
	return value + 1;
}

static void *call_own(void *argument)
{
	(void)argument;
	while (!atomic_load(&stop)) {
		CHECK(own_function(3) == 4);
		usleep(100);
	}
	return NULL;
}

static void open_and_call(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);
	int (*function)(int) = library ? (int (*)(int))dlsym(library, "later_function") : NULL;

	if (!library)
		fprintf(stderr, "%s\n", dlerror());
	CHECK(library && function);
	for (int i = 0; i < CALLS; i++)
		CHECK(function(i) == 2 * i + 1);
	CHECK(!dlclose(library));
}

int main(int count, char **arguments)
{
	char path[PATH_MAX], whole[PATH_MAX + 32];
	int times = count > 1 ? atoi(arguments[1]) : 3;
	pthread_t thread;

	CHECK(realpath("/proc/self/exe", path));
	snprintf(whole, sizeof(whole), "%s/libopens_later_plugin.so", dirname(path));
	CHECK(!pthread_create(&thread, NULL, call_own, NULL));
	if (count > 2)
		usleep(1000 * (unsigned)atoi(arguments[2]));
	for (int i = 0; i < times; i++)
		open_and_call(whole);
	atomic_store(&stop, 1);
	pthread_join(thread, NULL);
	return check_passed("opens_later");
}
