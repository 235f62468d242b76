/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Maps of programs whose functions, lines and inlined calls are known, in every form that debug
 * information comes in; looked up as processes do.
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

#include "binary/causal/map.h"
#include "causal/map_file.h"
#include "common/array.h"

struct fixture {
	struct causal_module module;
	struct causal_scopes *scopes;
	struct causal_targets *targets;
	void *map;
	size_t size;
	int error;
	struct problem problem;
};

static const char *sample_path(const char *name)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", getenv("SAMPLES"), name);
	return path;
}

static struct causal_scope_request everything(enum causal_granularity granularity)
{
	return (struct causal_scope_request){.lists[CAUSAL_SCOPE_BINARY] = "%ALL%",
					     .granularity = granularity};
}

static void fixture_make(struct fixture *fixture, const char *sample,
			 const struct causal_scope_request *request)
{
	*fixture = (struct fixture){0};
	assert_int_equal(causal_scopes_create(request, &fixture->scopes, &fixture->problem), 0);
	assert_int_equal(causal_targets_create(&fixture->targets), 0);
	assert_int_equal(causal_module_open(&fixture->module, sample_path(sample),
					    sample_path(sample), NULL, &fixture->problem),
			 0);
	fixture->error =
		causal_target_map_build(&fixture->module, fixture->scopes, fixture->targets,
					&fixture->map, &fixture->size, &fixture->problem);
	if (!fixture->error)
		assert_true(causal_map_file_is_valid(fixture->map, fixture->size));
}

static void fixture_free(struct fixture *fixture)
{
	free(fixture->map);
	causal_module_close(&fixture->module);
	causal_scopes_destroy(fixture->scopes);
	causal_targets_destroy(fixture->targets);
}

/* All of the address's targets: "innermost middle outermost", or "sample.c:14 sample.c:20". */
static const char *targets_at(const struct fixture *fixture, uint64_t vaddr)
{
	static char text[1024];
	const uint32_t *ids;
	uint64_t offset;
	size_t used = 0;

	text[0] = '\0';
	assert_true(elf_vaddr_to_offset(fixture->module.file, vaddr, &offset));
	for (ids = causal_map_file_find_targets(fixture->map, offset); *ids; ids++) {
		struct causal_target target;
		const char *slash;

		assert_true(causal_targets_copy_target(fixture->targets, *ids, &target));
		slash = target.file ? strrchr(target.file, '/') : NULL;
		if (causal_scopes_get_granularity(fixture->scopes) == CAUSAL_GRANULARITY_LINES)
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s:%u",
						 used ? " " : "", slash + 1, target.line);
		else
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s",
						 used ? " " : "", target.name);
	}
	return text;
}

/* Of a label that the sample has. A file that was stripped of it has the code at the same place. */
static uint64_t label(const char *name)
{
	struct elf_file *file;
	uint64_t address = 0;

	assert_int_equal(elf_open(sample_path("sample"), &file, NULL), 0);
	const struct elf_section *table = elf_section_find(file, ".symtab"),
				 *strings = elf_section_find(file, ".strtab");
	struct elf_section_data entries, names;
	assert_int_equal(elf_section_read(file, table, &entries), 0);
	assert_int_equal(elf_section_read(file, strings, &names), 0);
	for (size_t i = 0; i + sizeof(Elf64_Sym) <= entries.size; i += sizeof(Elf64_Sym)) {
		Elf64_Sym symbol;

		memcpy(&symbol, entries.bytes + i, sizeof(symbol));
		if (!strcmp((const char *)names.bytes + symbol.st_name, name))
			address = symbol.st_value;
	}
	elf_section_data_deinit(&entries);
	elf_section_data_deinit(&names);
	elf_close(file);
	assert_int_not_equal(address, 0);
	return address;
}

static void check(const char *sample, const struct causal_scope_request *request,
		  const char *const (*expected)[2], size_t count)
{
	struct fixture fixture;

	fixture_make(&fixture, sample, request);
	if (fixture.error)
		fail_msg("%s: %s", sample, fixture.problem.text);
	for (size_t i = 0; i < count; i++) {
		const char *got = targets_at(&fixture, label(expected[i][0]));

		if (strcmp(got, expected[i][1]))
			fail_msg("%s, %s: '%s' is not '%s'", sample, expected[i][0], got,
				 expected[i][1]);
	}
	fixture_free(&fixture);
}

