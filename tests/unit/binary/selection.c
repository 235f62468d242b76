/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Selection against plans that the test makes itself: each rule, their order, and the defects that
 * peers have (a module restriction that hides that of functions, expressions about instructions
 * that do nothing).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "binary/selection/defaults.h"
#include "binary/selection/pattern.h"
#include "binary/selection/selection.h"
#include "common/array.h"

/* A plan of functions of 64 bytes each from 0x1000 on, without code. */
enum { COUNT = 8, FIRST = 0x1000, SIZE = 64 };

struct fixture {
	struct plan plan;
	struct {
		struct plan_header header;
		struct plan_function functions[COUNT];
	} bytes;
	struct selection_request request;
	struct selection_module module;
};

static void fixture_make(struct fixture *fixture)
{
	memset(fixture, 0, sizeof(*fixture));
	fixture->bytes.header.functions =
		(struct plan_table){offsetof(__typeof__(fixture->bytes), functions), COUNT};
	for (unsigned i = 0; i < COUNT; i++)
		fixture->bytes.functions[i] = (struct plan_function){.vaddr = FIRST + i * SIZE,
								     .size = SIZE,
								     .instructions = 10 * (i + 1),
								     .stub = 0x4000};
	fixture->plan.header = &fixture->bytes.header;
	fixture->module =
		(struct selection_module){.path = "/opt/app/libwork.so.1", .plan = &fixture->plan};
}

static struct selection fixture_select(struct fixture *fixture)
{
	struct selection_rules *rules;
	struct selection selection;
	struct problem problem;

	assert_int_equal(selection_rules_create(&fixture->request, &rules, &problem), 0);
	assert_int_equal(
		selection_choose_functions(rules, &fixture->module, NULL, &selection, &problem), 0);
	selection_rules_destroy(rules);
	return selection;
}

static void fixture_expect(struct fixture *fixture, unsigned index, enum selection_verdict verdict)
{
	struct selection selection = fixture_select(fixture);

	assert_string_equal(
		selection_verdict_to_word((enum selection_verdict)selection.verdicts[index]),
		selection_verdict_to_word(verdict));
	assert_int_equal(selection.modes[index] != PLAN_MODE_OFF,
			 verdict == SELECTION_VERDICT_CHOSEN);
	selection_deinit(&selection);
}

static void test_everything_by_default(void **state)
{
	struct fixture fixture;
	struct selection selection;

	(void)state;
	fixture_make(&fixture);
	fixture.bytes.functions[3].stub = 0;
	fixture.bytes.functions[3].reason = PLAN_TOO_SHORT;
	fixture.bytes.functions[4].stub = 0;
	fixture.bytes.functions[4].reason = PLAN_FRAGMENT;
	selection = fixture_select(&fixture);
	assert_int_equal(selection.function_count, COUNT - 1);
	assert_int_equal(selection.patchable_count, COUNT - 2);
	assert_int_equal(selection.chosen_count, COUNT - 2);
	assert_int_equal(selection.verdicts[3], SELECTION_VERDICT_NOT_PATCHABLE);
	selection_deinit(&selection);
}

static void test_sizes(void **state)
{
	struct fixture fixture;

	(void)state;
	fixture_make(&fixture);
	fixture.request.minimum_instructions = 30;
	fixture_expect(&fixture, 1, SELECTION_VERDICT_TOO_FEW_INSTRUCTIONS);
	fixture_expect(&fixture, 2, SELECTION_VERDICT_CHOSEN);
	fixture.bytes.functions[1].flags = PLAN_FUNCTION_LOOPS;
	fixture_expect(&fixture, 1, SELECTION_VERDICT_CHOSEN);
	fixture.request.minimum_instructions_with_loops = 21;
	fixture_expect(&fixture, 1, SELECTION_VERDICT_TOO_FEW_INSTRUCTIONS);
	fixture.request.minimum_range_bytes = SIZE + 1;
	fixture_expect(&fixture, 7, SELECTION_VERDICT_TOO_FEW_BYTES);
	fixture_make(&fixture);
	fixture.bytes.functions[0].instructions = 1;
	fixture_expect(&fixture, 0, SELECTION_VERDICT_TINY);
}

