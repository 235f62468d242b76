/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * perf events by name, on a tree like the kernel's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "settings/event_sysfs.h"
#include "settings/events.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static char root[] = "/tmp/kymo-events-XXXXXX";

static const struct {
	const char *path, *text;
} tree[] = {
	{"cpu", NULL},
	{"cpu/type", "4\n"},
	{"cpu/format", NULL},
	{"cpu/format/event", "config:0-7\n"},
	{"cpu/format/umask", "config:8-15\n"},
	{"cpu/format/split", "config1:0-3,32-35\n"},
	{"cpu/format/any", "config:21\n"},
	{"cpu/format/broken", "config:9-70\n"},
	{"cpu/format/other", "nothing:1\n"},
	{"cpu/events", NULL},
	{"cpu/events/instructions", "event=0xc0\n"},
	{"cpu/events/mem-loads", "event=0xcd,umask=0x1,any\n"},
	{"cpu/events/mem-loads.scale", "1\n"},
};

static int make_tree(void **state)
{
	char path[256];

	(void)state;
	if (!mkdtemp(root))
		return -1;
	for (size_t i = 0; i < LENGTH(tree); i++) {
		FILE *file;

		snprintf(path, sizeof(path), "%s/%s", root, tree[i].path);
		if (!tree[i].text) {
			mkdir(path, 0700);
			continue;
		}
		file = fopen(path, "w");
		fputs(tree[i].text, file);
		fclose(file);
	}
	return 0;
}

static int remove_tree(void **state)
{
	char path[256];

	(void)state;
	for (size_t i = LENGTH(tree); i-- > 0;) {
		snprintf(path, sizeof(path), "%s/%s", root, tree[i].path);
		remove(path);
	}
	return rmdir(root);
}

static int find(const char *name, struct perf_event_code *ret)
{
	const char *why = "";

	return event_sysfs_find(root, name, ret, &why);
}

static void named_events_and_terms_are_put_together(void **state)
{
	struct perf_event_code event;

	(void)state;
	assert_int_equal(find("cpu/instructions/", &event), 0);
	assert_int_equal(event.type, 4);
	assert_int_equal(event.config, 0xc0);
	assert_int_equal(find("cpu/mem-loads", &event), 0);
	assert_int_equal(event.config, 0xcd | 1 << 8 | 1 << 21);
	assert_int_equal(find("cpu/event=0x12,umask=2/", &event), 0);
	assert_int_equal(event.config, 0x212);
	assert_int_equal(find("cpu/event=0x12:umask=2/", &event), 0);
	assert_int_equal(event.config, 0x212);
	assert_int_equal(find("cpu/split=0xa5/", &event), 0);
	assert_int_equal(event.config1, 0x5 | 0xaull << 32);
	assert_int_equal(find("cpu/config=1,config2=7/", &event), 0);
	assert_int_equal(event.config2, 7);
}

static void mistakes_in_terms_are_named(void **state)
{
	static const char *const wrong[] = {"cpu/event=0x100/", "cpu/evnt=1/",   "cpu/event=/",
					    "cpu/event=1x/",    "cpu/broken=1/", "cpu/other=1/",
					    "cpu/../type/",     "cpu/event=-/"};
	struct perf_event_code event;
	const char *why;

	(void)state;
	for (size_t i = 0; i < LENGTH(wrong); i++) {
		why = "";
		if (event_sysfs_find(root, wrong[i], &event, &why) == 0)
			fail_msg("%s is taken", wrong[i]);
	}
	assert_int_equal(event_sysfs_find(root, "cpu/evnt=1/", &event, &why), -EINVAL);
	assert_non_null(strstr(why, "evnt"));
	assert_int_equal(find("gpu/event=1/", &event), -ENOENT);
	assert_int_equal(find("../cpu/event=1/", &event), -ENOENT);
	assert_int_equal(find("/event=1/", &event), -ENOENT);
	assert_int_equal(find("cpu/event=1/more", &event), -ENOENT);
}

static void count_event(const char *name, void *context)
{
	unsigned *count = context;

	*count += !strcmp(name, "cpu/instructions/") || !strcmp(name, "cpu/mem-loads/") ? 1 : 100;
}

static void events_of_pmus_are_listed(void **state)
{
	unsigned count = 0;

	(void)state;
	event_sysfs_for_each_event(root, count_event, &count);
	assert_int_equal(count, 2);
}

static void commas_between_slashes_belong_to_the_event(void **state)
{
	struct text_slice rest = setting_slice_from_text(
				  "wall_clock,cpu/event=1,umask=2/,a/b,r1 c/d"),
			  word;
	static const char *const words[] = {"wall_clock", "cpu/event=1,umask=2/", "a/b,r1", "c/d"};
	char *plain = events_replace_commas_in_items("x cpu/event=1,umask=2/,y");

	(void)state;
	(void)words;
	assert_true(events_next_list_item(&rest, &word));
	assert_int_equal(word.length, strlen(words[0]));
	assert_true(events_next_list_item(&rest, &word));
	assert_int_equal(word.length, strlen(words[1]));
	assert_memory_equal(word.text, words[1], word.length);
	assert_string_equal(plain, "x,cpu/event=1:umask=2/,y");
	free(plain);
}

static void components_may_be_events(void **state)
{
	struct problem problem;
	char *codes = events_format_code_list("wall_clock,page-faults,L1-dcache-loads");

	(void)state;
	assert_int_equal(events_check_component_list("wall_clock,page-faults", "x", &problem), 0);
	assert_int_equal(events_check_component_list("wall_clok", "x", &problem), -EINVAL);
	assert_non_null(strstr(problem.text, "'wall_clock'"));
	assert_int_equal(events_check_component_list("cycels", "x", &problem), -EINVAL);
	assert_non_null(strstr(problem.text, "'cycles'"));
	assert_string_equal(codes, "1:2,3:0");
	free(codes);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(named_events_and_terms_are_put_together),
		cmocka_unit_test(mistakes_in_terms_are_named),
		cmocka_unit_test(events_of_pmus_are_listed),
		cmocka_unit_test(commas_between_slashes_belong_to_the_event),
		cmocka_unit_test(components_may_be_events),
	};

	return cmocka_run_group_tests(tests, make_tree, remove_tree);
}
