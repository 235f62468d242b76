/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What is copied and removed of a directory: what is in it, and nothing that a link in it leads to.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launch/directory_tree.h"

static char directory[64];

static int prepare(void **state)
{
	(void)state;
	strcpy(directory, "/tmp/kymo-tree-XXXXXX");
	return !mkdtemp(directory) || chdir(directory) ||
	       system("mkdir -p from/spool/deep precious to/spool && echo a >from/spool/1 && "
		      "echo b >from/spool/deep/2 && echo keep >precious/file && "
		      "echo mine >to/spool/1 && ln -s ../precious from/link && "
		      "ln -s ../../precious/file from/spool/link && mkfifo from/pipe");
}

static int clean(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", directory);
	return chdir("/") || system(command);
}

static bool has(const char *path, const char *text)
{
	char line[64] = "";
	FILE *stream = fopen(path, "re");

	if (!stream)
		return false;
	(void)!fgets(line, sizeof(line), stream);
	fclose(stream);
	return !strcmp(line, text);
}

static void test_copy(void **state)
{
	struct problem problem;
	struct stat status;

	(void)state;
	alarm(10); /* nobody writes to the pipe */
	assert_int_equal(directory_copy_tree("from", "to", &problem), 0);
	alarm(0);
	assert_true(has("to/spool/1", "mine\n")); /* what is there stays */
	assert_true(has("to/spool/deep/2", "b\n"));
	assert_int_equal(lstat("to/link", &status), -1);
	assert_int_equal(lstat("to/spool/link", &status), -1);
	assert_int_equal(lstat("to/pipe", &status), -1);
	assert_int_equal(directory_copy_tree("missing", "to", &problem), -ENOENT);
	assert_non_null(strstr(problem.text, "missing"));
}

/* A link in the target is not written through. */
static void test_copy_into_link(void **state)
{
	struct problem problem;

	(void)state;
	assert_int_equal(system("rm -r to/spool && ln -s ../precious to/spool"), 0);
	assert_int_not_equal(directory_copy_tree("from", "to", &problem), 0);
	assert_int_equal(access("precious/1", F_OK), -1);
}

static void test_remove(void **state)
{
	struct stat status;

	(void)state;
	directory_remove_tree("from");
	assert_int_equal(lstat("from", &status), -1);
	assert_true(has("precious/file", "keep\n"));
	assert_int_equal(symlink("precious", "again"), 0);
	directory_remove_tree("again");
	assert_true(has("precious/file", "keep\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_copy, prepare, clean),
		cmocka_unit_test_setup_teardown(test_copy_into_link, prepare, clean),
		cmocka_unit_test_setup_teardown(test_remove, prepare, clean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
