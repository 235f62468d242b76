/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Tables on disk: stored and found again, refused when anything about them is wrong; compilation of
 * images cut short or with bits flipped; the pc cache's exactness.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/unwind/cache.h"
#include "core/unwind/go.h"
#include "core/unwind/table.h"
#include "core/unwind/unwind.h"

static const uint8_t build_id[20] = {0xab, 0xcd, 1, 2, 3};
static char directory[64];
static char library[4096]; /* path of libc, as the loader found it */

static int on_object(struct dl_phdr_info *object, size_t size, void *context)
{
	(void)size;
	(void)context;
	if (strstr(object->dlpi_name, "libc.so"))
		snprintf(library, sizeof(library), "%s", object->dlpi_name);
	return 0;
}

static int prepare(void **state)
{
	(void)state;
	dl_iterate_phdr(on_object, NULL);
	strcpy(directory, "/tmp/kymo-unwind-XXXXXX");
	return library[0] && mkdtemp(directory) ? 0 : -1;
}

/* Path of the one file in the directory; empty when there is none. */
static void cache_file(char *path, size_t size)
{
	DIR *entries = opendir(directory);
	struct dirent *entry;

	path[0] = 0;
	while ((entry = readdir(entries)))
		if (entry->d_name[0] != '.')
			snprintf(path, size, "%s/%s", directory, entry->d_name);
	closedir(entries);
}

static int clean(void **state)
{
	char path[512];

	(void)state;
	for (cache_file(path, sizeof(path)); path[0]; cache_file(path, sizeof(path)))
		unlink(path);
	rmdir(directory);
	return 0;
}

static const struct unwind_table *load(bool *cached, size_t *size)
{
	const struct unwind_table *table = NULL;

	assert_int_equal(unwind_table_load_or_compile(directory, build_id, sizeof(build_id),
						      library, 0, 0, &table, size, cached),
			 0);
	assert_true(unwind_table_is_valid(table, *size));
	assert_true(unwind_table_get_row_count(table) > 1000);
	return table;
}

static bool loads_cached(void)
{
	size_t size;
	bool cached;

	const struct unwind_table *table = load(&cached, &size);

	unwind_table_free(table, size);
	return cached;
}

static void test_stored_and_found(void **state)
{
	const struct unwind_table *first, *second;
	size_t first_size, second_size;
	struct stat status;
	char path[512];
	bool cached;

	(void)state;
	first = load(&cached, &first_size);
	assert_false(cached);
	second = load(&cached, &second_size);
	assert_true(cached);
	assert_int_equal(first_size, second_size);
	assert_memory_equal(first, second, first_size);
	unwind_table_free(first, first_size);
	unwind_table_free(second, second_size);
	cache_file(path, sizeof(path));
	assert_non_null(strstr(path, "abcd010203"));
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0400);
}

/* Damages the cached file; the next load must compile anew and repair the cache. */
static void damaged(void (*damage)(const char *path))
{
	char path[512];

	assert_true(loads_cached());
	cache_file(path, sizeof(path));
	damage(path);
	assert_false(loads_cached());
	assert_true(loads_cached());
}

static void make_short(const char *path)
{
	struct stat status;

	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(truncate(path, status.st_size - 1), 0);
}

static void make_empty(const char *path)
{
	assert_int_equal(truncate(path, 0), 0);
}

static void make_writable(const char *path)
{
	assert_int_equal(chmod(path, 0622), 0);
}

static void patch(const char *path, off_t offset, uint8_t value)
{
	int file;

	assert_int_equal(chmod(path, 0600), 0);
	file = open(path, O_WRONLY);
	assert_true(file >= 0);
	assert_int_equal(pwrite(file, &value, 1, offset), 1);
	close(file);
}

static void make_other_version(const char *path)
{
	patch(path, offsetof(struct unwind_table, version), 99);
}

static void make_other_build_id(const char *path)
{
	patch(path, offsetof(struct unwind_table, build_id), 0x77);
}

static void make_other_image(const char *path)
{
	patch(path, offsetof(struct unwind_table, image_size), 0x77);
}

static void make_index_wrong(const char *path)
{
	patch(path, sizeof(struct unwind_table) + 7, 0xff);
}

/* Bytes in the midst, whose values may all be allowed. */
static void flip_anywhere(const char *path)
{
	struct stat status;
	uint8_t byte;
	int file;

	assert_int_equal(chmod(path, 0600), 0);
	file = open(path, O_RDWR);
	assert_int_equal(fstat(file, &status), 0);
	for (off_t at = status.st_size / 2; at < status.st_size / 2 + 64; at++) {
		assert_int_equal(pread(file, &byte, 1, at), 1);
		byte ^= 1;
		assert_int_equal(pwrite(file, &byte, 1, at), 1);
	}
	close(file);
}

