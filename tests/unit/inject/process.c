/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Mappings and dynamic symbols of a process, read from its memory: this one.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "inject/process.h"

static const struct process_mapping *find_libc(const struct process_maps *maps)
{
	for (size_t i = 0; i < maps->count; i++) {
		if (process_path_is_libc(maps->list[i].path) && maps->list[i].offset == 0)
			return &maps->list[i];
	}
	return NULL;
}

static void finds_mappings(void **state)
{
	const struct process_mapping *mapping, *first;
	struct process_maps maps;

	(void)state;
	assert_int_equal(process_maps_read(getpid(), &maps), 0);
	for (size_t i = 1; i < maps.count; i++)
		assert_true(maps.list[i - 1].end <= maps.list[i].start);
	mapping = process_maps_find_by_address(&maps, (uint64_t)(uintptr_t)&memchr);
	assert_non_null(mapping);
	assert_true(mapping->executable);
	first = process_maps_find_start_of_file_below(&maps, mapping);
	assert_non_null(first);
	assert_string_equal(first->path, mapping->path);
	assert_null(process_maps_find_by_address(&maps, 1));
	process_maps_free(&maps);
	assert_true(process_maps_read(0x7fffffff, &maps) < 0);
}

static void finds_symbols(void **state)
{
	int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	const struct process_mapping *libc;
	struct process_symbols symbols;
	struct process_maps maps;
	void *library;

	(void)state;
	assert_true(memory >= 0);
	assert_int_equal(process_maps_read(getpid(), &maps), 0);
	libc = find_libc(&maps);
	assert_non_null(libc);
	assert_int_equal(process_symbols_read(memory, libc->start, &symbols), 0);
	/* libc's own, whatever a sanitizer puts in front of it */
	library = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
	assert_non_null(library);
	assert_true(process_symbols_find_address(&symbols, "free") ==
		    (uint64_t)(uintptr_t)dlsym(library, "free"));
	assert_true(process_symbols_find_address(&symbols, "__errno_location") ==
		    (uint64_t)(uintptr_t)dlsym(library, "__errno_location"));
	dlclose(library);
	assert_true(process_symbols_find_address(&symbols, "no_such_function") == 0);
	for (size_t i = 1; i < symbols.count; i++)
		assert_true(symbols.list[i - 1].start <= symbols.list[i].start);
	process_symbols_free(&symbols);
	/* memory that is no object, and none at all */
	assert_true(process_symbols_read(memory, (uint64_t)(uintptr_t)&maps, &symbols) < 0);
	assert_true(process_symbols_read(memory, 4096, &symbols) < 0);
	process_maps_free(&maps);
	close(memory);
}

static void reads_status(void **state)
{
	static const char text[] = "Name:\ta b\nUid:\t1\t2\t3\t4\nSeccomp:\t0\n";
	char value[8];

	(void)state;
	assert_true(process_read_status_field(text, "Name", value, sizeof(value)));
	assert_string_equal(value, "a b");
	assert_true(process_read_status_field(text, "Uid", value, sizeof(value)));
	assert_string_equal(value, "1\t2\t3\t4");
	assert_false(process_read_status_field(text, "Sec", value, sizeof(value)));
	assert_false(process_read_status_field("", "Name", value, sizeof(value)));
}

static void knows_names(void **state)
{
	(void)state;
	assert_true(process_path_is_loader("/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"));
	assert_true(process_path_is_libc("/lib/x86_64-linux-gnu/libc.so.6"));
	assert_true(process_path_is_libc("/lib/libc-2.31.so (deleted)"));
	assert_false(process_path_is_libc("/usr/lib/libcrypto.so.3"));
	assert_false(process_path_is_libc("libc.so.6"));
	assert_false(process_path_is_loader("[vdso]"));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_mappings),
		cmocka_unit_test(finds_symbols),
		cmocka_unit_test(reads_status),
		cmocka_unit_test(knows_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
