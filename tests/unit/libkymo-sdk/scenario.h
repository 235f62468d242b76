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

/* Runs it in a child, which ends by exit(0); what it does after that, in exit handlers, may still
 * fail. */
static inline void scenario(void (*body)(void))
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (!child) {
		alarm(SCENARIO_SECONDS);
		body();
		exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

#endif