static void test_modules(void **state)
{
	struct fixture fixture;

	(void)state;
	fixture_make(&fixture);
	fixture.module.path = "/lib/x86_64-linux-gnu/libc.so.6";
	fixture_expect(&fixture, 0, SELECTION_VERDICT_INTERNAL_LIBRARY);
	fixture.request.rule_expressions[SELECTION_RULE_INCLUDE] = ".";
	fixture_expect(&fixture, 0, SELECTION_VERDICT_INTERNAL_LIBRARY);
	fixture.request.rule_expressions[SELECTION_RULE_MODULE_INTERNAL_INCLUDE] = "libc\\.so";
	fixture_expect(&fixture, 0, SELECTION_VERDICT_CHOSEN);
	fixture_make(&fixture);
	fixture.module.path = "/usr/lib/libstdc++.so.6";
	fixture_expect(&fixture, 0, SELECTION_VERDICT_SYSTEM_MODULE);
	fixture.request.rule_expressions[SELECTION_RULE_MODULE_INCLUDE] = "libstdc";
	fixture_expect(&fixture, 0, SELECTION_VERDICT_CHOSEN);
	fixture.request.rule_expressions[SELECTION_RULE_MODULE_EXCLUDE] = "/usr/lib";
	fixture_expect(&fixture, 0, SELECTION_VERDICT_EXCLUDED);
	fixture_make(&fixture);
	fixture.request.internal_libraries_added = "libfoo, libwork.so";
	fixture_expect(&fixture, 0, SELECTION_VERDICT_INTERNAL_LIBRARY);
	fixture_make(&fixture);
	fixture.module.path = "/lib/libpthread-2.31.so";
	fixture_expect(&fixture, 0, SELECTION_VERDICT_INTERNAL_LIBRARY);
	fixture.request.internal_libraries_removed = "libpthread";
	fixture_expect(&fixture, 0, SELECTION_VERDICT_CHOSEN);
}

static void test_overlapping(void **state)
{
	struct fixture fixture;

	(void)state;
	fixture_make(&fixture);
	fixture.bytes.functions[2].size = SIZE + 1;
	fixture_expect(&fixture, 2, SELECTION_VERDICT_OVERLAPPING);
	fixture_expect(&fixture, 3, SELECTION_VERDICT_OVERLAPPING);
	fixture_expect(&fixture, 4, SELECTION_VERDICT_CHOSEN);
	fixture.request.allows_overlapping = true;
	fixture_expect(&fixture, 2, SELECTION_VERDICT_CHOSEN);
}

static void test_dynamic_callsites(void **state)
{
	struct fixture fixture;

	(void)state;
	fixture_make(&fixture);
	fixture.request.minimum_instructions = 1000;
	fixture.request.selects_dynamic_callsites = true;
	fixture.bytes.functions[2].flags = PLAN_FUNCTION_INDIRECT;
	fixture_expect(&fixture, 1, SELECTION_VERDICT_TOO_FEW_INSTRUCTIONS);
	fixture_expect(&fixture, 2, SELECTION_VERDICT_CHOSEN);
}

static void test_places(void **state)
{
	struct fixture fixture;
	struct selection selection;

	(void)state;
	fixture_make(&fixture);
	fixture.request.minimum_instructions = 40;
	fixture.request.minimum_instructions_with_loops = 40;
	fixture.bytes.functions[6] = (struct plan_function){
		.vaddr = FIRST + 2 * SIZE + 8, .stub = 0x5000, .flags = PLAN_FUNCTION_IS_LOOP};
	fixture.bytes.functions[7] = (struct plan_function){
		.vaddr = FIRST + 4 * SIZE + 8, .stub = 0x5000, .flags = PLAN_FUNCTION_IS_LOOP};
	selection = fixture_select(&fixture);
	assert_int_equal(selection.function_count, 6);
	assert_int_equal(selection.modes[6], PLAN_MODE_OFF); /* its function is too small */
	assert_int_equal(selection.modes[7], PLAN_MODE_COUNT);
	assert_int_equal(selection.modes[4], PLAN_MODE_FULL);
	selection_deinit(&selection);
}

/* ---- names: the test's own executable ---- */

__attribute__((noinline)) int selection_probe_alpha(int value);
__attribute__((noinline)) int selection_probe_beta(int value);

int selection_probe_alpha(int value)
{
	__asm__ volatile("" : "+r"(value));
	return value + 1;
}

int selection_probe_beta(int value)
{
	return selection_probe_alpha(value) * 3 + selection_probe_alpha(value + 1);
}

struct own {
	struct elf_file *file;
	struct plan plan;
	struct selection_symbol_names *names;
};

