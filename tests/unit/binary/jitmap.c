/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Perf maps and jitdumps, whole and torn, and code that replaces other code.
 */
#include "binary/jit/jit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>
#include <errno.h>

#include "analysis/symbols/symbols.h"

static const char *name_at(const struct jitmap *map, uint64_t address, uint64_t time)
{
	const struct jitmap_code *code = jitmap_find_code(map, address, time);
	return code ? code->name : "-";
}

static struct jitmap *from_text(const char *text)
{
	struct jitmap *map;
	assert_int_equal(jitmap_create(&map), 0);
	assert_int_equal(jitmap_add_perf_map_memory(map, text, strlen(text)), 0);
	assert_int_equal(jitmap_sort_entries(map), 0);
	return map;
}

static void perf_map_lines(void **state)
{
	(void)state;
	struct jitmap *map = from_text("1000 10 first function\n"
				       "0x1010 0x10 second\r\n"
				       "not a line\n"
				       "2000 0 empty\n"
				       "ffffffffffffffff 2 wraps\n"
				       "11111111111111111 2 too long a number\n"
				       "1004 4 later\n"
				       "3000 8 torn but usable");
	assert_int_equal(jitmap_get_entry_count(map), 4);
	assert_string_equal(name_at(map, 0x1000, 0), "first function");
	assert_string_equal(name_at(map, 0x1005, 0), "later"); /* later lines override */
	assert_string_equal(name_at(map, 0x1008, 0), "first function");
	assert_string_equal(name_at(map, 0x101f, 0), "second");
	assert_string_equal(name_at(map, 0x1020, 0), "-");
	assert_string_equal(name_at(map, 0x3007, 5), "torn but usable");
	assert_string_equal(name_at(map, 0xfff, 0), "-");
	jitmap_destroy(map);
}

struct dump {
	uint8_t bytes[4096];
	size_t size;
};

static void put(struct dump *dump, const void *bytes, size_t size)
{
	memcpy(dump->bytes + dump->size, bytes, size);
	dump->size += size;
}

static void put32(struct dump *dump, uint32_t value)
{
	put(dump, &value, sizeof(value));
}

static void put64(struct dump *dump, uint64_t value)
{
	put(dump, &value, sizeof(value));
}

static void begin(struct dump *dump, uint64_t flags)
{
	*dump = (struct dump){.size = 0};
	put32(dump, 0x4a695444);
	put32(dump, 1);
	put32(dump, 40);
	put32(dump, 62);
	put32(dump, 0);
	put32(dump, 42);
	put64(dump, 0);
	put64(dump, flags);
}

static void record(struct dump *dump, uint32_t id, uint32_t payload, uint64_t time)
{
	put32(dump, id);
	put32(dump, 16 + payload);
	put64(dump, time);
}

static void load(struct dump *dump, uint64_t time, uint64_t address, uint64_t size, uint64_t index,
		 const char *name)
{
	record(dump, 0, 40 + (uint32_t)strlen(name) + 1, time);
	put32(dump, 42);
	put32(dump, 42);
	put64(dump, address);
	put64(dump, address);
	put64(dump, size);
	put64(dump, index);
	put(dump, name, strlen(name) + 1);
}

static void move(struct dump *dump, uint64_t time, uint64_t from, uint64_t to, uint64_t size,
		 uint64_t index)
{
	record(dump, 1, 48, time);
	put32(dump, 42);
	put32(dump, 42);
	put64(dump, to);
	put64(dump, from);
	put64(dump, to);
	put64(dump, size);
	put64(dump, index);
}

static struct jitmap *from_dump(const struct dump *dump)
{
	struct jitmap *map;
	assert_int_equal(jitmap_create(&map), 0);
	assert_int_equal(jitmap_add_jitdump_memory(map, dump->bytes, dump->size), 0);
	assert_int_equal(jitmap_sort_entries(map), 0);
	return map;
}

static void code_replaced_and_moved(void **state)
{
	(void)state;
	struct dump dump;
	begin(&dump, 0);
	load(&dump, 100, 0x1000, 0x40, 1, "old");
	move(&dump, 200, 0x1000, 0x2000, 0x40, 1);
	load(&dump, 300, 0x1000, 0x20, 2, "new");
	move(&dump, 400, 0x7777, 0x8888, 0x40, 9); /* of nothing */
	struct jitmap *map = from_dump(&dump);
	assert_int_equal(jitmap_get_entry_count(map), 3);
	assert_string_equal(name_at(map, 0x1010, 150), "old");
	assert_string_equal(name_at(map, 0x1010, 300), "new");
	assert_string_equal(name_at(map, 0x1010, 50), "old"); /* clocks read a moment apart */
	assert_string_equal(name_at(map, 0x1010, 0), "new");
	assert_string_equal(name_at(map, 0x2010, 500), "old");
	assert_string_equal(name_at(map, 0x8888, 500), "-");
	jitmap_destroy(map);
}