static void make_link(const char *path)
{
	char moved[600];

	snprintf(moved, sizeof(moved), "%s/.moved", directory);
	assert_int_equal(rename(path, moved), 0);
	assert_int_equal(symlink(moved, path), 0);
}

static void make_foreign(const char *path)
{
	assert_int_equal(chown(path, 12345, 12345), 0);
}

static void test_damage(void **state)
{
	char moved[600];

	(void)state;
	damaged(make_short);
	damaged(make_empty);
	damaged(make_writable);
	damaged(make_other_version);
	damaged(make_other_build_id);
	damaged(make_other_image);
	damaged(make_index_wrong);
	damaged(flip_anywhere);
	damaged(make_link);
	snprintf(moved, sizeof(moved), "%s/.moved", directory);
	unlink(moved);
	if (geteuid() == 0)
		damaged(make_foreign);
	/* A directory that others can change is no cache. */
	assert_true(loads_cached());
	assert_int_equal(chmod(directory, 0722), 0);
	assert_false(loads_cached());
	assert_int_equal(chmod(directory, 0700), 0);
	assert_true(loads_cached());
}

static void test_refusals(void **state)
{
	const struct unwind_table *table;
	struct stat status;
	size_t size;
	bool cached;

	(void)state;
	assert_int_equal(stat(library, &status), 0);
	assert_int_equal(unwind_table_load_or_compile(NULL, NULL, 0, "/nonexistent", 0, 0, &table,
						      &size, &cached),
			 -ENOENT);
	assert_int_equal(unwind_table_load_or_compile(NULL, NULL, 0, "/dev/null", 0, 0, &table,
						      &size, &cached),
			 -ENOEXEC);
	assert_int_equal(unwind_table_load_or_compile(NULL, NULL, 0, "/etc/passwd", 0, 0, &table,
						      &size, &cached),
			 -ENOEXEC);
	assert_int_equal(unwind_table_load_or_compile(NULL, NULL, 0, library, status.st_dev,
						      status.st_ino + 1, &table, &size, &cached),
			 -ESTALE);
	assert_int_equal(unwind_table_load_or_compile("/nonexistent", build_id, 20, library,
						      status.st_dev, status.st_ino, &table, &size,
						      &cached),
			 0);
	assert_false(cached);
	unwind_table_free(table, size);
}

/* ---- damaged images ---- */

static uint8_t *read_library(const char *path, size_t *size)
{
	FILE *file = fopen(path, "rb");
	uint8_t *bytes;
	struct stat status;

	assert_non_null(file);
	assert_int_equal(fstat(fileno(file), &status), 0);
	*size = (size_t)status.st_size;
	bytes = malloc(*size);
	assert_non_null(bytes);
	assert_int_equal(fread(bytes, 1, *size, file), *size);
	fclose(file);
	return bytes;
}

static void compile_or_refuse(const uint8_t *bytes, size_t size)
{
	struct unwind_table *table;
	size_t table_size;

	if (unwind_compile_table_of_file_bytes(bytes, size, &table, &table_size) == 0) {
		assert_true(unwind_table_is_valid(table, table_size));
		unwind_table_free(table, table_size);
	}
	if (unwind_compile_table_of_mapped_image(bytes, size, &table, &table_size) == 0) {
		assert_true(unwind_table_is_valid(table, table_size));
		unwind_table_free(table, table_size);
	}
}

static void test_damaged_images(void **state)
{
	uint64_t random = 1;
	size_t size;
	uint8_t *bytes;

	(void)state;
	bytes = read_library("/proc/self/exe", &size);
	for (size_t cut = 0; cut < size; cut = cut < 2048 ? cut + 8 : cut + 4099) {
		uint8_t *copy = malloc(cut + 1); /* its end is where a checker looks */

		assert_non_null(copy);
		memcpy(copy, bytes, cut);
		compile_or_refuse(copy, cut);
		free(copy);
	}
	for (int round = 0; round < 200; round++) {
		for (int flip = 0; flip < 50; flip++) {
			random = random * 6364136223846793005u + 1442695040888963407u;
			bytes[(random >> 20) % size] ^= (uint8_t)(1u << (random >> 61));
		}
		memcpy(bytes, "\177ELF\2\1\1", 7);
		compile_or_refuse(bytes, size);
	}
	free(bytes);
}

/* ---- the pc cache ---- */

