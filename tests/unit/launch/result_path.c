/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Path keys, and which directory a run gets.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/array.h"
#include "launch/result_path.h"

static struct effective_settings settings;
static struct problem problem;
static char scratch[] = "/tmp/kymo-test-XXXXXX";
static const struct result_key_values keys = {"/usr/bin/prog", {1700000000, 0}, 42};

static int setup(void **state)
{
	(void)state;
	strcpy(scratch, "/tmp/kymo-test-XXXXXX");
	setenv("TZ", "UTC", 1);
	return effective_init(&settings, &problem) || !mkdtemp(scratch) || chdir(scratch);
}

static int teardown(void **state)
{
	char command[64];

	(void)state;
	effective_deinit(&settings);
	snprintf(command, sizeof(command), "rm -rf %s", scratch);
	return chdir("/") || system(command);
}

static void expect_expansion(const char *pattern, const char *expected)
{
	char *text;

	assert_int_equal(result_path_expand_keys(pattern, &keys, &text, &problem), 0);
	assert_string_equal(text, expected);
	free(text);
}

static void keys_are_replaced(void **state)
{
	(void)state;
	setenv("RESULT_TEST", "a/b", 1);
	setenv("SLURM_PROCID", "7", 1);
	setenv("SLURM_STEP_ID", "0", 1);
	setenv("SLURM_JOB_ID", "99", 1);
	expect_expansion("kymo-%n-output", "kymo-prog-output");
	expect_expansion("%p.%pid%.%tag%", "42.42.prog");
	expect_expansion("%r/%rank%/%job%", "7/7/99");
	expect_expansion("%t", "2023-11-14_22.13.20");
	expect_expansion("%time%", "2023-11-14_22.13.20");
	expect_expansion("%q{RESULT_TEST}-%env{RESULT_TEST}%", "a_b-a_b");
	expect_expansion("100%%", "100%");
	expect_expansion("%pp%n", "42pprog"); /* not the long form: %p, then text */
	expect_expansion("%q{UNSET_VARIABLE}x", "x");
	unsetenv("SLURM_STEP_ID");
}

static void unknown_keys_are_errors(void **state)
{
	static const char *const bad[] = {"%z", "%", "a%", "%rnak%", "%q{X", "%env{X}", "% n"};
	char *text;

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
		if (!strcmp(bad[i], "%rnak%"))
			continue; /* %r and text: allowed, then a lone % */
		assert_int_equal(result_path_expand_keys(bad[i], &keys, &text, &problem), -EINVAL);
	}
}

static char *create(void)
{
	struct result_place place = {0};
	char *path;

	assert_int_equal(result_directory_create(&settings, &keys, &place, &problem), 0);
	assert_int_equal(place.path[0], '/');
	assert_int_equal(place.descriptor, -1);
	assert_string_equal(place.path, place.shown);
	path = strdup(place.path);
	result_place_deinit(&place);
	return path;
}

static void set(enum setting_id id, const char *text)
{
	assert_int_equal(effective_set_if_not_overridden(&settings, id, text, ORIGIN_OPTION, "test",
							 &problem),
			 0);
}

static void runs_never_share_a_directory(void **state)
{
	char *first = create(), *second, link[64] = "";

	(void)state;
	assert_non_null(strstr(first, "/kymo-prog-output/2023-11-14_22.13.20"));
	assert_int_equal(mkdir("kymo-prog-output/2023-11-14_22.13.20/spool", 0700), 0);
	second = create();
	assert_non_null(strstr(second, "/2023-11-14_22.13.20-2"));
	assert_true(readlink("kymo-prog-output/latest", link, sizeof(link) - 1) > 0);
	assert_string_equal(link, "2023-11-14_22.13.20-2");
	free(first);
	free(second);
}

