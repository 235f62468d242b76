/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Registration happens once in a process, so every scenario has one of its own: a child in which
 * nothing has been started yet. What does not hold ends it with a message; so do signals.
 */
#ifndef KYMO_TESTS_SDK_SCENARIO_H
#define KYMO_TESTS_SDK_SCENARIO_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Tests pass NULL where programs must not. */
#define ROCPROFILER_NONNULL(...)
#include <rocprofiler-sdk/registration.h>
#include <rocprofiler-sdk/rocprofiler.h>

#define SCENARIO_SECONDS 120

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);            \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

#define CHECK_EQUAL(one, other)                                                                    \
	do {                                                                                       \
		long long one_value = (long long)(one), other_value = (long long)(other);          \
                                                                                                   \
		if (one_value != other_value) {                                                    \
			fprintf(stderr, "%s:%d: %s is %lld, %s is %lld\n", __FILE__, __LINE__,     \
				#one, one_value, #other, other_value);                             \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

#define OK(call)              CHECK_EQUAL(call, ROCPROFILER_STATUS_SUCCESS)
#define REFUSED(call, status) CHECK_EQUAL(call, ROCPROFILER_STATUS_ERROR_##status)

/* 0: outside of a scenario. */
static pid_t scenario_process;

/* LeakSanitizer asks at the end of a process. What a scenario forks may have been forked while
 * other threads held the sanitizer's locks, which LLVM 14 takes over as they are: it would wait for
 * ever.
 */
int __lsan_is_turned_off(void);
__attribute__((weak)) int __lsan_is_turned_off(void)
{
	return scenario_process && scenario_process != getpid();
}

/* Runs it in a child, which ends by exit(0); what it does after that, in exit handlers, may still
 * fail. */
static inline void scenario(void (*body)(void))
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (!child) {
		scenario_process = getpid();
		alarm(SCENARIO_SECONDS);
		body();
		exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- a tool of one process, without a library ---- */

static int (*scenario_initialize)(void);
static void (*scenario_finalize)(void);
static rocprofiler_client_finalize_t scenario_finalizer;
static rocprofiler_client_id_t *scenario_client;

static inline int scenario_initialize_tool(rocprofiler_client_finalize_t finalizer, void *data)
{
	(void)data;
	scenario_finalizer = finalizer;
	return scenario_initialize ? scenario_initialize() : 0;
}

static inline void scenario_finalize_tool(void *data)
{
	(void)data;
	if (scenario_finalize)
		scenario_finalize();
}

static inline rocprofiler_tool_configure_result_t *scenario_configure(uint32_t version,
								      const char *text,
								      uint32_t priority,
								      rocprofiler_client_id_t *id)
{
	static rocprofiler_tool_configure_result_t result = {
		sizeof(result), scenario_initialize_tool, scenario_finalize_tool, NULL};

	(void)version;
	(void)text;
	(void)priority;
	scenario_client = id;
	return &result;
}

static inline void scenario_tool(int (*initialize)(void))
{
	scenario_initialize = initialize;
	OK(rocprofiler_force_configure(scenario_configure));
}

/* Until another thread has made it true. */
#define WAIT_FOR(condition)                                                                        \
	do {                                                                                       \
		for (int wait_i = 0; wait_i < 6000 && !(condition); wait_i++)                      \
			usleep(5000);                                                              \
		CHECK(condition);                                                                  \
	} while (0)

#define SCENARIO(name)                                                                             \
	static void test_##name(void **state)                                                      \
	{                                                                                          \
		(void)state;                                                                       \
		scenario(name);                                                                    \
	}

#endif
