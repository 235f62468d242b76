/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Patch plans: what is in them, where arenas lie, the cache, and that nothing damaged is believed.
 */
#include <errno.h>
#include <fcntl.h>
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

#include "binary/plan/plan.h"
#include "common/array.h"

#define GIB ((uint64_t)1 << 30)

static struct elf_file *open_file(const char *name)
{
	struct problem problem;
	struct elf_file *file;
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", getenv("FUNCTION_SAMPLES"), name);
	assert_int_equal(elf_open(path, &file, &problem), 0);
	return file;
}

static struct plan make_plan(const char *name, uint8_t placement)
{
	const struct plan_options options = {.arena_placement = placement};
	struct elf_file *file = open_file(name);
	struct problem problem;
	struct plan plan;

	assert_int_equal(plan_load_or_build(file, NULL, &options, &plan, &problem), 0);
	assert_true(plan_is_valid(plan.header, plan.size));
	assert_string_equal(plan.path, "");
	elf_close(file);
	return plan;
}

static void test_sites(void **state)
{
	struct plan plan = make_plan("functions.so", 0);
	const struct plan_header *header = plan.header;
	const uint8_t *stubs = (const uint8_t *)header + header->stubs.offset;

	(void)state;
	assert_true(header->sites.count >= 10);
	for (size_t i = 0; i < header->sites.count; i++) {
		const struct plan_site *site = &plan_get_sites(&plan)[i];
		const struct plan_function *function = &plan_get_functions(&plan)[site->function];
		const struct plan_move *move = &plan_get_moves(&plan)[site->first_move];
		int32_t distance;

		assert_int_equal(function->reason, PLAN_PATCHABLE);
		assert_int_equal(function->site, i);
		assert_int_equal(site->patched[0], 0xe9);
		memcpy(&distance, site->patched + 1, sizeof(distance));
		assert_int_equal(site->vaddr + 5 + (uint64_t)(int64_t)distance,
				 header->arena_vaddr + function->stub + PLAN_STUB_ENTRY);
		assert_int_equal(site->vaddr - function->vaddr,
				 site->vaddr == function->vaddr ? 0 : 4);
		assert_int_equal(move->from, 0);
		assert_int_equal(move->to, function->stub + PLAN_STUB_BODY);
		/* The displaced bytes, where they are copied as they are. */
		if (site->original[0] == 0x55)
			assert_int_equal(stubs[move->to - PLAN_STUBS], 0x55);
	}
	plan_close(&plan);
}

/* At a distance from which everything is reached, and not in the module. */
static void check_place(const char *name, uint8_t placement, int64_t low, int64_t high)
{
	struct plan plan = make_plan(name, placement);
	const struct plan_header *header = plan.header;
	int64_t distance = (int64_t)(header->arena_vaddr - header->low);

	assert_int_equal(header->arena_vaddr % PLAN_PAGE, 0);
	assert_true(distance >= low && distance <= high);
	assert_true(distance < 0 ? (uint64_t)-distance >= header->arena_size
				 : header->arena_vaddr >= header->high);
	plan_close(&plan);
}

static void test_places(void **state)
{
	const int64_t far = (int64_t)GIB;

	(void)state;
	check_place("functions.so", PLAN_ARENA_PLACEMENT_FIRST, far, far);
	check_place("functions.so", PLAN_ARENA_PLACEMENT_SECOND, -far, -far);
	check_place("functions.so", PLAN_ARENA_PLACEMENT_THIRD, -2 * far, -far - 1);
	check_place("functions.so", PLAN_ARENA_PLACEMENT_BEHIND_MODULE, 0, 1 << 20);
	check_place("pie", PLAN_ARENA_PLACEMENT_FIRST, -far, -1);
	check_place("pie", PLAN_ARENA_PLACEMENT_SECOND, -far + 1, -1);
	check_place("fixed", PLAN_ARENA_PLACEMENT_FIRST, -0x400000 + 0x10000, -1);
	check_place("fixed", PLAN_ARENA_PLACEMENT_SECOND, far, far + (1 << 22));
	check_place("fixed", PLAN_ARENA_PLACEMENT_BEHIND_MODULE, 0, 1 << 20);
}

