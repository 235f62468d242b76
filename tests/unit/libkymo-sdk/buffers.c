/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Buffers: when they are handed over, in which order, on which thread, and what happens when they
 * are full.
 */
#include "scenario.h"

#include <pthread.h>

#include "libkymo-sdk/buffer.h"
#include "libkymo-sdk/emit.h"

#define HIP_RECORD ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API

struct item {
	uint64_t thread, number, filler[6];
};

static rocprofiler_context_id_t context;
static rocprofiler_buffer_id_t ids[2];
static rocprofiler_callback_thread_t own_thread;
static size_t size = 4096, watermark = 4096;
static rocprofiler_buffer_policy_t policy = ROCPROFILER_BUFFER_POLICY_LOSSLESS;

static _Atomic uint64_t taken, callbacks, dropped_told;
static uint64_t next_of[16];
static _Atomic uint64_t taking_thread;
static _Atomic int running, most_running;
static _Atomic unsigned take_us;
static void (*within)(void);

static void take(rocprofiler_context_id_t of, rocprofiler_buffer_id_t from,
		 rocprofiler_record_header_t **headers, size_t count, void *data, uint64_t dropped)
{
	int now = ++running;

	CHECK_EQUAL(of.handle, context.handle);
	CHECK_EQUAL(from.handle, ids[(intptr_t)data].handle);
	CHECK(count > 0);
	if (now > most_running)
		most_running = now;
	taking_thread = (uint64_t)gettid();
	callbacks++;
	dropped_told += dropped;
	for (size_t i = 0; i < count; i++) {
		const struct item *item = headers[i]->payload;

		CHECK_EQUAL((uintptr_t)item % 8, 0);
		CHECK(item->thread < 16);
		/* In the order of each thread; what was dropped is a gap. */
		CHECK(item->number >= next_of[item->thread]);
		next_of[item->thread] = item->number + 1;
	}
	if (take_us)
		usleep(take_us);
	if (within)
		within();
	taken += count;
	running--;
}

static int initialize(void)
{
	OK(rocprofiler_create_context(&context));
	for (intptr_t i = 0; i < 2; i++)
		OK(rocprofiler_create_buffer(context, size, watermark, policy, take, (void *)i,
					     &ids[i]));
	OK(rocprofiler_start_context(context));
	return 0;
}

static void put(int buffer, uint64_t thread, uint64_t number)
{
	struct item item = {.thread = thread, .number = number};

	sdk_buffer_append_tracing_record(sdk_buffer_find_by_id(ids[buffer].handle), HIP_RECORD,
					 &item, sizeof(item), sdk_clock_read_now_ns());
}

static void handed_over_at_the_watermark(void)
{
	watermark = 1024;
	scenario_tool(initialize);
	for (uint64_t i = 0; i < 15; i++)
		put(0, 0, i);
	usleep(50000);
	CHECK_EQUAL(callbacks, 0);
	put(0, 0, 15);
	WAIT_FOR(taken == 16);
	CHECK_EQUAL(callbacks, 1);
	CHECK(taking_thread != (uint64_t)gettid());
}

static void each_record_at_watermark_none(void)
{
	watermark = 0;
	scenario_tool(initialize);
	for (uint64_t i = 0; i < 10; i++) {
		put(0, 0, i);
		WAIT_FOR(taken == i + 1);
	}
	CHECK_EQUAL(callbacks, 10);
}

static void an_empty_buffer_is_not_handed_over(void)
{
	scenario_tool(initialize);
	OK(rocprofiler_flush_buffer(ids[0]));
	CHECK_EQUAL(callbacks, 0);
	put(0, 0, 0);
	OK(rocprofiler_flush_buffer(ids[0])); /* is done when it returns */
	CHECK_EQUAL(taken, 1);
	OK(rocprofiler_flush_buffer(ids[0]));
	CHECK_EQUAL(callbacks, 1);
}

/* As much payload as was asked for fits, in whole pages; headers do not count. */
static void a_page_holds_a_page(void)
{
	size = watermark = 4000;
	policy = ROCPROFILER_BUFFER_POLICY_DISCARD;
	scenario_tool(initialize);
	watermark = 4096;
	for (uint64_t i = 0; i < 62; i++)
		put(0, 0, i);
	usleep(50000);
	CHECK_EQUAL(callbacks, 0);
	put(0, 0, 62);
	WAIT_FOR(taken == 63);
	CHECK_EQUAL(dropped_told, 0);
}

static void drops_are_counted(void)
{
	policy = ROCPROFILER_BUFFER_POLICY_DISCARD;
	size = 4096 * 2;
	watermark = size;
	scenario_tool(initialize);
	take_us = 300000;
	for (uint64_t i = 0; i < 128; i++) /* the last one reaches the watermark */
		put(0, 0, i);
	WAIT_FOR(callbacks == 1);
	for (uint64_t i = 128; i < 128 + 500; i++) /* while the first half is handed over */
		put(0, 0, i);
	take_us = 0;
	OK(rocprofiler_flush_buffer(ids[0]));
	CHECK_EQUAL(taken + dropped_told, 628);
	CHECK_EQUAL(taken, 256);
	put(0, 0, 700);
	OK(rocprofiler_flush_buffer(ids[0]));
	CHECK_EQUAL(taken, 257);
	CHECK_EQUAL(dropped_told, 372);
}