static uint32_t cached_rule(const struct unwind_cache *cache, uint64_t key, uint64_t generation)
{
	uint64_t hash = unwind_cache_hash_key(key);
	uint64_t rule =
		unwind_cache_load_entry(cache, hash) ^
		unwind_cache_compute_tag(hash, unwind_cache_generation_to_tag_bits(generation));

	return rule >> UNWIND_CACHE_RULE_BITS ? 0 : (uint32_t)rule;
}

static void test_cache_is_exact(void **state)
{
	struct unwind_cache *cache = unwind_cache_create();
	uint64_t random = 7;

	(void)state;
	assert_non_null(cache);
	assert_int_equal(cached_rule(cache, 0, 0), 0);
	for (int round = 0; round < 200000; round++) {
		uint64_t key, other;
		uint32_t rule;

		random = random * 6364136223846793005u + 1442695040888963407u;
		key = random >> 17;
		rule = 1 + (uint32_t)round % ((1u << UNWIND_CACHE_RULE_BITS) - 1);
		other = key ^ 1ull << round % 47;
		unwind_cache_store_rule(cache, key, unwind_cache_generation_to_tag_bits(5), rule);
		assert_int_equal(cached_rule(cache, key, 5), rule);
		assert_int_equal(cached_rule(cache, key, 6), 0);
		unwind_cache_store_rule(cache, other, unwind_cache_generation_to_tag_bits(5),
					rule ^ 1 ? rule ^ 1 : 3);
		assert_int_not_equal(cached_rule(cache, key, 5), rule ^ 1);
	}
	unwind_cache_clear(cache);
	assert_int_equal(cached_rule(cache, random >> 17, 5), 0);
}

/* ---- Go ---- */

struct emitted_rows {
	uint64_t begin[8];
	struct unwind_rule rules[8];
	unsigned count;
};

static bool note_row(void *context, uint64_t begin, const struct unwind_rule *rule)
{
	struct emitted_rows *rows = context;

	assert_in_range(rows->count, 0, 7);
	rows->begin[rows->count] = begin;
	rows->rules[rows->count++] = *rule;
	return true;
}

/* One function in the format of Go 1.18, with the values of pcsp at 8 and its description at 64: 0
 * for 4 bytes, then a frame of 24 bytes, then 0 again. */
static struct emitted_rows rows_of_go_function(uint8_t flags, bool is_cut)
{
	uint8_t bytes[128] = {[8] = 2, 4, 48, 20, 47, 1, 0};
	struct unwind_go_table table = {.bytes = bytes,
					.size = is_cut ? 10 : sizeof(bytes),
					.sp_values_field = 16,
					.flag_field = 37};
	struct emitted_rows rows = {.count = 0};
	const struct cfi_row_sink sink = {note_row, &rows};

	bytes[64 + 16] = 8;
	bytes[64 + 37] = flags;
	assert_true(unwind_go_emit_rows(&table, 64, 0x401000, 0x401019, &sink));
	return rows;
}

static void test_frames_of_go(void **state)
{
	struct emitted_rows rows = rows_of_go_function(0, false);

	(void)state;
	assert_int_equal(rows.count, 3);
	assert_int_equal(rows.begin[0], 0x401000);
	assert_int_equal(rows.rules[0].cfa.value, 8);
	assert_int_equal(rows.rules[0].bp.kind, UNWIND_LOCATION_SAME_REGISTER);
	assert_int_equal(rows.begin[1], 0x401004);
	assert_int_equal(rows.rules[1].cfa.value, 32);
	assert_int_equal(rows.rules[1].bp.kind, UNWIND_LOCATION_AT_CFA_OFFSET);
	assert_int_equal(rows.rules[1].bp.value, -16);
	assert_int_equal(rows.begin[2], 0x401018);
	assert_int_equal(rows.rules[2].cfa.value, 8);
	/* abi.FuncFlagTopFrame: nobody called it. abi.FuncFlagSPWrite: nothing is known. */
	rows = rows_of_go_function(1, false);
	assert_int_equal(rows.count, 1);
	assert_int_equal(rows.rules[0].cfa.kind, UNWIND_LOCATION_UNDEFINED);
	rows = rows_of_go_function(2, false);
	assert_int_equal(rows.count, 0);
	/* Bytes that are not there give no rows. */
	rows = rows_of_go_function(0, true);
	assert_int_equal(rows.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stored_and_found), cmocka_unit_test(test_damage),
		cmocka_unit_test(test_refusals),         cmocka_unit_test(test_damaged_images),
		cmocka_unit_test(test_cache_is_exact),   cmocka_unit_test(test_frames_of_go),
	};

	return cmocka_run_group_tests(tests, prepare, clean);
}