static void lines_of_code(void **state)
{
	(void)state;
	struct dump dump;
	const char *file;
	uint32_t line;
	begin(&dump, 0);
	record(&dump, 2, 16 + 16 + sizeof("/a/b.js") + 16 + 2, 90);
	put64(&dump, 0x1000);
	put64(&dump, 2);
	put64(&dump, 0x1000);
	put32(&dump, 7);
	put32(&dump, 0);
	put(&dump, "/a/b.js", sizeof("/a/b.js"));
	put64(&dump, 0x1010);
	put32(&dump, 8);
	put32(&dump, 0);
	put(&dump, "\xff", 2); /* the same file */
	load(&dump, 100, 0x1000, 0x40, 1, "f");
	move(&dump, 200, 0x1000, 0x5000, 0x40, 1);
	struct jitmap *map = from_dump(&dump);
	jitmap_find_line(jitmap_find_code(map, 0x100f, 100), 0x100f, &file, &line);
	assert_string_equal(file, "/a/b.js");
	assert_int_equal(line, 7);
	jitmap_find_line(jitmap_find_code(map, 0x5010, 300), 0x5010, &file, &line);
	assert_string_equal(file, "/a/b.js");
	assert_int_equal(line, 8);
	jitmap_destroy(map);
}

static void torn_and_foreign_dumps(void **state)
{
	(void)state;
	struct dump dump;
	begin(&dump, 0);
	load(&dump, 100, 0x1000, 0x40, 1, "whole");
	size_t whole = dump.size;
	load(&dump, 200, 0x3000, 0x40, 2, "torn");
	for (size_t size = whole; size < dump.size; size++) {
		struct dump cut = dump;
		cut.size = size;
		struct jitmap *map = from_dump(&cut);
		assert_int_equal(jitmap_get_entry_count(map), 1);
		assert_string_equal(name_at(map, 0x1000, 0), "whole");
		jitmap_destroy(map);
	}
	const struct foreign_open_policy how = {.directory = AT_FDCWD};
	struct jitmap *map;
	assert_int_equal(jitmap_create(&map), 0);
	dump.bytes[0] ^= 0xff;
	assert_int_equal(jitmap_add_jitdump_memory(map, dump.bytes, dump.size), -EINVAL);
	assert_int_equal(jitmap_add_jitdump_memory(map, "", 0), -EINVAL);
	assert_int_equal(jitmap_add_perf_map(map, "/nonexistent", &how), -ENOENT);
	jitmap_destroy(map);
}

static void cycles_are_no_times(void **state)
{
	(void)state;
	struct dump dump;
	begin(&dump, 1);
	load(&dump, 100, 0x1000, 0x40, 1, "first");
	move(&dump, 200, 0x1000, 0x2000, 0x40, 1);
	load(&dump, 5, 0x1000, 0x40, 2, "second");
	struct jitmap *map = from_dump(&dump);
	assert_string_equal(name_at(map, 0x1000, 50), "second");
	assert_string_equal(name_at(map, 0x2000, 50), "first");
	jitmap_destroy(map);
}

static void symbolized_through_the_session(void **state)
{
	(void)state;
	FILE *file = fopen("perf-4242.map", "w");
	assert_non_null(file);
	fputs("1000 10 Function:*work a.js:3\n2000 10 _Z4workv\n", file);
	fclose(file);
	uint64_t pcs[] = {0x2001, 0x1000, 0x1fff, 0x1001};
	struct symbolizer_jit_request request = {
		.pid = 4242, .session_directory = ".", .pcs = pcs, .count = 4};
	struct symbolizer_request_result result;
	assert_int_equal(symbolize_jit_code(&request, &result, NULL), 0);
	assert_int_equal(result.unresolved_chain_count, 1);
	assert_int_equal(result.chains[2].count, 0);
	const struct symbolizer_frame *frames = result.frames;
	assert_string_equal(frames[result.chains[0].first].function, "work()");
	assert_string_equal(frames[result.chains[1].first].function, "Function:*work a.js:3");
	assert_int_equal(frames[result.chains[1].first].function_id,
			 frames[result.chains[3].first].function_id);
	symbolizer_result_deinit(&result);
	remove("perf-4242.map");
	assert_int_equal(symbolize_jit_code(&request, &result, NULL), 0);
	assert_int_equal(result.unresolved_chain_count, 4);
	assert_non_null(result.advice);
	symbolizer_result_deinit(&result);
}

static void older_maps_are_of_another_process(void **state)
{
	struct stat map = {.st_mtim = {1000, 500000000}};

	(void)state;
	assert_false(jit_map_predates_process(&map, 0));
	assert_false(jit_map_predates_process(&map, UINT64_C(1000500000000)));
	assert_false(jit_map_predates_process(&map, UINT64_C(1000510000000)));
	assert_true(jit_map_predates_process(&map, UINT64_C(1001000000000)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(perf_map_lines),
		cmocka_unit_test(code_replaced_and_moved),
		cmocka_unit_test(lines_of_code),
		cmocka_unit_test(torn_and_foreign_dumps),
		cmocka_unit_test(cycles_are_no_times),
		cmocka_unit_test(symbolized_through_the_session),
		cmocka_unit_test(older_maps_are_of_another_process),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
