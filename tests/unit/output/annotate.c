/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Which function a name means, and what its lines cost: recursion, inlined calls, other functions
 * between.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "output/annotate/annotate.h"
#include "output/annotate/line_costs.h"

static struct model_module modules[] = {{.name = "libone.so", .path = "/lib/libone.so"},
					{.name = "libtwo.so", .path = "/lib/libtwo.so"}};
static struct model_process processes[] = {{.executable = "/bin/program", .name = "program"}};

/* One function a frame; the name that each of `means` is meant by is tried. */
static const struct {
	const char *function;
	enum model_frame_kind kind;
	const char *names[4];
} named[] = {
	{"parse", FRAME_NATIVE, {"parse"}},
	{"run_kernel.isra.0", FRAME_NATIVE, {"run_kernel", "run_kernel.isra.0"}},
	{"ns::reader::take(int, char const*) const",
	 FRAME_NATIVE,
	 {"ns::reader::take", "take", "ns::reader::take(int, char const*) const"}},
	{"(anonymous namespace)::inner::work(long)",
	 FRAME_NATIVE,
	 {"(anonymous namespace)::inner::work", "work"}},
	{"double mean<double, std::vector<double> >(std::vector<double> const&)",
	 FRAME_NATIVE,
	 {"mean", "mean<double, std::vector<double> >"}},
	{"std::function<void (int)>::operator()(int) const", FRAME_NATIVE, {"operator()"}},
	{"ns::operator<<(ns::out&, int)", FRAME_NATIVE, {"operator<<", "ns::operator<<"}},
	{"ns::value::operator<(ns::value const&)", FRAME_NATIVE, {"operator<"}},
	{"ns::value::operator bool() const", FRAME_NATIVE, {"operator bool"}},
	{"<core::Slice<T> as core::Iter>::next", FRAME_NATIVE, {"next"}},
	{"core::sort::{{closure}}", FRAME_NATIVE, {"{{closure}}"}},
	{"Gamma.method", FRAME_INTERPRETED, {"method", "Gamma.method"}},
	{"main.<locals>.key", FRAME_INTERPRETED, {"key"}},
	{"(", FRAME_NATIVE, {"("}},
	{"<", FRAME_NATIVE, {"<"}},
	{"a::", FRAME_NATIVE, {"a::"}},
};

static void names_mean_functions(void **state)
{
	static struct model_frame frames[ARRAY_SIZE(named)];
	static struct model_calltree_node nodes[ARRAY_SIZE(named)];
	struct session session = {.frames = frames,
				  .nodes = nodes,
				  .modules = modules,
				  .processes = processes,
				  .process_count = 1,
				  .module_count = 2,
				  .frame_count = ARRAY_SIZE(named),
				  .node_count = ARRAY_SIZE(named),
				  .function_count = ARRAY_SIZE(named)};

	(void)state;
	for (uint32_t i = 0; i < ARRAY_SIZE(named); i++) {
		frames[i] = (struct model_frame){
			.function = named[i].function, .kind = named[i].kind, .function_id = i};
		nodes[i] = (struct model_calltree_node){.parent = MODEL_ENTRY_INDEX_NONE,
							.frame = i,
							.first_child = MODEL_ENTRY_INDEX_NONE,
							.next_sibling = MODEL_ENTRY_INDEX_NONE,
							.self_weight = {i + 1}};
	}
	for (uint32_t i = 0; i < ARRAY_SIZE(named); i++) {
		for (size_t k = 0; k < 4 && named[i].names[k] != NULL; k++) {
			struct annotated_function *found;
			size_t count;
			assert_int_equal(annotation_find_functions(&session, VIEW_MEASURE_CPU_TIME,
								   named[i].names[k], &found,
								   &count),
					 0);
			if (count != 1 || found[0].function_id != i)
				fail_msg("'%s' finds %zu functions, not '%s'", named[i].names[k],
					 count, named[i].function);
			assert_int_equal(found[0].self, i + 1);
			free(found);
		}
	}
}

