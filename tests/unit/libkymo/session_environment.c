/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What children are given: completed lists, other preloads kept, choices of others respected. The
 * session is kept once a process, so each case is a process of its own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "libkymo/session_environment.h"

#define LIBRARY "/opt/kymo/libkymo.so"
#define FRONT   "/opt/kymo/libkymo-dl.so"

static struct options options = {.enabled = true, .follow_children = true, .spool_directory = "/s"};

static char **copy(const char *const *list)
{
	size_t count = 0;
	char **ret;

	while (list[count])
		count++;
	ret = calloc(count + 1, sizeof(*ret));
	for (size_t i = 0; ret && i < count; i++)
		ret[i] = strdup(list[i]);
	return ret;
}

static char **start(void)
{
	static const char *const session[] = {"A=1",
					      "LD_PRELOAD=" LIBRARY ":" FRONT ":/opt/other.so",
					      "KYMO_SPOOL_DIRECTORY=/s",
					      "KYMO_SAMPLING_FREQ=200",
					      "OMP_TOOL_LIBRARIES=" FRONT,
					      "NCCL_PROFILER_PLUGIN=/l/libnccl-profiler-kymo.so",
					      "KOKKOS_TOOLS_LIBS=/opt/users.so",
					      NULL};
	char **environment = copy(session);

	session_environment_save(environment);
	session_environment_set_child_inheritance(&options, environment);
	return environment;
}

static const char *value(char *const *environment, const char *name)
{
	const char *found = NULL;

	for (; environment && *environment; environment++) {
		size_t length = strlen(name);

		if (strncmp(*environment, name, length) || (*environment)[length] != '=')
			continue;
		if (found)
			return "(twice)";
		found = *environment + length + 1;
	}
	return found ? found : "(none)";
}

static bool same(char *const *environment, const char *name, const char *wanted)
{
	if (!strcmp(value(environment, name), wanted))
		return true;
	fprintf(stderr, "%s is '%s', not '%s'\n", name, value(environment, name), wanted);
	return false;
}

static bool empty_list(void)
{
	char *nothing[] = {NULL}, *const * given;
	struct session_environment_list list, none;

	start();
	session_environment_list_init(&list, nothing);
	session_environment_list_init(&none, NULL);
	given = list.environment;
	return list.is_completed && none.is_completed &&
	       same(given, "LD_PRELOAD", LIBRARY ":" FRONT) &&
	       same(given, "KYMO_SPOOL_DIRECTORY", "/s") &&
	       same(given, "KYMO_SAMPLING_FREQ", "200") &&
	       same(given, "OMP_TOOL_LIBRARIES", FRONT) &&
	       same(given, "NCCL_PROFILER_PLUGIN", "/l/libnccl-profiler-kymo.so") &&
	       same(given, "KOKKOS_TOOLS_LIBS", "(none)") && same(given, "A", "(none)") &&
	       same(none.environment, "LD_PRELOAD", LIBRARY ":" FRONT);
}

static bool complete_list(void)
{
	char **environment = start();
	struct session_environment_list list;

	session_environment_list_init(&list, environment);
	return !list.is_completed && list.environment == environment;
}

static bool own_preload(void)
{
	char *given[] = {"LD_PRELOAD=/opt/libasan.so /opt/x.so", "B=2", NULL};
	struct session_environment_list list;

	start();
	session_environment_list_init(&list, given);
	return same(list.environment, "LD_PRELOAD",
		    LIBRARY ":" FRONT ":/opt/libasan.so /opt/x.so") &&
	       same(list.environment, "B", "2");
}

static bool session_of_its_own(void)
{
	char *given[] = {"KYMO_SPOOL_DIRECTORY=/inner", "LD_PRELOAD=" LIBRARY, NULL};
	struct session_environment_list list;

	start();
	session_environment_list_init(&list, given);
	return !list.is_completed;
}

static bool switched_off(void)
{
	char *given[] = {"KYMO_ENABLED=off", "KYMO_SAMPLING_FREQ=9", NULL};
	struct session_environment_list list;

	start();
	session_environment_list_init(&list, given);
	return same(list.environment, "KYMO_ENABLED", "off") &&
	       same(list.environment, "KYMO_SAMPLING_FREQ", "9");
}

/* Beyond what fits on the stack. */
static bool large_list(void)
{
	enum { COUNT = 5000 };
	static char *given[COUNT + 1], names[COUNT][16];
	struct session_environment_list list;
	size_t count = 0;

	start();
	for (int i = 0; i < COUNT; i++) {
		snprintf(names[i], sizeof(names[i]), "V%d=x", i);
		given[i] = names[i];
	}
	session_environment_list_init(&list, given);
	while (list.environment[count])
		count++;
	if (count != COUNT + 5 || !list.mapping || strcmp(list.environment[count - 1], "V4999=x"))
		return false;
	session_environment_list_deinit(&list);
	return true;
}

static bool overwritten(void)
{
	char **environment = start(), *nothing[] = {NULL};
	struct session_environment_list list;

	for (char **entry = environment; *entry; entry++)
		memset(*entry, 'x', strlen(*entry));
	session_environment_list_init(&list, nothing);
	return same(list.environment, "KYMO_SAMPLING_FREQ", "200");
}

static bool children_left_alone(void)
{
	char *nothing[] = {NULL}, **environment;
	struct session_environment_list list;

	options.follow_children = false;
	environment = start();
	session_environment_list_init(&list, nothing);
	return !list.is_completed && same(environment, "LD_PRELOAD", "/opt/other.so") &&
	       same(environment, "KYMO_SPOOL_DIRECTORY", "(none)") &&
	       same(environment, "OMP_TOOL_LIBRARIES", "(none)") &&
	       same(environment, "NCCL_PROFILER_PLUGIN", "(none)") &&
	       same(environment, "KOKKOS_TOOLS_LIBS", "/opt/users.so") &&
	       same(environment, "A", "1");
}

struct check {
	bool (*run)(void);
};

static void in_a_process(void **state)
{
	const struct check *check = *state;
	int status;
	pid_t child = fork();

	if (child == 0)
		_exit(check->run() ? 0 : 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

#define CASE(name)                                                                                 \
	{                                                                                          \
#name, in_a_process, NULL, NULL, &(struct check)                                   \
		{                                                                                  \
			name                                                                       \
		}                                                                                  \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(empty_list),         CASE(complete_list),       CASE(own_preload),
		CASE(session_of_its_own), CASE(switched_off),        CASE(large_list),
		CASE(overwritten),        CASE(children_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
