/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What the tests of the front libraries share. What they bind happens once a process, so each test
 * runs in a child of its own, which opens the libraries in the order that it is about.
 */
#ifndef KYMO_TESTS_FRONT_TEST_H
#define KYMO_TESTS_FRONT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_runtime.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* In the child a failed check says what it saw and ends it. */
#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);    \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)
#define CHECK_TEXT(seen, wanted)                                                                   \
	do {                                                                                       \
		const char *seen_ = (seen), *wanted_ = (wanted);                                   \
		if (strcmp(seen_, wanted_)) {                                                      \
			fprintf(stderr, "%s:%d: saw:\n%swanted:\n%s", __FILE__, __LINE__, seen_,   \
				wanted_);                                                          \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

/* A function of an opened library. */
#define FUNCTION(handle, name)                                                                     \
	({                                                                                         \
		union {                                                                            \
			void *symbol;                                                              \
			__typeof__(&(name)) function;                                              \
		} found_ = {.symbol = dlsym(handle, #name)};                                       \
		CHECK(found_.symbol);                                                              \
		found_.function;                                                                   \
	})

static inline void *front_open(const char *path, int scope)
{
	void *handle = dlopen(path, RTLD_NOW | scope);

	if (!handle)
		fprintf(stderr, "%s\n", dlerror());
	CHECK(handle);
	return handle;
}

/* What reached the fake libkymo since the last time; "" where it is not open. */
static inline const char *front_seen(void)
{
	void *handle = dlopen(FAKE_RUNTIME, RTLD_NOW | RTLD_NOLOAD);
	union {
		void *symbol;
		fake_runtime_take_function *take;
	} found = {.symbol = handle ? dlsym(handle, FAKE_RUNTIME_TAKE) : NULL};

	return found.symbol ? found.take() : "";
}

/* As under `kymo sample`, but for the preloading. */
static inline void front_environment(void)
{
	setenv("KYMO_SPOOL_DIRECTORY", "/nonexistent/spool", 1);
	setenv("KYMO_LIBRARY", FAKE_RUNTIME, 1);
}

static inline void front_in_child(void (*test)(void))
{
	int status;
	pid_t child = fork();

	if (!child) {
		alarm(60);
		clearenv();
		test();
		_exit(0);
	}
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* A cmocka test that is the function `test` in a child. */
#define IN_CHILD(test)                                                                             \
	static void in_child_##test(void **state)                                                  \
	{                                                                                          \
		(void)state;                                                                       \
		front_in_child(test);                                                              \
	}

#endif