/* The same name in two libraries and a file. */
static struct model_frame twins[] = {
	{.function = "parse", .file = "/src/a/parse.c", .module = 0, .function_id = 0},
	{.function = "parse", .file = "/src/b/parse.c", .module = 1, .function_id = 1},
};
static struct model_calltree_node twin_nodes[] = {
	{MODEL_ENTRY_INDEX_NONE, 0, 0, MODEL_ENTRY_INDEX_NONE, MODEL_ENTRY_INDEX_NONE,
	 .self_weight = {1}},
	{MODEL_ENTRY_INDEX_NONE, 1, 0, MODEL_ENTRY_INDEX_NONE, MODEL_ENTRY_INDEX_NONE,
	 .self_weight = {2}},
};

static void expect_twins(const char *name, size_t wanted, uint32_t first)
{
	struct session session = {.frames = twins,
				  .nodes = twin_nodes,
				  .modules = modules,
				  .processes = processes,
				  .process_count = 1,
				  .module_count = 2,
				  .frame_count = 2,
				  .node_count = 2,
				  .function_count = 2};
	struct annotated_function *found;
	size_t count;

	assert_int_equal(
		annotation_find_functions(&session, VIEW_MEASURE_CPU_TIME, name, &found, &count),
		0);
	if (count != wanted)
		fail_msg("'%s' finds %zu functions, not %zu", name, count, wanted);
	if (wanted != 0)
		assert_int_equal(found[0].function_id, first);
	free(found);
}

static void modules_and_files_tell_twins_apart(void **state)
{
	(void)state;
	expect_twins("parse", 2, 1); /* the heavier one first */
	expect_twins("parse@libone.so", 1, 0);
	expect_twins("parse@/lib/libtwo.so", 1, 1);
	expect_twins("a/parse.c:parse", 1, 0);
	expect_twins("parse.c:parse", 2, 1);
	expect_twins("arse.c:parse", 0, 0);
	expect_twins("parse@libthree.so", 0, 0);
	expect_twins("", 0, 0);
	expect_twins("@", 0, 0);
	expect_twins(":", 0, 0);
}

/* main:1 > f:10 > f:11 > g:20, and f:10 itself; g is inlined at f:11. */
static void a_line_counts_once_a_stack(void **state)
{
	static struct model_frame frames[] = {
		{.function = "main", .file = "a.c", .line = 1, .function_id = 0},
		{.function = "f", .file = "a.c", .line = 10, .function_id = 1},
		{.function = "f", .file = "a.c", .line = 11, .function_id = 1},
		{.function = "g",
		 .file = "a.c",
		 .line = 20,
		 .kind = FRAME_INLINE,
		 .function_id = 2},
		{.function = "f", .function_id = 1}, /* no line is known */
	};
	static struct model_calltree_node nodes[] = {
		{MODEL_ENTRY_INDEX_NONE, 0, .self_weight = {1}},
		{0, 1, .self_weight = {10}},
		{1, 1, .self_weight = {100}}, /* recursion at the same line */
		{2, 2, .self_weight = {1000}},
		{3, 3, .self_weight = {10000}},
		{1, 4, .self_weight = {100000}},
	};
	struct session session = {.frames = frames,
				  .nodes = nodes,
				  .frame_count = ARRAY_SIZE(frames),
				  .node_count = ARRAY_SIZE(nodes),
				  .function_count = 3};
	struct line_costs costs;

	(void)state;
	assert_int_equal(line_costs_init(&costs, &session, 1), 0);
	line_costs_sort_by_place(&costs);
	assert_int_equal(costs.count, 2);
	assert_int_equal(costs.lines[0].number, 10);
	assert_int_equal(costs.lines[0].self[0], 110);
	assert_int_equal(costs.lines[0].total[0], 111110);
	assert_int_equal(costs.lines[1].number, 11);
	assert_int_equal(costs.lines[1].self[0], 1000);
	assert_int_equal(costs.lines[1].total[0], 11000);
	assert_int_equal(costs.self_without_line[0], 100000);
	line_costs_deinit(&costs);

	assert_int_equal(line_costs_init(&costs, &session, MODEL_ENTRY_INDEX_NONE), 0);
	assert_int_equal(costs.count, 4);
	line_costs_deinit(&costs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_mean_functions),
		cmocka_unit_test(modules_and_files_tell_twins_apart),
		cmocka_unit_test(a_line_counts_once_a_stack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