#define CHECK(sample, request, expected)                                                           \
	check(sample, request, expected, sizeof(expected) / sizeof(*(expected)))

static const char *const debug_forms[] = {"sample", "dwarf4", "gabi", "zdebug", "beside/program"};

static void functions_through_inlined_calls(void **state)
{
	static const char *const expected[][2] = {
		{"mark_innermost", "innermost middle outermost"},
		{"mark_middle", "middle outermost"},
		{"mark_outermost", "outermost"},
		{"mark_local", "local_function"},
		{"mark_nested", "nested"},
		{"main", "main"},
	};
	struct causal_scope_request request = everything(CAUSAL_GRANULARITY_FUNCTIONS);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(debug_forms); i++)
		CHECK(debug_forms[i], &request, expected);
}

static void lines_through_inlined_calls(void **state)
{
	static const char *const expected[][2] = {
		{"mark_innermost", "sample.c:14 sample.c:20 sample.c:28"},
		{"mark_middle", "sample.c:21 sample.c:28"},
		{"mark_outermost", "sample.c:27"},
		{"mark_local", "sample.c:33"},
		{"mark_nested", "sample.c:44"},
	};
	struct causal_scope_request request = everything(CAUSAL_GRANULARITY_LINES);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(debug_forms); i++)
		CHECK(debug_forms[i], &request, expected);
}

static void functions_without_debug_information(void **state)
{
	static const char *const exported[][2] = {{"mark_middle", "outermost"},
						  {"mark_local", "local_function"}};
	struct causal_scope_request request = everything(CAUSAL_GRANULARITY_FUNCTIONS);
	struct fixture fixture;
	char name[64];

	(void)state;
	CHECK("mini", &request, exported);
	fixture_make(&fixture, "alone/program", &request);
	assert_int_equal(fixture.error, 0);
	snprintf(name, sizeof(name), "[program+0x%lx]", (unsigned long)label("outermost"));
	assert_string_equal(targets_at(&fixture, label("mark_innermost")), name);
	fixture_free(&fixture);
}

static void lines_need_debug_information(void **state)
{
	struct causal_scope_request request = everything(CAUSAL_GRANULARITY_LINES);
	struct fixture fixture;

	(void)state;
	fixture_make(&fixture, "alone/program", &request);
	assert_int_equal(fixture.error, -ENODATA);
	assert_non_null(strstr(fixture.problem.text, "alone/program"));
	assert_non_null(strstr(fixture.problem.text, "-g"));
	fixture_free(&fixture);
}

static void scopes_take_functions(void **state)
{
	static const char *const scope[][2] = {{"mark_innermost", "middle"},
					       {"mark_outermost", ""}};
	static const char *const exclude[][2] = {{"mark_innermost", "innermost outermost"},
						 {"mark_middle", "outermost"},
						 {"main", "main"}};
	static const char *const usual[][2] = {{"mark_local", "local_function"}, {"main", ""}};
	struct causal_scope_request request = everything(CAUSAL_GRANULARITY_FUNCTIONS);

	(void)state;
	request.lists[CAUSAL_SCOPE_FUNCTION] = "^mid";
	CHECK("sample", &request, scope);
	request = everything(CAUSAL_GRANULARITY_FUNCTIONS);
	request.lists[CAUSAL_EXCLUDE_FUNCTION] = "zzz; '^middle$'";
	CHECK("sample", &request, exclude);
	request = everything(CAUSAL_GRANULARITY_FUNCTIONS);
	request.excludes_internal_functions = true;
	CHECK("sample", &request, usual);
}

/* What is compiled into a program from libraries is not the program's own, unless it is asked for.
 */
