/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * NVTX as its header would call it: a table of functions is offered, then used.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "sink.h"

int InitializeInjectionNvtx2(const void *(*get_table)(uint32_t id));

typedef void function(void);

#define ENTRIES 16
static function *core[ENTRIES], *core2[ENTRIES];
static function **core_places[ENTRIES], **core2_places[ENTRIES];

static int get_module(int module, function ****table, unsigned *entries)
{
	*table = module == 1 ? core_places : module == 5 ? core2_places : NULL;
	*entries = ENTRIES;
	return *table != NULL;
}

static const struct {
	size_t size;
	int (*get)(int module, function ****table, unsigned *entries);
} tables = {sizeof(tables), get_module};

static const void *get_table(uint32_t id)
{
	return id == 1 ? &tables : NULL;
}

struct attributes {
	uint16_t version, size;
	uint32_t category;
	int32_t color_type;
	uint32_t color;
	int32_t payload_type, reserved;
	uint64_t payload;
	int32_t message_type;
	const void *message;
};

static int start(void **state)
{
	(void)state;
	for (unsigned i = 1; i < ENTRIES; i++) {
		core_places[i] = &core[i];
		core2_places[i] = &core2[i];
	}
	atomic_store(&sink_wanted, UINT32_MAX);
	sink_start();
	return InitializeInjectionNvtx2(get_table) == 1 ? 0 : -1;
}

#define CALL(table, place, type) ((type)(void *)table[place])

static void ranges_have_levels(void **state)
{
	int (*push)(const char *) = CALL(core, 9, int (*)(const char *));
	int (*pop)(void) = CALL(core, 11, int (*)(void));

	(void)state;
	assert_int_equal(push("outer"), 0);
	assert_int_equal(push("inner"), 1);
	assert_string_equal(told.last_marker, "1 inner");
	assert_int_equal(pop(), 1);
	assert_int_equal(pop(), 0);
	assert_true(pop() < 0);
	assert_int_equal(told.markers, 4);
}

static void ranges_can_end_elsewhere(void **state)
{
	uint64_t (*begin)(const char *) = CALL(core, 5, uint64_t(*)(const char *));
	void (*end)(uint64_t) = CALL(core, 7, void (*)(uint64_t));
	uint64_t first = begin("first"), second = begin("second");

	(void)state;
	end(first);
	end(second);
	end(0);
	assert_int_equal(told.markers, 4);
	assert_int_equal(told.misused, 0);
}

static void domains_stand_before_the_message(void **state)
{
	const void *(*create)(const char *) = CALL(core2, 12, const void *(*)(const char *));
	const void *(*add)(const void *, const char *) =
		CALL(core2, 10, const void *(*)(const void *, const char *));
	void (*mark)(const void *, const void *) =
		CALL(core2, 1, void (*)(const void *, const void *));
	static const void *domain, *registered; /* a program's, for as long as it runs */
	struct attributes event = {3, sizeof(event), 0, 0, 0, 0, 0, 0, 1, "step"};

	(void)state;
	domain = create("library");
	mark(domain, &event);
	assert_string_equal(told.last_marker, "0 library: step");
	event.message_type = 3;
	registered = add(domain, "registered");
	event.message = registered;
	mark(domain, &event);
	assert_string_equal(told.last_marker, "0 library: registered");
	event.message_type = 2;
	event.message = L"wide";
	mark(NULL, &event);
	assert_string_equal(told.last_marker, "0 wide");
	mark(NULL, NULL);
	assert_string_equal(told.last_marker, "0 ");
}

static void long_messages_are_cut(void **state)
{
	void (*mark)(const void *, const void *) =
		CALL(core2, 1, void (*)(const void *, const void *));
	static char text[5000];
	struct attributes event = {3, sizeof(event), 0, 0, 0, 0, 0, 0, 1, text};

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	mark("domain", &event);
	assert_int_equal(strncmp(told.last_marker, "0 domain: xxx", 13), 0);
}

static void nobody_listens(void **state)
{
	int (*push)(const char *) = CALL(core, 9, int (*)(const char *));
	int (*pop)(void) = CALL(core, 11, int (*)(void));

	(void)state;
	atomic_store(&sink_wanted, 0);
	assert_int_equal(push("alone"), 0);
	assert_int_equal(pop(), 0);
	assert_int_equal(told.markers, 0);
}

static const void *no_table(uint32_t id)
{
	(void)id;
	return NULL;
}

static void other_versions_are_refused(void **state)
{
	(void)state;
	assert_int_equal(InitializeInjectionNvtx2(NULL), 0);
	assert_int_equal(InitializeInjectionNvtx2(no_table), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, start)
	const struct CMUnitTest tests[] = {
		TEST(ranges_have_levels),
		TEST(ranges_can_end_elsewhere),
		TEST(domains_stand_before_the_message),
		TEST(long_messages_are_cut),
		TEST(nobody_listens),
		TEST(other_versions_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