static void *put_many(void *data)
{
	uint64_t thread = (uint64_t)(intptr_t)data;

	for (uint64_t i = 0; i < 20000; i++)
		put(0, thread, i);
	return NULL;
}

static void put_by_many(unsigned threads)
{
	pthread_t made[16];

	for (unsigned i = 0; i < threads; i++)
		CHECK_EQUAL(pthread_create(&made[i], NULL, put_many, (void *)(intptr_t)i), 0);
	for (unsigned i = 0; i < threads; i++)
		pthread_join(made[i], NULL);
	OK(rocprofiler_flush_buffer(ids[0]));
}

static void check_all(unsigned threads)
{
	CHECK_EQUAL(taken, 20000 * threads);
	CHECK_EQUAL(dropped_told, 0);
	for (unsigned i = 0; i < threads; i++)
		CHECK_EQUAL(next_of[i], 20000);
}

/* A small buffer, a consumer that is slower than sixteen producers: they wait. */
static void lossless_is_lossless(void)
{
	watermark = 2048;
	scenario_tool(initialize);
	take_us = 20;
	put_by_many(16);
	check_all(16);
}

static void lossless_without_watermark(void)
{
	size = watermark = 8192;
	scenario_tool(initialize);
	put_by_many(4);
	check_all(4);
}

/* Large enough for chunks of threads' own. */
static void lossless_with_lanes(void)
{
	size = 1 << 20;
	watermark = 1 << 19;
	scenario_tool(initialize);
	put_by_many(16);
	check_all(16);
}

static void discarded_with_lanes(void)
{
	size = 1 << 20;
	watermark = 1 << 19;
	policy = ROCPROFILER_BUFFER_POLICY_DISCARD;
	take_us = 20000;
	scenario_tool(initialize);
	put_by_many(16);
	put(0, 0, 20000);
	OK(rocprofiler_flush_buffer(ids[0]));
	CHECK_EQUAL(taken + dropped_told, 320001);
}

static _Atomic uint64_t turn;

static void *put_in_turn(void *data)
{
	uint64_t self = (uint64_t)(intptr_t)data;

	for (uint64_t i = self; i < 3000; i += 3) {
		while (turn != i)
			sched_yield();
		/* A processor may read its clock while it still waits for `turn` (Intel's manual,
		 * RDTSC); a record pays for no fence. */
		__asm__ volatile("lfence" ::: "memory");
		put(0, 0, i); /* all are "thread 0": their numbers have to ascend */
		turn = i + 1;
	}
	return NULL;
}

/* What is put after something else, in whatever threads, comes after it. */
static void order_across_threads(void)
{
	pthread_t made[3];

	size = 1 << 20;
	watermark = size;
	scenario_tool(initialize);
	for (intptr_t i = 0; i < 3; i++)
		CHECK_EQUAL(pthread_create(&made[i], NULL, put_in_turn, (void *)i), 0);
	for (int i = 0; i < 3; i++)
		pthread_join(made[i], NULL);
	OK(rocprofiler_flush_buffer(ids[0]));
	CHECK_EQUAL(taken, 3000);
	CHECK_EQUAL(next_of[0], 3000);
}

static int with_own_thread(void)
{
	OK(rocprofiler_create_callback_thread(&own_thread));
	CHECK(own_thread.handle > 0);
	initialize();
	REFUSED(rocprofiler_assign_callback_thread(ids[1], (rocprofiler_callback_thread_t){99}),
		THREAD_NOT_FOUND);
	REFUSED(rocprofiler_assign_callback_thread((rocprofiler_buffer_id_t){0}, own_thread),
		BUFFER_NOT_FOUND);
	OK(rocprofiler_assign_callback_thread(ids[1], own_thread));
	return 0;
}

static void buffers_of_two_threads(void)
{
	uint64_t first;

	scenario_tool(with_own_thread);
	put(0, 0, 0);
	OK(rocprofiler_flush_buffer(ids[0]));
	first = taking_thread;
	put(1, 1, 0);
	OK(rocprofiler_flush_buffer(ids[1]));
	CHECK(first != taking_thread);
}

static void *flush_one(void *data)
{
	OK(rocprofiler_flush_buffer(ids[(intptr_t)data]));
	return NULL;
}