/* mpirun -n 4 kymo sample …: four kymo in the same second. */
static void ranks_have_directories_of_their_own(void **state)
{
	char *path, link[64] = "";

	(void)state;
	setenv("PMI_SIZE", "4", 1);
	setenv("PMI_RANK", "0", 1);
	free(create());
	setenv("PMI_RANK", "3", 1);
	path = create();
	assert_non_null(strstr(path, "/2023-11-14_22.13.20-rank3"));
	free(path);
	assert_true(readlink("kymo-prog-output/latest", link, sizeof(link) - 1) > 0);
	assert_string_equal(link, "2023-11-14_22.13.20-rank0");
	set(SETTING_TIME_OUTPUT, "off");
	set(SETTING_OUTPUT_PATH, "out");
	path = create();
	assert_string_equal(strrchr(path, '/'), "/out-rank3");
	free(path);
	set(SETTING_OUTPUT_PATH, "out.%rank%.%size%");
	path = create();
	assert_string_equal(strrchr(path, '/'), "/out.3.4");
	free(path);
	unsetenv("PMI_RANK");
	unsetenv("PMI_SIZE");
}

static void nothing_is_overwritten_unless_forced(void **state)
{
	char *path;

	(void)state;
	set(SETTING_TIME_OUTPUT, "off");
	set(SETTING_OUTPUT_PATH, "out/");
	assert_int_equal(system("mkdir -p out/spool && touch out/spool/1-0.spool "
				"out/spool/collection_start out/spool/1-0.gpu "
				"out/spool/nccl-1-0.nccl out/keep"),
			 0);
	path = create();
	assert_non_null(strstr(path, "/out-2"));
	free(path);
	set(SETTING_FORCE, "on");
	path = create();
	assert_null(strstr(path, "/out-2"));
	free(path);
	assert_int_not_equal(access("out/spool/1-0.spool", F_OK), 0);
	assert_int_not_equal(access("out/spool/1-0.gpu", F_OK), 0);
	assert_int_not_equal(access("out/spool/nccl-1-0.nccl", F_OK), 0);
	assert_int_not_equal(access("out/spool/collection_start", F_OK), 0);
	assert_int_equal(access("out/keep", F_OK), 0);
}

/* It is that of a run that began in the same second, and has nothing in it yet. */
static void an_empty_one_that_nobody_named_is_not(void **state)
{
	char *first, *second;

	(void)state;
	set(SETTING_OUTPUT_PATH, "timed");
	first = create();
	second = create();
	assert_string_not_equal(first, second);
	assert_non_null(strstr(second, "-2"));
	free(first);
	free(second);
}

static void an_empty_directory_is_used(void **state)
{
	char *path;

	(void)state;
	set(SETTING_TIME_OUTPUT, "off");
	set(SETTING_OUTPUT_PATH, "out");
	assert_int_equal(mkdir("out", 0755), 0);
	path = create();
	assert_null(strstr(path, "out-2"));
	free(path);
}

static void a_file_in_the_way_is_an_error(void **state)
{
	struct result_place path;

	(void)state;
	set(SETTING_OUTPUT_PATH, "file/deeper");
	assert_int_equal(system("touch file"), 0);
	assert_true(result_directory_create(&settings, &keys, &path, &problem) < 0);
	assert_non_null(strstr(problem.text, "file"));
}

static void results_are_found(void **state)
{
	char *path;

	(void)state;
	assert_int_equal(result_directory_find_existing(NULL, &path, &problem), -ENOENT);
	assert_int_equal(result_directory_find_existing("/nonexistent", &path, &problem), -ENOENT);
	assert_int_equal(system("mkdir -p o/run/spool kymo-a-output/x/spool empty && "
				"ln -s run o/latest && ln -s x kymo-a-output/latest"),
			 0);
	assert_int_equal(result_directory_find_existing("o/run", &path, &problem), 0);
	assert_string_equal(path, "o/run");
	free(path);
	assert_int_equal(result_directory_find_existing("o", &path, &problem), 0);
	assert_string_equal(path, "o/latest");
	free(path);
	assert_int_equal(result_directory_find_existing(NULL, &path, &problem), 0);
	assert_string_equal(path, "kymo-a-output/latest");
	free(path);
	assert_int_equal(result_directory_find_existing("empty", &path, &problem), -ENOENT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(keys_are_replaced),
		TEST(unknown_keys_are_errors),
		TEST(runs_never_share_a_directory),
		TEST(ranks_have_directories_of_their_own),
		TEST(nothing_is_overwritten_unless_forced),
		TEST(an_empty_directory_is_used),
		TEST(an_empty_one_that_nobody_named_is_not),
		TEST(a_file_in_the_way_is_an_error),
		TEST(results_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