static void own_open(struct own *own)
{
	static const struct plan_options options;
	struct problem problem;

	assert_int_equal(elf_open("/proc/self/exe", &own->file, &problem), 0);
	assert_int_equal(plan_load_or_build(own->file, NULL, &options, &own->plan, &problem), 0);
	assert_int_equal(selection_symbol_names_load(own->file, NULL, &own->names), 0);
}

static void own_close(struct own *own)
{
	plan_close(&own->plan);
	selection_symbol_names_destroy(own->names);
	elf_close(own->file);
}

static void own_select(const struct own *own, const struct selection_rules *rules,
		       struct selection *ret)
{
	const struct selection_module module = {.path = "/opt/selection",
						.file = own->file,
						.plan = &own->plan,
						.is_program = true};
	struct problem problem;

	assert_int_equal(selection_choose_functions(rules, &module, own->names, ret, &problem), 0);
}

static enum selection_verdict own_verdict(const struct own *own,
					  const struct selection_request *request, const char *name,
					  enum plan_mode *ret_mode)
{
	enum selection_verdict verdict = SELECTION_VERDICT_COUNT;
	struct selection_rules *rules;
	struct selection selection;
	struct problem problem;

	assert_int_equal(selection_rules_create(request, &rules, &problem), 0);
	own_select(own, rules, &selection);
	for (size_t i = 0; i < selection.count; i++) {
		size_t count;
		const struct selection_symbol_name *found = selection_symbol_names_find_at(
			own->names, plan_get_functions(&own->plan)[i].vaddr, &count);

		if (!count || strcmp(found->mangled, name) != 0)
			continue;
		verdict = (enum selection_verdict)selection.verdicts[i];
		if (ret_mode)
			*ret_mode = (enum plan_mode)selection.modes[i];
	}
	selection_deinit(&selection);
	selection_rules_destroy(rules);
	return verdict;
}

static void expect_own(const struct own *own, const struct selection_request *request,
		       const char *name, enum selection_verdict verdict)
{
	assert_string_equal(selection_verdict_to_word(own_verdict(own, request, name, NULL)),
			    selection_verdict_to_word(verdict));
}

#define ALPHA "selection_probe_alpha"
#define BETA  "selection_probe_beta"

static void test_include_exclude_restrict(void **state)
{
	struct selection_request request = {.minimum_instructions = 1000000,
					    .minimum_instructions_with_loops = 1000000,
					    .main_function_name = "main"};
	struct own own;

	(void)state;
	own_open(&own);
	expect_own(&own, &request, BETA, SELECTION_VERDICT_TOO_FEW_INSTRUCTIONS);
	expect_own(&own, &request, "main", SELECTION_VERDICT_CHOSEN);
	request.rule_expressions[SELECTION_RULE_INCLUDE] = "probe_b";
	expect_own(&own, &request, BETA, SELECTION_VERDICT_CHOSEN);
	request.rule_expressions[SELECTION_RULE_RESTRICT] = "probe_a";
	expect_own(&own, &request, BETA, SELECTION_VERDICT_OUTSIDE_RESTRICTION);
	request.rule_expressions[SELECTION_RULE_MODULE_RESTRICT] = "/opt/"; /* the union of both */
	expect_own(&own, &request, BETA, SELECTION_VERDICT_CHOSEN);
	request.rule_expressions[SELECTION_RULE_MODULE_RESTRICT] = "/other/";
	expect_own(&own, &request, BETA, SELECTION_VERDICT_OUTSIDE_RESTRICTION);
	request.rule_expressions[SELECTION_RULE_RESTRICT] = "probe_b"; /* not hidden by -MR */
	expect_own(&own, &request, BETA, SELECTION_VERDICT_CHOSEN);
	request.rule_expressions[SELECTION_RULE_EXCLUDE] = "^" BETA "$";
	expect_own(&own, &request, BETA, SELECTION_VERDICT_EXCLUDED);
	own_close(&own);
}

static void test_callers(void **state)
{
	struct selection_request request = {.minimum_instructions = 1000000,
					    .minimum_instructions_with_loops = 1000000};
	struct own own;

	(void)state;
	own_open(&own);
	request.rule_expressions[SELECTION_RULE_CALLER_INCLUDE] = "^" ALPHA "$";
	expect_own(&own, &request, BETA, SELECTION_VERDICT_CHOSEN);
	expect_own(&own, &request, "main", SELECTION_VERDICT_TOO_FEW_INSTRUCTIONS);
	request.rule_expressions[SELECTION_RULE_CALLER_INCLUDE] =
		"^_cmocka_run_group_tests$"; /* by the PLT */
	expect_own(&own, &request, BETA, SELECTION_VERDICT_TOO_FEW_INSTRUCTIONS);
	expect_own(&own, &request, "main", SELECTION_VERDICT_CHOSEN);
	own_close(&own);
}