/* No byte is written twice, and what counts another place is patched. */
static void check_places(const struct plan *plan, size_t *ret_loops, size_t *ret_blocks)
{
	const struct plan_header *header = plan->header;
	const struct plan_function *functions = plan_get_functions(plan);
	const struct plan_site *sites = plan_get_sites(plan);

	for (size_t i = 0; i < header->functions.count; i++) {
		const struct plan_function *place = &functions[i];

		*ret_loops += (place->flags & PLAN_FUNCTION_IS_LOOP) != 0;
		*ret_blocks += (place->flags & PLAN_FUNCTION_IS_BLOCK) != 0;
		if (place->reason == PLAN_COUNTED_ELSEWHERE)
			assert_int_not_equal(functions[place->site].stub, 0);
		if (i && place->flags & PLAN_PLACES && place[-1].flags & PLAN_PLACES)
			assert_true(place[-1].vaddr <= place->vaddr);
		else if (i)
			assert_false(place[-1].flags & PLAN_PLACES);
	}
	for (size_t i = 0; i < header->sites.count; i++) {
		assert_int_equal(functions[sites[i].function].site, i);
		for (size_t k = 0; k < i; k++)
			assert_true(sites[k].vaddr + sites[k].window <= sites[i].vaddr ||
				    sites[i].vaddr + sites[i].window <= sites[k].vaddr);
	}
}

static void test_loops_and_blocks(void **state)
{
	const char *const names[] = {"functions.so", "fixed"};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		for (unsigned wanted = 1; wanted < 4; wanted++) {
			const struct plan_options options = {.has_loop_places = wanted & 1,
							     .has_block_places = wanted & 2};
			struct elf_file *file = open_file(names[i]);
			struct problem problem;
			struct plan plan;
			size_t loops = 0, blocks = 0;

			assert_int_equal(plan_load_or_build(file, NULL, &options, &plan, &problem),
					 0);
			assert_true(plan_is_valid(plan.header, plan.size));
			check_places(&plan, &loops, &blocks);
			assert_true(options.has_loop_places || loops == 0);
			assert_int_equal(blocks > 0, options.has_block_places);
			plan_close(&plan);
			elf_close(file);
		}
	}
}

static bool is_cached(const struct elf_file *file, const char *directory)
{
	const struct plan_options options = {0};
	struct problem problem;
	struct plan plan;
	bool cached;

	assert_int_equal(plan_load_or_build(file, directory, &options, &plan, &problem), 0);
	cached = plan.was_cached;
	plan_close(&plan);
	return cached;
}

/* Whichever byte is damaged, the header, the tables, stubs or the end: the plan is made again. */
static void check_damaged(const struct elf_file *file, const char *directory, const char *path,
			  size_t size)
{
	struct problem problem;
	struct plan plan;

	for (size_t i = 0; i < 64; i++) {
		size_t at = i < 16 ? i * 13 : i == 16 ? size - 1 : (i * 2654435761u) % size;
		int descriptor = open(path, O_RDWR);
		uint8_t byte;

		assert_int_equal(pread(descriptor, &byte, 1, (off_t)at), 1);
		byte ^= 0x10;
		assert_int_equal(pwrite(descriptor, &byte, 1, (off_t)at), 1);
		close(descriptor);
		assert_int_not_equal(plan_open(path, &plan, &problem), 0);
		assert_false(is_cached(file, directory));
		assert_true(is_cached(file, directory));
	}
}

/* What somebody else can change, or exchange for something else, is not believed. */
static void check_doubtful(const struct elf_file *file, const char *directory, const char *path)
{
	char other[4200];

	assert_int_equal(chmod(path, 0666), 0);
	assert_false(is_cached(file, directory));
	assert_true(is_cached(file, directory));
	snprintf(other, sizeof(other), "%s.other", path);
	assert_int_equal(rename(path, other), 0);
	assert_int_equal(symlink(other, path), 0);
	assert_false(is_cached(file, directory));
	unlink(other);
	assert_int_equal(chmod(directory, 0777), 0);
	assert_false(is_cached(file, directory));
	assert_int_equal(chmod(directory, 0755), 0);
	assert_true(is_cached(file, directory));
	if (geteuid() == 0) {
		assert_int_equal(chown(path, 12345, 12345), 0);
		assert_false(is_cached(file, directory));
		assert_true(is_cached(file, directory));
		assert_int_equal(chown(directory, 12345, 12345), 0);
		assert_false(is_cached(file, directory));
		assert_int_equal(chown(directory, 0, 0), 0);
	}
}

