/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Progress points that the user names: what is one, and where they are in a program.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <limits.h>

#include "binary/causal/places.h"
#include "common/array.h"

static const char *sample_path(const char *name)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", getenv("SAMPLES"), name);
	return path;
}

static void places_are_read(void **state)
{
	struct causal_places places = {0};
	struct problem problem;

	(void)state;
	assert_int_equal(causal_named_places_add_from_text(&places, "ns::f", "-p", &problem), 0);
	assert_int_equal(causal_named_places_add_from_text(&places, "src/a.c:12", "-p", &problem),
			 0);
	assert_int_equal(causal_named_places_add_from_text(&places, "latency:f<int, 2>(a, b),b.c:3",
							   "-p", &problem),
			 0);
	assert_int_equal(places.count, 4);
	assert_string_equal(places.list[0].function, "ns::f");
	assert_string_equal(places.list[0].name, "ns::f");
	assert_int_equal(places.list[0].kind, CAUSAL_POINT_PROGRESS);
	assert_null(places.list[1].function);
	assert_string_equal(places.list[1].file, "src/a.c");
	assert_int_equal(places.list[1].line, 12);
	assert_string_equal(places.list[2].function, "f<int, 2>(a, b)");
	assert_int_equal(places.list[2].kind, CAUSAL_POINT_BEGIN);
	assert_string_equal(places.list[3].file, "b.c");
	assert_int_equal(places.list[3].kind, CAUSAL_POINT_END);
	assert_string_equal(places.list[2].name, "f<int, 2>(a, b),b.c:3");
	assert_string_equal(places.list[3].name, places.list[2].name);
	causal_named_places_deinit(&places);
}

static void mistakes_are_shown(void **state)
{
	static const char *const mistakes[] = {"",           "a.c:12x",    "latency:f",
					       "latency:f,", "latency:,f", "a.c:99999999999"};
	struct causal_places places = {0};
	char long_name[2 * CAUSAL_NAME_SIZE];
	struct problem problem;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(mistakes); i++) {
		problem.text[0] = '\0';
		assert_int_equal(causal_named_places_add_from_text(&places, mistakes[i],
								   "--progress", &problem),
				 -EINVAL);
		assert_non_null(strstr(problem.text, "--progress"));
	}
	memset(long_name, 'f', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	assert_int_equal(causal_named_places_add_from_text(&places, long_name, "-p", &problem),
			 -EINVAL);
	causal_named_places_deinit(&places);
}

/* How many addresses one place has; the first of them in *ret. */
static int find(const char *sample, const char *text, uint64_t *ret)
{
	struct causal_places places = {0};
	struct causal_named_place_address found[8];
	struct causal_module module;
	struct problem problem;
	int count;

	assert_int_equal(causal_named_places_add_from_text(&places, text, "-p", &problem), 0);
	assert_int_equal(causal_module_open(&module, sample_path(sample), sample, NULL, &problem),
			 0);
	count = causal_named_places_find_addresses(&places, &module, found, 8);
	if (count > 0)
		assert_true(elf_offset_to_vaddr(module.file, found[0].offset, ret));
	for (int i = 0; i < count; i++)
		assert_int_equal(found[i].is_function, places.list[0].function != NULL);
	causal_module_close(&module);
	causal_named_places_deinit(&places);
	return count;
}

static uint64_t address_of(const char *symbol)
{
	uint64_t address = 0;

	assert_int_equal(find("sample", symbol, &address), 1);
	return address;
}

static void functions_are_found(void **state)
{
	uint64_t address;

	(void)state;
	assert_int_equal(find("sample", "outermost", &address), 1);
	assert_int_equal(find("sample", "__outermost_alias", &address), 1);
	assert_int_equal(address, address_of("outermost"));
	assert_int_equal(find("mini", "local_function", &address), 1);
	assert_int_equal(address, address_of("local_function"));
	assert_int_equal(find("beside/program", "local_function", &address), 1);
	assert_int_equal(find("sample", "innermost", &address), 0); /* inlined everywhere */
	assert_int_equal(find("sample", "outer", &address), 0);
	assert_int_equal(find("sample", "printf", &address), 0); /* another library's */
	assert_int_equal(find("cplusplus", "main", &address), 1);
}

static void lines_are_found(void **state)
{
	uint64_t address, other;

	(void)state;
	assert_int_equal(find("sample", "sample.c:33", &address), 1);
	assert_true(address >= address_of("local_function") &&
		    address < address_of("local_function") + 32);
	assert_int_equal(find("sample", "sample.c:14", &address), 1);
	assert_true(address >= address_of("outermost"));
	/* a comment: the next line with code */
	assert_int_equal(find("sample", "sample.c:29", &other), 1);
	assert_int_equal(find("sample", "ample.c:33", &address), 0);
	assert_int_equal(find("sample", "binary/sample.c:33", &address), 1);
	assert_int_equal(find("sample", "sample.c:4000", &address), 0);
	assert_int_equal(find("mini", "sample.c:33", &address), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(places_are_read),
		cmocka_unit_test(mistakes_are_shown),
		cmocka_unit_test(functions_are_found),
		cmocka_unit_test(lines_are_found),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
