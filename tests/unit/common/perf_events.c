/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Names of perf events.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>

#include "common/array.h"
#include "common/perf_events.h"

static void expect(const char *name, uint32_t type, uint64_t config)
{
	struct perf_event_code event;

	if (perf_event_find_by_name(name, strlen(name), &event))
		fail_msg("%s is not known", name);
	assert_int_equal(event.type, type);
	assert_int_equal(event.config, config);
}

static void expect_unknown(const char *name)
{
	struct perf_event_code event;

	if (perf_event_find_by_name(name, strlen(name), &event) != -ENOENT)
		fail_msg("%s is taken for an event", name);
}

static void generic_names_are_the_kernels(void **state)
{
	(void)state;
	expect("task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK);
	expect("page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS);
	expect("context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES);
	expect("cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES);
	expect("instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	expect("branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES);
}

static void the_peers_names_are_known(void **state)
{
	(void)state;
	expect("PERF_COUNT_SW_CPU_CLOCK", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK);
	expect("PERF_COUNT_HW_CACHE_REFERENCES", PERF_TYPE_HARDWARE,
	       PERF_COUNT_HW_CACHE_REFERENCES);
	expect("perf::PERF_COUNT_HW_CACHE_REFERENCES", PERF_TYPE_HARDWARE,
	       PERF_COUNT_HW_CACHE_REFERENCES);
	expect("perf::cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES);
}

static uint64_t cache_config(uint64_t cache, uint64_t operation, uint64_t result)
{
	return cache | operation << 8 | result << 16;
}

/* The peer takes cache events for unknown and their result from the operation (defect A9). */
static void cache_events_have_cache_operation_and_result(void **state)
{
	static const struct {
		const char *name;
		uint64_t id;
	} caches[] = {{"L1-dcache", PERF_COUNT_HW_CACHE_L1D},
		      {"L1-icache", PERF_COUNT_HW_CACHE_L1I},
		      {"LLC", PERF_COUNT_HW_CACHE_LL},
		      {"dTLB", PERF_COUNT_HW_CACHE_DTLB},
		      {"iTLB", PERF_COUNT_HW_CACHE_ITLB},
		      {"branch", PERF_COUNT_HW_CACHE_BPU},
		      {"node", PERF_COUNT_HW_CACHE_NODE}},
	  accesses[] = {{"-loads", PERF_COUNT_HW_CACHE_OP_READ},
			{"-stores", PERF_COUNT_HW_CACHE_OP_WRITE},
			{"-prefetches", PERF_COUNT_HW_CACHE_OP_PREFETCH}},
	  misses[] = {{"-load-misses", PERF_COUNT_HW_CACHE_OP_READ},
		      {"-store-misses", PERF_COUNT_HW_CACHE_OP_WRITE},
		      {"-prefetch-misses", PERF_COUNT_HW_CACHE_OP_PREFETCH}};
	char name[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(caches); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(accesses); j++) {
			strcat(strcpy(name, caches[i].name), accesses[j].name);
			expect(name, PERF_TYPE_HW_CACHE,
			       cache_config(caches[i].id, accesses[j].id,
					    PERF_COUNT_HW_CACHE_RESULT_ACCESS));
			strcat(strcpy(name, caches[i].name), misses[j].name);
			expect(name, PERF_TYPE_HW_CACHE,
			       cache_config(caches[i].id, misses[j].id,
					    PERF_COUNT_HW_CACHE_RESULT_MISS));
		}
	}
}

static void case_does_not_matter(void **state)
{
	(void)state;
	expect("perf::PAGE-FAULTS", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS);
	expect("Cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES);
	expect("PERF::L1-DCACHE-LOADS", PERF_TYPE_HW_CACHE, PERF_COUNT_HW_CACHE_L1D);
	expect_unknown("R1");
}

static void expect_code(const char *text, uint32_t type, uint64_t config, uint64_t config1,
			uint64_t config2)
{
	struct perf_event_code event;

	assert_int_equal(perf_event_parse_code(text, strlen(text), &event), 0);
	assert_int_equal(event.type, type);
	assert_int_equal(event.config, config);
	assert_int_equal(event.config1, config1);
	assert_int_equal(event.config2, config2);
}

static void codes_are_type_and_words(void **state)
{
	static const char *const wrong[] = {"",     "1",    ":",           "1:",
					    "1::2", "1:2:", "1:2x",        "1:2:3:4:5",
					    "x:1",  "1,2",  "100000000:0", "1:00000000000000000"};
	struct perf_event_code event;

	(void)state;
	expect_code("1:2", 1, 2, 0, 0);
	expect_code("a:fF:10", 10, 255, 16, 0);
	expect_code("4:1c2:0:ffffffffffffffff", 4, 0x1c2, 0, UINT64_MAX);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_int_equal(perf_event_parse_code(wrong[i], strlen(wrong[i]), &event),
				 -EINVAL);
	assert_int_equal(perf_event_parse_code("1:0,", 3, &event), 0);
	assert_true(event.is_clock);
	assert_int_equal(perf_event_parse_code("1:2", 3, &event), 0);
	assert_false(event.is_clock);
}

static void raw_events_are_hexadecimal(void **state)
{
	(void)state;
	expect("r1", PERF_TYPE_RAW, 1);
	expect("r01c2", PERF_TYPE_RAW, 0x1c2);
	expect("r01C2", PERF_TYPE_RAW, 0x1c2);
	expect("rffffffffffffffff", PERF_TYPE_RAW, UINT64_MAX);
	expect_unknown("r");
	expect_unknown("r01g2");
	expect_unknown("r0ffffffffffffffff");
}

static void anything_else_is_unknown(void **state)
{
	static const char *const names[] = {"",         "cycle",      "cycles ",        "cyclesx",
					    "perf::",   "L1-dcache",  "L1-dcache-load", "LLC-",
					    "LLC-miss", "L2-loads",   "-loads",         "rho",
					    "PERF_",    "page-fault", "loads"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		expect_unknown(names[i]);
}

static void a_name_ends_where_its_length_says(void **state)
{
	static const char list[] = "cycles,LLC-loads,r1f,task-clock";
	struct perf_event_code event;

	(void)state;
	assert_int_equal(perf_event_find_by_name(list, 6, &event), 0);
	assert_int_equal(event.config, PERF_COUNT_HW_CPU_CYCLES);
	assert_int_equal(perf_event_find_by_name(list + 7, 9, &event), 0);
	assert_int_equal(event.type, PERF_TYPE_HW_CACHE);
	assert_int_equal(perf_event_find_by_name(list + 17, 3, &event), 0);
	assert_int_equal(event.config, 0x1f);
	assert_int_equal(perf_event_find_by_name(list, 7, &event), -ENOENT);
}

static void clocks_alone_count_time(void **state)
{
	struct perf_event_code event;
	const char *name, *description;
	unsigned clocks = 0, count = 0;

	(void)state;
	for (; (name = perf_event_get_name_by_index(count, &description)); count++) {
		assert_int_equal(perf_event_find_by_name(name, strlen(name), &event), 0);
		assert_true(*description);
		clocks += event.is_clock;
		assert_int_equal(event.is_clock, strstr(name, "-clock") != NULL);
	}
	assert_int_equal(clocks, 2);
	assert_true(count > 15);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(generic_names_are_the_kernels),
		cmocka_unit_test(the_peers_names_are_known),
		cmocka_unit_test(cache_events_have_cache_operation_and_result),
		cmocka_unit_test(case_does_not_matter),
		cmocka_unit_test(codes_are_type_and_words),
		cmocka_unit_test(raw_events_are_hexadecimal),
		cmocka_unit_test(anything_else_is_unknown),
		cmocka_unit_test(a_name_ends_where_its_length_says),
		cmocka_unit_test(clocks_alone_count_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