static void test_cache(void **state)
{
	const struct plan_options options = {0},
				  other = {.arena_placement = PLAN_ARENA_PLACEMENT_SECOND};
	char directory[] = "/tmp/kymo-test-plan-XXXXXX", inner[64], path[4096];
	static const char *const names[] = {"functions.so", "nameless.so"};
	struct problem problem;
	struct stat status;

	(void)state;
	assert_non_null(mkdtemp(directory));
	snprintf(inner, sizeof(inner), "%s/a/b", directory);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct elf_file *file = open_file(names[i]);
		struct plan made, found, moved;

		assert_int_equal(plan_load_or_build(file, inner, &options, &made, &problem), 0);
		assert_false(made.was_cached);
		assert_int_equal(stat(made.path, &status), 0);
		assert_int_equal(plan_load_or_build(file, inner, &options, &found, &problem), 0);
		assert_true(found.was_cached && found.has_own_file);
		assert_string_equal(found.path, made.path);
		assert_int_equal(found.size, made.size);
		assert_memory_equal(found.header, made.header, made.size);
		assert_int_equal(plan_load_or_build(file, inner, &other, &moved, &problem), 0);
		assert_false(moved.was_cached);
		assert_string_not_equal(moved.path, made.path);
		snprintf(path, sizeof(path), "%s", made.path);
		plan_close(&found);
		check_damaged(file, inner, path, (size_t)status.st_size);
		check_doubtful(file, inner, path);
		unlink(path);
		unlink(moved.path);
		plan_close(&made);
		plan_close(&moved);
		elf_close(file);
	}
	assert_int_equal(rmdir(inner), 0);
	snprintf(inner, sizeof(inner), "%s/a", directory);
	assert_int_equal(rmdir(inner), 0);
	assert_int_equal(rmdir(directory), 0);
}

static void test_no_cache(void **state)
{
	const struct plan_options options = {0},
				  none = {.arena_placement = PLAN_ARENA_PLACEMENT_COUNT};
	struct elf_file *file = open_file("functions.so");
	struct problem problem;
	struct plan plan;

	(void)state;
	assert_int_equal(plan_load_or_build(file, "/proc/nowhere", &options, &plan, &problem), 0);
	assert_string_equal(plan.path, "");
	plan_close(&plan);
	assert_int_equal(plan_load_or_build(file, NULL, &none, &plan, &problem), -EINVAL);
	elf_close(file);
}

static void test_other_files(void **state)
{
	struct problem problem;
	struct plan plan;
	char path[4096];

	(void)state;
	assert_int_equal(plan_open("/nonexistent", &plan, &problem), -ENOENT);
	snprintf(path, sizeof(path), "%s/functions.so", getenv("FUNCTION_SAMPLES"));
	assert_int_equal(plan_open(path, &plan, &problem), -ENOEXEC);
	assert_int_equal(plan_open("/etc/passwd", &plan, &problem), -ENOEXEC);
	assert_null(plan.header);
}

/* Whatever byte is changed: refused, or everything in it still leads inside. */
static void test_damage(void **state)
{
	struct plan plan = make_plan("functions.so", 0);
	size_t tables = plan.header->stubs.offset, refused = 0;
	uint8_t *copy = malloc(plan.size);

	(void)state;
	assert_non_null(copy);
	memcpy(copy, plan.header, plan.size);
	for (size_t at = 0; at < tables; at++) {
		for (unsigned bit = 0; bit < 8; bit += 7) {
			copy[at] ^= (uint8_t)(1u << bit);
			refused += !plan_is_valid(copy, plan.size);
			copy[at] ^= (uint8_t)(1u << bit);
		}
	}
	assert_true(refused > 500);
	for (size_t size = 0; size < tables; size += 7)
		assert_false(plan_is_valid(copy, size));
	free(copy);
	plan_close(&plan);
}

static void test_words(void **state)
{
	(void)state;
	for (unsigned i = 0; i < PLAN_REASON_COUNT; i++) {
		assert_true(strlen(plan_reason_to_word(i)) > 3);
		assert_true(strlen(plan_reason_to_text(i)) > 10);
		for (unsigned k = 0; k < i; k++)
			assert_string_not_equal(plan_reason_to_word(i), plan_reason_to_word(k));
	}
	assert_string_equal(plan_reason_to_word(PLAN_REASON_COUNT), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sites),    cmocka_unit_test(test_loops_and_blocks),
		cmocka_unit_test(test_places),   cmocka_unit_test(test_cache),
		cmocka_unit_test(test_no_cache), cmocka_unit_test(test_other_files),
		cmocka_unit_test(test_damage),   cmocka_unit_test(test_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
