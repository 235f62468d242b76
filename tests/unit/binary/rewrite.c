/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Rewriting files: what is refused, and that nothing is left behind when it is.
 */
#include "binary/rewrite/rewrite.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

static char directory[] = "/tmp/kymo-rewrite-XXXXXX";
static char out[PATH_MAX];

static const char *sample_path(const char *name)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", getenv("SAMPLES"), name);
	return path;
}

static int set_up(void **state)
{
	(void)state;
	if (!mkdtemp(directory))
		return -1;
	snprintf(out, sizeof(out), "%s/out", directory);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	unlink(out);
	return rmdir(directory);
}

static uint8_t *make_modes(const struct plan *plan, uint8_t mode)
{
	uint8_t *modes = malloc(plan->header->functions.count + 1);

	assert_non_null(modes);
	memset(modes, mode, plan->header->functions.count + 1);
	return modes;
}

static void load(const char *path, enum plan_arena_placement_kind placement, struct plan *ret)
{
	struct plan_options options = {.arena_placement = (uint8_t)placement};
	struct problem problem = {""};
	struct elf_file *file;

	if (elf_open(path, &file, &problem) ||
	    plan_load_or_build(file, NULL, &options, ret, &problem))
		fail_msg("%s", problem.text);
	elf_close(file);
}

static int rewrite(const char *path, const struct plan *plan, uint8_t mode, const char *to,
		   struct rewrite_result *result)
{
	struct rewrite_options options = {.needed_library = "libm.so.6",
					  .added_runpath = "/nonexistent"};
	struct problem problem = {""};
	uint8_t *modes = make_modes(plan, mode);
	int error = rewrite_elf_file(path, to, plan, modes, &options, result, &problem);

	assert_true(!error || problem.text[0]);
	free(modes);
	return error;
}

static unsigned files_left(void)
{
	DIR *list = opendir(directory);
	unsigned count = 0;

	assert_non_null(list);
	while (readdir(list))
		count++;
	closedir(list);
	return count - 2;
}

static void a_program_runs_as_before(void **state)
{
	char before[PATH_MAX + 32], after[PATH_MAX + 32];
	struct rewrite_result result;
	struct plan plan, kept;
	struct stat old, new;

	(void)state;
	load(sample_path("sample"), PLAN_ARENA_PLACEMENT_BEHIND_MODULE, &plan);
	snprintf(before, sizeof(before), "%s >/dev/null", sample_path("sample"));
	snprintf(after, sizeof(after), "%s >/dev/null", out);
	for (uint8_t mode = PLAN_MODE_FULL; mode <= PLAN_MODE_COUNT; mode++) {
		assert_int_equal(rewrite(sample_path("sample"), &plan, mode, out, &result), 0);
		assert_true(result.functions > 0);
		assert_false(result.has_moved_program_headers);
		assert_int_equal(system(after), system(before));
	}
	assert_int_equal(stat(sample_path("sample"), &old), 0);
	assert_int_equal(stat(out, &new), 0);
	assert_int_equal(old.st_mode, new.st_mode);
	assert_int_equal(result.size, new.st_size);
	assert_int_equal(files_left(), 1);

	assert_int_equal(plan_open(out, &kept, NULL), 0);
	assert_int_equal(kept.header->functions.count, plan.header->functions.count);
	plan_close(&kept);
	/* once is enough */
	assert_int_equal(rewrite(out, &plan, PLAN_MODE_FULL, out, &result), -EEXIST);
	plan_close(&plan);
	unlink(out);
}

/* The stubs lie in front of the file, where it cannot have them: it has the plan, and code as it
 * was. */
static void a_plan_in_front_of_the_file_is_kept_for_the_start(void **state)
{
	char before[PATH_MAX + 32], after[PATH_MAX + 32];
	struct rewrite_result result;
	struct plan plan, kept;

	(void)state;
	load(sample_path("sample"), PLAN_ARENA_PLACEMENT_FIRST, &plan);
	assert_true((int64_t)plan.header->arena_vaddr < (int64_t)plan.header->low);
	snprintf(before, sizeof(before), "%s >/dev/null", sample_path("sample"));
	snprintf(after, sizeof(after), "%s >/dev/null", out);
	assert_int_equal(rewrite(sample_path("sample"), &plan, PLAN_MODE_FULL, out, &result), 0);
	assert_true(result.functions > 0);
	assert_false(result.has_merged_unwind_tables);
	assert_int_equal(system(after), system(before));
	assert_int_equal(plan_open(out, &kept, NULL), 0);
	assert_int_equal(kept.header->functions.count, plan.header->functions.count);
	plan_close(&kept);
	assert_int_equal(rewrite(out, &plan, PLAN_MODE_FULL, out, &result), -EEXIST);
	plan_close(&plan);
	unlink(out);
}

static void what_does_not_fit_is_refused(void **state)
{
	struct rewrite_result result;
	struct plan plan;

	(void)state;
	load(sample_path("sample"), PLAN_ARENA_PLACEMENT_BEHIND_MODULE, &plan);
	assert_int_equal(rewrite(sample_path("dwarf4"), &plan, PLAN_MODE_FULL, out, &result),
			 -ESTALE);
	assert_int_equal(rewrite("/nonexistent", &plan, PLAN_MODE_FULL, out, &result), -ENOENT);
	assert_int_equal(rewrite("/dev/null", &plan, PLAN_MODE_FULL, out, &result), -EINVAL);
	assert_int_equal(rewrite("/etc/passwd", &plan, PLAN_MODE_FULL, out, &result), -ENOEXEC);
	assert_int_equal(rewrite(sample_path("sample"), &plan, PLAN_MODE_FULL,
				 "/nonexistent/directory/out", &result),
			 -ENOENT);
	assert_int_equal(files_left(), 0);
	plan_close(&plan);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_program_runs_as_before),
		cmocka_unit_test(a_plan_in_front_of_the_file_is_kept_for_the_start),
		cmocka_unit_test(what_does_not_fit_is_refused),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