static void test_kinds_and_modes(void **state)
{
	struct selection_request request = {.linkage_bits = 1u << LINKAGE_LOCAL};
	enum plan_mode mode = PLAN_MODE_OFF;
	struct own own;

	(void)state;
	own_open(&own);
	expect_own(&own, &request, BETA, SELECTION_VERDICT_OTHER_LINKAGE);
	expect_own(&own, &request, "test_callers", SELECTION_VERDICT_CHOSEN);
	request.linkage_bits = 1u << LINKAGE_GLOBAL;
	expect_own(&own, &request, BETA, SELECTION_VERDICT_CHOSEN);
	request.visibility_bits = 1u << VISIBILITY_INTERNAL;
	expect_own(&own, &request, BETA, SELECTION_VERDICT_OTHER_VISIBILITY);
	request.visibility_bits = 0;
	request.rule_expressions[SELECTION_RULE_COUNT_CALLS_ONLY] = "probe";
	own_verdict(&own, &request, BETA, &mode);
	assert_int_equal(mode, PLAN_MODE_COUNT);
	request.rule_expressions[SELECTION_RULE_COUNT_CALLS_ONLY] = "";
	request.rule_expressions[SELECTION_RULE_RECORD_ARGUMENTS] = "probe";
	own_verdict(&own, &request, BETA, &mode);
	assert_int_equal(mode, PLAN_MODE_ARGUMENTS);
	own_close(&own);
}

static char *list_file(const char *text)
{
	static char path[64];
	int file;

	snprintf(path, sizeof(path), "/tmp/kymo-selection-XXXXXX");
	file = mkstemp(path);
	assert_true(file >= 0);
	assert_int_equal(write(file, text, strlen(text)), (ssize_t)strlen(text));
	close(file);
	return path;
}

static void test_lists(void **state)
{
	struct selection_request request = {.minimum_instructions = 1000000};
	struct own own;
	struct selection_rules *rules;
	struct problem problem;
	char *path;

	(void)state;
	own_open(&own);
	path = list_file("# one\n  " BETA "  # and why\n\n");
	request.list_file_paths = path;
	expect_own(&own, &request, BETA, SELECTION_VERDICT_CHOSEN);
	expect_own(&own, &request, ALPHA, SELECTION_VERDICT_NOT_ON_LIST);
	unlink(path);
	path = list_file("{\"modules\": [{\"module\": \"/elsewhere/selection\", \"functions\": "
			 "[{\"function\": \"x\", \"mangled\": \"" ALPHA "\"}]}, {\"module\": "
			 "\"other\", \"functions\": [{\"mangled\": \"" BETA "\"}]}]}");
	expect_own(&own, &request, ALPHA, SELECTION_VERDICT_CHOSEN);
	expect_own(&own, &request, BETA, SELECTION_VERDICT_NOT_ON_LIST);
	unlink(path);
	assert_int_not_equal(selection_rules_create(&request, &rules, &problem), 0);
	assert_non_null(strstr(problem.text, "cannot read the list"));
	path = list_file("{\"modules\": [");
	assert_int_not_equal(selection_rules_create(&request, &rules, &problem), 0);
	unlink(path);
	path = list_file("{\"functions\": []}");
	assert_int_not_equal(selection_rules_create(&request, &rules, &problem), 0);
	unlink(path);
	own_close(&own);
}

