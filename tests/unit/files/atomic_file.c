/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A file is there whole or not at all, with the rights asked for, and no temporary one stays.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "files/atomic_file.h"

static char directory[] = "/tmp/kymo-atomic-XXXXXX";
static char path[64];

static int make_directory(void **state)
{
	(void)state;
	if (!mkdtemp(directory))
		return -1;
	snprintf(path, sizeof(path), "%s/file", directory);
	return 0;
}

/* Fails where anything but the file itself was left. */
static int remove_directory(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(directory);
}

static void assert_file_is(const char *text, mode_t mode)
{
	char got[64] = "";
	struct stat status;
	FILE *file = fopen(path, "r");

	assert_non_null(file);
	assert_int_equal(fread(got, 1, sizeof(got) - 1, file), strlen(text));
	fclose(file);
	assert_string_equal(got, text);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 07777, mode);
}

static void parts_follow_each_other(void **state)
{
	const struct atomic_file_part parts[] = {{"one", 3}, {"", 0}, {" two", 4}};

	(void)state;
	assert_int_equal(atomic_file_write_parts(path, 0600, parts, 3), 0);
	assert_file_is("one two", 0600);
}

static void a_file_is_replaced(void **state)
{
	const struct atomic_file_part part = {"three", 5};
	mode_t before = umask(027);

	(void)state;
	assert_int_equal(atomic_file_write_parts(path, ATOMIC_FILE_MODE_BY_UMASK, &part, 1), 0);
	umask(before);
	assert_file_is("three", 0640);
}

static void a_directory_in_the_way_stays(void **state)
{
	const struct atomic_file_part part = {"four", 4};
	struct stat status;

	(void)state;
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(atomic_file_write_parts(path, 0600, &part, 1), -EISDIR);
	assert_int_equal(stat(path, &status), 0);
	assert_true(S_ISDIR(status.st_mode));
	rmdir(path);
}

static void no_directory_is_an_error(void **state)
{
	const struct atomic_file_part part = {"five", 4};

	(void)state;
	assert_int_equal(atomic_file_write_parts("/nonexistent/file", 0600, &part, 1), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_follow_each_other),
		cmocka_unit_test(a_file_is_replaced),
		cmocka_unit_test(a_directory_in_the_way_stays),
		cmocka_unit_test(no_directory_is_an_error),
	};

	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