static void buffers_of_one_thread_take_turns(void)
{
	pthread_t flushing[2];

	scenario_tool(initialize);
	take_us = 50000;
	put(0, 0, 0);
	put(1, 1, 0);
	for (intptr_t i = 0; i < 2; i++)
		CHECK_EQUAL(pthread_create(&flushing[i], NULL, flush_one, (void *)i), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(flushing[i], NULL);
	CHECK_EQUAL(taken, 2);
	CHECK_EQUAL(most_running, 1);
}

static void flush_within(void)
{
	struct sdk_call_state call;

	within = NULL;
	REFUSED(rocprofiler_flush_buffer(ids[0]), BUFFER_BUSY);
	REFUSED(rocprofiler_destroy_buffer(ids[0]), BUFFER_BUSY);
	/* What the thread of a callback does is not told. */
	CHECK(!sdk_call_enter(&call, SDK_DOMAIN_HIP_RUNTIME, 1, &call));
}

static void flushing_in_its_own_callback(void)
{
	scenario_tool(initialize);
	put(0, 0, 0);
	within = flush_within;
	OK(rocprofiler_flush_buffer(ids[0]));
	CHECK_EQUAL(taken, 1);
}

static void destroyed(void)
{
	scenario_tool(initialize);
	put(0, 0, 0);
	OK(rocprofiler_destroy_buffer(ids[0]));
	CHECK_EQUAL(taken, 1);
	REFUSED(rocprofiler_destroy_buffer(ids[0]), BUFFER_NOT_FOUND);
	REFUSED(rocprofiler_flush_buffer(ids[0]), BUFFER_NOT_FOUND);
	put(1, 1, 0);
	OK(rocprofiler_flush_buffer(ids[1]));
	CHECK_EQUAL(taken, 2);
}

static int refused(void)
{
	rocprofiler_buffer_id_t id = {0};

	initialize();
#define CREATE(a_context, a_size, a_mark, a_policy, a_callback, an_id)                             \
	rocprofiler_create_buffer(a_context, a_size, a_mark, a_policy, a_callback, NULL, an_id)
	REFUSED(CREATE(context, 0, 0, policy, take, &id), INVALID_ARGUMENT);
	REFUSED(CREATE(context, 4096, 4097, policy, take, &id), INVALID_ARGUMENT);
	REFUSED(CREATE(context, SIZE_MAX, 4096, policy, take, &id), INVALID_ARGUMENT);
	REFUSED(CREATE(context, 4096, 0, ROCPROFILER_BUFFER_POLICY_NONE, take, &id),
		INVALID_ARGUMENT);
	REFUSED(CREATE(context, 4096, 0, ROCPROFILER_BUFFER_POLICY_LAST, take, &id),
		INVALID_ARGUMENT);
	REFUSED(CREATE(context, 4096, 0, policy, NULL, &id), INVALID_ARGUMENT);
	REFUSED(CREATE(context, 4096, 0, policy, take, NULL), INVALID_ARGUMENT);
	REFUSED(CREATE((rocprofiler_context_id_t){2}, 4096, 0, policy, take, &id),
		CONTEXT_NOT_FOUND);
	REFUSED(CREATE(context, 4096, 0, policy, take, &ids[0]), SERVICE_ALREADY_CONFIGURED);
	REFUSED(rocprofiler_configure_buffer_tracing_service(context, HIP_RECORD, NULL, 0, id),
		BUFFER_NOT_FOUND);
	return 0;
}

static void mistakes_are_refused(void)
{
	scenario_tool(refused);
	REFUSED(rocprofiler_flush_buffer((rocprofiler_buffer_id_t){0}), BUFFER_NOT_FOUND);
	REFUSED(rocprofiler_destroy_buffer((rocprofiler_buffer_id_t){UINT64_MAX}),
		BUFFER_NOT_FOUND);
}

static void check_left_at_exit(void)
{
	CHECK_EQUAL(taken, 5);
}

static void what_is_left_comes_at_exit(void)
{
	atexit(check_left_at_exit);
	scenario_tool(initialize);
	for (uint64_t i = 0; i < 5; i++)
		put(0, 0, i);
}

#define TESTS(TEST)                                                                                \
	TEST(handed_over_at_the_watermark)                                                         \
	TEST(each_record_at_watermark_none)                                                        \
	TEST(an_empty_buffer_is_not_handed_over)                                                   \
	TEST(a_page_holds_a_page)                                                                  \
	TEST(drops_are_counted)                                                                    \
	TEST(lossless_is_lossless)                                                                 \
	TEST(lossless_without_watermark)                                                           \
	TEST(lossless_with_lanes)                                                                  \
	TEST(discarded_with_lanes)                                                                 \
	TEST(order_across_threads)                                                                 \
	TEST(buffers_of_two_threads)                                                               \
	TEST(buffers_of_one_thread_take_turns)                                                     \
	TEST(flushing_in_its_own_callback)                                                         \
	TEST(destroyed)                                                                            \
	TEST(mistakes_are_refused)                                                                 \
	TEST(what_is_left_comes_at_exit)

TESTS(SCENARIO)

#define ENTRY(name) cmocka_unit_test(test_##name),

int main(void)
{
	const struct CMUnitTest tests[] = {TESTS(ENTRY)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