static void libraries_are_no_targets(void **state)
{
	static const char *const own[] = {
		"order_all", "_ZN3app5parseEv",     /* app::parse() */
		"_Z5parseIiESt6vectorIT_SaIS1_EEi", /* std::vector<..> parse<int>(int) */
		"_ZN3appcvSsEv",                    /* app::operator std::string() */
		"_ZN49_$LT$app..Row$u20$as$u20$core..iter..Iterator$GT$4next17h0123456789abcdefE"};
	static const char *const others[] = {
		"_ZSt4sortIPiEvT_S1_",    /* void std::sort<int*>(int*, int*) */
		"_ZNSt3mapIiiE4findERKi", /* std::map<int, int>::find(int const&) */
		"_ZN9__gnu_cxx5__ops15_Iter_less_iterclIPiS3_EEbT_T0_",
		"_Znwm",
		"_ZN4core5slice4sort7recurse17h0123456789abcdefE",
		"_ZN45_$LT$alloc..Vec$u20$as$u20$core..Iterator$GT$4next17h0123456789abcdefE"};
	struct causal_scope_request request = {.excludes_internal_functions = true,
					       .lists[CAUSAL_SCOPE_BINARY] = "%MAIN%"};
	struct causal_scopes *scopes;

	(void)state;
	assert_int_equal(causal_scopes_create(&request, &scopes, NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		assert_true(causal_function_is_in_scope(scopes, own[i]));
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		assert_false(causal_function_is_in_scope(scopes, others[i]));
	assert_int_equal(causal_scopes_judge_source_file(scopes, "/usr/include/c++/12/bits/a.h"),
			 CAUSAL_SOURCE_OUT_OF_SCOPE);
	assert_int_equal(causal_scopes_judge_source_file(scopes, "/home/x/usr/include/a.h"),
			 CAUSAL_SOURCE_IN_SCOPE);
	causal_scopes_destroy(scopes);
	request.lists[CAUSAL_SCOPE_FUNCTION] = "std::sort|order";
	assert_int_equal(causal_scopes_create(&request, &scopes, NULL), 0);
	assert_true(causal_function_is_in_scope(scopes, others[0]));
	assert_int_equal(causal_scopes_judge_source_file(scopes, "/usr/include/c++/12/bits/a.h"),
			 CAUSAL_SOURCE_IN_SCOPE);
	causal_scopes_destroy(scopes);
	request.lists[CAUSAL_SCOPE_FUNCTION] = NULL;
	request.lists[CAUSAL_SCOPE_BINARY] = "%MAIN% ; libx";
	assert_int_equal(causal_scopes_create(&request, &scopes, NULL), 0);
	assert_true(causal_function_is_in_scope(scopes, others[1]));
	causal_scopes_destroy(scopes);
}

static void scopes_take_sources(void **state)
{
	static const char *const one[][2] = {{"mark_innermost", "sample.c:20"},
					     {"mark_middle", ""},
					     {"mark_outermost", "sample.c:27"}};
	static const char *const all[][2] = {{"mark_local", "sample.c:33"}};
	static const char *const none[][2] = {{"mark_innermost", "sample.c:14 sample.c:20"},
					      {"mark_outermost", "sample.c:27"}};
	static const char *const functions[][2] = {{"mark_innermost", "middle"},
						   {"mark_middle", "middle"}};
	struct causal_scope_request request = everything(CAUSAL_GRANULARITY_LINES);
	struct fixture fixture;

	(void)state;
	request.lists[CAUSAL_SCOPE_SOURCE] = "sample.c:20\tsample\\.c:27";
	CHECK("sample", &request, one);
	request.lists[CAUSAL_SCOPE_SOURCE] = "sample.c";
	CHECK("sample", &request, all);
	request.lists[CAUSAL_EXCLUDE_SOURCE] = "sample.c:2[18]";
	CHECK("sample", &request, none);
	request = everything(CAUSAL_GRANULARITY_LINES);
	request.lists[CAUSAL_SCOPE_SOURCE] = "sample"; /* it does not end there */
	fixture_make(&fixture, "sample", &request);
	assert_int_equal(fixture.error, -ENOENT);
	fixture_free(&fixture);
	request = everything(CAUSAL_GRANULARITY_FUNCTIONS);
	request.lists[CAUSAL_SCOPE_SOURCE] = "sample.c:21";
	CHECK("sample", &request, functions);
}

static void scopes_take_binaries(void **state)
{
	struct causal_scope_request request = {0};
	struct causal_scopes *scopes;

	(void)state;
	assert_int_equal(causal_scopes_create(&request, &scopes, NULL), 0);
	assert_true(causal_binary_is_in_scope(scopes, "/bin/program", true));
	assert_false(causal_binary_is_in_scope(scopes, "/lib/libfast.so", false));
	causal_scopes_destroy(scopes);
	request.lists[CAUSAL_SCOPE_BINARY] = "libfast;%MAIN%";
	request.lists[CAUSAL_EXCLUDE_BINARY] = "old";
	assert_int_equal(causal_scopes_create(&request, &scopes, NULL), 0);
	assert_true(causal_binary_is_in_scope(scopes, "/bin/program", true));
	assert_true(causal_binary_is_in_scope(scopes, "/lib/libfast.so", false));
	assert_false(causal_binary_is_in_scope(scopes, "/lib/libc.so.6", false));
	assert_false(causal_binary_is_in_scope(scopes, "/old/libfast.so", false));
	causal_scopes_destroy(scopes);
	request = (struct causal_scope_request){.lists[CAUSAL_SCOPE_BINARY] = "%ALL%"};
	assert_int_equal(causal_scopes_create(&request, &scopes, NULL), 0);
	assert_true(causal_binary_is_in_scope(scopes, "/lib/libc.so.6", false));
	assert_false(causal_binary_is_in_scope(scopes, "/lib/kymo/libkymo.so", false));
	causal_scopes_destroy(scopes);
}

static void bad_expressions_are_shown(void **state)
{
	struct causal_scope_request request = {.lists[CAUSAL_EXCLUDE_SOURCE] = "fine;a(b",
					       .sources[CAUSAL_EXCLUDE_SOURCE] =
						       "--source-exclude"};
	struct causal_scopes *scopes;
	struct problem problem;

	(void)state;
	assert_int_equal(causal_scopes_create(&request, &scopes, &problem), -EINVAL);
	assert_non_null(strstr(problem.text, "--source-exclude"));
	assert_non_null(strstr(problem.text, "'a(b'"));
	assert_non_null(strstr(problem.text, "at character 2"));
}

static void targets_have_one_id(void **state)
{
	struct causal_targets *targets;
	struct causal_target target;
	uint32_t first, mangled;

	(void)state;
	assert_int_equal(causal_targets_create(&targets), 0);
	first = causal_targets_find_or_add_function(targets, "/bin/a", "f", "/x/a.c", 3);
	mangled = causal_targets_find_or_add_function(targets, "/bin/a", "_Z1fi", "/x/a.cc", 4);
	assert_int_equal(first, 1);
	assert_int_equal(causal_targets_find_or_add_function(targets, "/bin/a", "f", "/x/a.c", 9),
			 first);
	assert_int_not_equal(
		causal_targets_find_or_add_function(targets, "/bin/a", "f", "/x/b.c", 3), first);
	assert_int_not_equal(
		causal_targets_find_or_add_function(targets, "/lib/b", "f", "/x/a.c", 3), first);
	assert_int_equal(
		causal_targets_find_or_add_function(targets, "/bin/a", "_Z1fi", "/x/b.cc", 4),
		mangled);
	assert_int_equal(causal_targets_find_or_add_line(targets, "/bin/a", "f", "/x/a.c", 3), 5);
	assert_int_equal(causal_targets_find_or_add_line(targets, "/lib/b", "g", "/x/a.c", 3), 5);
	assert_true(causal_targets_copy_target(targets, mangled, &target));
	assert_string_equal(target.name, "f(int)");
	assert_string_equal(target.module, "/bin/a");
	assert_int_equal(target.line, 4);
	assert_false(causal_targets_copy_target(targets, 0, &target));
	assert_false(causal_targets_copy_target(targets, 6, &target));
	for (uint32_t i = 0; i < 5000; i++)
		assert_int_equal(
			causal_targets_find_or_add_line(targets, "/bin/a", NULL, "/x/c.c", i + 1),
			i + 6);
	assert_int_equal(causal_targets_get_count(targets), 5005);
	causal_targets_destroy(targets);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_through_inlined_calls),
		cmocka_unit_test(lines_through_inlined_calls),
		cmocka_unit_test(functions_without_debug_information),
		cmocka_unit_test(lines_need_debug_information),
		cmocka_unit_test(scopes_take_functions),
		cmocka_unit_test(libraries_are_no_targets),
		cmocka_unit_test(scopes_take_sources),
		cmocka_unit_test(scopes_take_binaries),
		cmocka_unit_test(bad_expressions_are_shown),
		cmocka_unit_test(targets_have_one_id),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