/* Names of one function count once, and those that are on the list twice as well. */
static void test_misses(void **state)
{
	struct selection_request request = {.minimum_instructions = 1000000};
	struct selection_rules *rules;
	struct selection selection;
	struct problem problem;
	const char *first;
	struct own own;
	size_t count;

	(void)state;
	own_open(&own);
	request.list_file_paths =
		list_file("{\"modules\": [{\"module\": \"/elsewhere/selection\", "
			  "\"functions\": [{\"mangled\": \"" ALPHA
			  "\", \"function_signature\": \"nobody\"}, {\"mangled\": "
			  "\"" ALPHA "\"}, {\"mangled\": \"zeta\"}]}]}");
	assert_int_equal(selection_rules_create(&request, &rules, &problem), 0);
	unlink(request.list_file_paths);
	assert_int_equal(selection_rules_count_missing(rules, &first, &count), 3);
	assert_int_equal(count, 3);
	own_select(&own, rules, &selection);
	selection_deinit(&selection);
	assert_int_equal(selection_rules_count_missing(rules, &first, &count), 1);
	assert_string_equal(first, "zeta");
	selection_rules_destroy(rules);
	request.list_file_paths = NULL;
	assert_int_equal(selection_rules_create(&request, &rules, &problem), 0);
	assert_int_equal(selection_rules_count_missing(rules, &first, &count), 0);
	selection_rules_destroy(rules);
	own_close(&own);
}

/* ---- small parts ---- */

static void test_bad_expressions(void **state)
{
	static const char *const bad[][2] = {{"a(b", "character 2: '(b'"},
					     {"ok[z", "character 3: '[z'"},
					     {"x{2,1}", "character 2: '{2,1}'"},
					     {"ab\\", "character 3: '\\'"}};
	struct selection_pattern pattern;
	struct problem problem;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_true(selection_pattern_init(&pattern, bad[i][0], "-I", &problem) < 0);
		assert_non_null(strstr(problem.text, bad[i][1]));
		assert_non_null(strstr(problem.text, "-I: "));
	}
}

static void test_readable_names(void **state)
{
	static const char *const names[][2] = {
		{"foo::bar(int) const", "foo::bar"},
		{"(anonymous namespace)::f(char)", "(anonymous namespace)::f"},
		{"A::operator()(int)", "A::operator()"},
		{"A::operator<(A const&) const", "A::operator<"},
		{"std::operator<<(std::ostream&, int)", "std::operator<<"},
		{"void f<int (*)(char)>(int)", "void f<int (*)(char)>"},
		{"g()::{lambda(int)#1}::operator()(int) const", "g"},
		{"core::fmt::write", "core::fmt::write"},
	};
	struct selection_pattern pattern;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char *plain = selection_copy_plain_name(names[i][0]);

		assert_string_equal(plain, names[i][1]);
		free(plain);
	}
	assert_int_equal(selection_pattern_init(&pattern, "^ns::work\\(int\\)$", "", NULL), 0);
	assert_true(selection_pattern_matches_symbol(&pattern, "_ZN2ns4workEi"));
	selection_pattern_deinit(&pattern);
	assert_int_equal(selection_pattern_init(&pattern, "^ns::work$", "", NULL), 0);
	assert_true(selection_pattern_matches_symbol(&pattern, "_ZN2ns4workEi"));
	assert_false(selection_pattern_matches_symbol(&pattern, "_ZN2ns5worksEi"));
	selection_pattern_deinit(&pattern);
}

static void test_defaults(void **state)
{
	char family[64];

	(void)state;
	selection_copy_library_base_name("/lib/libc-2.31.so", family);
	assert_string_equal(family, "libc");
	selection_copy_library_base_name("libstdc++.so.6.0.30", family);
	assert_string_equal(family, "libstdc++");
	selection_copy_library_base_name("/lib64/ld-linux-x86-64.so.2", family);
	assert_true(selection_family_is_needed_by_kymo(family));
	selection_copy_library_base_name("/opt/libcurl.so.4", family);
	assert_false(selection_family_is_needed_by_kymo(family) ||
		     selection_family_is_system_library(family));
	assert_true(selection_is_runtime_routine("frame_dummy"));
	assert_true(selection_is_runtime_routine("_ZNSt6vectorIiSaIiEE13_M_insert_auxEv"));
	assert_false(selection_is_runtime_routine("_ZNSt6vectorIiSaIiEE9push_backERKi"));
	assert_false(selection_is_runtime_routine("_ZN4work6_M_runEv"));
	assert_true(selection_is_runtime_routine("_ZThn16_N1A1fEv"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_everything_by_default),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_modules),
		cmocka_unit_test(test_overlapping),
		cmocka_unit_test(test_dynamic_callsites),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_include_exclude_restrict),
		cmocka_unit_test(test_callers),
		cmocka_unit_test(test_kinds_and_modes),
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_misses),
		cmocka_unit_test(test_bad_expressions),
		cmocka_unit_test(test_readable_names),
		cmocka_unit_test(test_defaults),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
