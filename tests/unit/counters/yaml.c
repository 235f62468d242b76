/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What the reader of YAML makes of documents, and where it says that it comes from.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "counters/yaml.h"

static char shown[8192];

static void show(const char *text, size_t length)
{
	size_t at = strlen(shown);

	snprintf(shown + at, sizeof(shown) - at, "%.*s", (int)length, text);
}

/* As JSON would have it, texts without quotes. */
static void show_node(const struct yaml_node *node)
{
	const struct yaml_node *child = node->first;

	if (node->kind == YAML_SCALAR) {
		show("<", 1);
		show(node->text, node->length);
		show(">", 1);
		return;
	}
	show(node->kind == YAML_MAPPING ? "{" : "[", 1);
	for (; child != NULL; child = child->next) {
		if (child->key != NULL) {
			show(child->key->text, child->key->length);
			show(":", 1);
		}
		show_node(child);
		if (child->next != NULL)
			show(",", 1);
	}
	show(node->kind == YAML_MAPPING ? "}" : "]", 1);
}

static void reads(const char *text, const char *expected)
{
	struct memory_pool memory = {.failed = false};
	struct yaml_problem problem;
	const struct yaml_node *node = yaml_parse(&memory, text, strlen(text), &problem);

	shown[0] = '\0';
	if (node == NULL)
		fail_msg("%u:%u: %s\nin\n%s", problem.line, problem.column, problem.text, text);
	show_node(node);
	if (strcmp(shown, expected) != 0)
		fail_msg("%s\nexpected\n%s\nof\n%s", shown, expected, text);
	memory_pool_free_all(&memory);
}

static void refuses(const char *text, unsigned line, unsigned column)
{
	struct memory_pool memory = {.failed = false};
	struct yaml_problem problem;

	if (yaml_parse(&memory, text, strlen(text), &problem) != NULL)
		fail_msg("it is read:\n%s", text);
	if (problem.line != line || problem.column != column)
		fail_msg("%u:%u: %s\nin\n%s", problem.line, problem.column, problem.text, text);
	memory_pool_free_all(&memory);
}

static void test_structure(void **state)
{
	(void)state;
	reads("", "<>");
	reads("a", "<a>");
	reads("a: b", "{a:<b>}");
	reads("a:\n  b: c\n  d:\ne: f", "{a:{b:<c>,d:<>},e:<f>}");
	reads("- a\n- b", "[<a>,<b>]");
	reads("a:\n- b\n- c\nd: e", "{a:[<b>,<c>],d:<e>}");
	reads("a:\n  - b: 1\n    c: 2\n  - d", "{a:[{b:<1>,c:<2>},<d>]}");
	reads("- - a\n  - b\n-\n  c: d", "[[<a>,<b>],{c:<d>}]");
	reads("- a:\n    b\n  c: d", "[{a:<b>,c:<d>}]");
	reads("a: {b: c, d: [e, 'f', \"g\"], h: }", "{a:{b:<c>,d:[<e>,<f>,<g>],h:<>}}");
	reads("[a,\n  b, # of b\n c,]", "[<a>,<b>,<c>]");
	reads("---\n# x\na: b # y\n...\n", "{a:<b>}");
	reads("a: b\r\nc: d\r\n", "{a:<b>,c:<d>}");
	reads("\xef\xbb\xbf"
	      "a: b",
	      "{a:<b>}");
}

static void test_scalars(void **state)
{
	(void)state;
	reads("a: b c  \n", "{a:<b c>}");
	reads("a: b#c", "{a:<b#c>}");
	reads("a: b:c", "{a:<b:c>}");
	reads("a: -b", "{a:<-b>}");
	reads("a: reduce(X,sum,[D]) # c", "{a:<reduce(X,sum,[D])>}");
	reads("a: b\n  c\n\n  d\ne: f", "{a:<b c\nd>,e:<f>}");
	reads("a: 'b''c'", "{a:<b'c>}");
	reads("'a b': \"c: d # e\"", "{a b:<c: d # e>}");
	reads("a: \"\\x41\\u00e9\\n\\\"\\\\\"", "{a:<A\xc3\xa9\n\"\\>}");
	reads("a: \"b\n  c\\\n  d\"", "{a:<b cd>}");
	reads("a: |\n  b\n   c\n\n  d\n\ne: f", "{a:<b\n c\n\nd\n>,e:<f>}");
	reads("a: >\n  b\n  c\n\n  d\n", "{a:<b c\nd\n>}");
	reads("a: >-\n  b\n  c\n", "{a:<b c>}");
	reads("a: |+\n  b\n\n", "{a:<b\n\n>}");
	reads("a: |2\n   b\n", "{a:< b\n>}");
	reads("- |\n b\n- >-\n c", "[<b\n>,<c>]");
}

static void test_mistakes(void **state)
{
	(void)state;
	refuses("a: [b", 1, 4);
	refuses("a: {b}", 1, 6);
	refuses("a: 'b", 1, 4);
	refuses("a: \"\\q\"", 1, 6);
	refuses("a: b\n c: d", 2, 3);
	refuses("a: b: c", 1, 5);
	refuses("a:\n\tb: c", 2, 2);
	refuses("a: b\nc\nd: e", 2, 1);
	refuses("a: &b c", 1, 4);
	refuses("a: *b", 1, 4);
	refuses("a: !b c", 1, 4);
	refuses("? a", 1, 1);
	refuses("%YAML 1.2\n---\na: b", 1, 1);
	refuses("a: b\n---\nc: d", 2, 1);
	refuses("a: b\na: c", 2, 1);
	refuses("{a: b, a: c}", 1, 8);
	refuses("a: [b]]", 1, 7);
	refuses("a: 'b' c", 1, 8);
	refuses("a: \x01", 1, 4);
	refuses("\xc3\xa9: [", 1, 4);
	/* Bytes that are no UTF-8: alone, cut off, a surrogate, longer than need be. */
	refuses("a: b\nd: \xc3\xa9\xff", 2, 5);
	refuses("a: \xc3", 1, 4);
	refuses("a: \xed\xa0\x80", 1, 4);
	refuses("# \xc0\x80", 1, 3);
}

static void test_places(void **state)
{
	static const char text[] = "a: bc\n"
				   "d: e\n"
				   "   f\n"
				   "g: \"\\x41h\"\n"
				   "i: |\n"
				   "  j\n"
				   "  k\n";
	struct memory_pool memory = {.failed = false};
	struct yaml_problem problem;
	const struct yaml_node *node = yaml_parse(&memory, text, sizeof(text) - 1, &problem);
	uint32_t line, column;

	(void)state;
	yaml_offset_to_line_column(yaml_find_value(node, "a"), 1, &line, &column);
	assert_true(line == 1 && column == 5);
	yaml_offset_to_line_column(yaml_find_value(node, "d"), 2, &line, &column);
	assert_true(line == 3 && column == 4);
	yaml_offset_to_line_column(yaml_find_value(node, "g"), 1, &line, &column);
	assert_true(line == 4 && column == 9);
	yaml_offset_to_line_column(yaml_find_value(node, "i"), 2, &line, &column);
	assert_true(line == 7 && column == 3);
	assert_null(yaml_find_value(node, "z"));
	memory_pool_free_all(&memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_structure),
		cmocka_unit_test(test_scalars),
		cmocka_unit_test(test_mistakes),
		cmocka_unit_test(test_places),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
