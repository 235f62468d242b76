/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What the calls of the user API become, and replacing them.
 */
#include "front_test.h"

#include <pthread.h>
#include <stdatomic.h>

#include "kymo/user.h"

static void bind(void)
{
	front_environment();
	front_open(DL_LIBRARY, RTLD_LOCAL);
	CHECK(kymo_mark("start") == KYMO_SUCCESS);
	front_seen();
}

static void every_call_arrives(void)
{
	char wanted[512];

	bind();
	CHECK(!kymo_push_region("r") && !kymo_mark("m") && !kymo_pop_region("r"));
	CHECK(!kymo_push_category_region("c", "r", NULL, 0));
	CHECK(!kymo_pop_category_region("c", "r", NULL, 0));
	CHECK_TEXT(front_seen(), "begin user/r\nmark user/m\nend user/r\nbegin c/r\nend c/r\n");
	CHECK(!kymo_counter("n", 2.5) && !kymo_progress("p") && !kymo_begin("l") && !kymo_end("l"));
	CHECK_TEXT(front_seen(), "counter user/n 2.500\nprogress user/p 0\nprogress user/l 1\n"
				 "progress user/l 2\n");
	CHECK(!kymo_stop_trace() && !kymo_start_trace() && !kymo_stop_thread_trace() &&
	      !kymo_start_thread_trace() && !kymo_flush());
	CHECK_TEXT(front_seen(),
		   "trace_stop\ntrace_start\nthread_trace_stop\nthread_trace_start\nflush\n");
	CHECK(kymo_pop_region("not open") == KYMO_NOT_OPEN);
	front_seen();
	KYMO_PROGRESS;
	snprintf(wanted, sizeof(wanted), "progress user/%s:%d 0\n", __FILE__, __LINE__ - 1);
	CHECK_TEXT(front_seen(), wanted);
}
IN_CHILD(every_call_arrives)

static void values_of_all_types_arrive(void)
{
	static const int16_t i16 = -16;
	static const uint16_t u16 = 65535;
	static const int32_t i32 = -32;
	static const uint32_t u32 = 4000000000u;
	static const int64_t i64 = -64;
	static const uint64_t u64 = 1ull << 63;
	static const float f = 0.5f;
	static const double d = -1.25;
	static const size_t size = 12;
	struct kymo_annotation list[] = {
		{"text", KYMO_TEXT, "word"}, {"size", KYMO_SIZE, &size},
		{"i64", KYMO_INT64, &i64},   {"u64", KYMO_UINT64, &u64},
		{"d", KYMO_DOUBLE, &d},      {"p", KYMO_POINTER, (const void *)0xabc},
		{"i32", KYMO_INT32, &i32},   {"u32", KYMO_UINT32, &u32},
		{"f", KYMO_FLOAT, &f},       {"i16", KYMO_INT16, &i16},
		{"u16", KYMO_UINT16, &u16},  {"null", KYMO_POINTER, NULL}};

	bind();
	CHECK(!kymo_push_annotated_region("r", list, LENGTH(list)));
	CHECK(!kymo_pop_annotated_region("r", list, 1));
	CHECK(!kymo_annotated_mark("m", list + 1, 1));
	CHECK_TEXT(front_seen(),
		   "begin user/r\n  text = 'word'\n  size = 12\n  i64 = -64\n"
		   "  u64 = 9223372036854775808\n  d = -1.250\n  p = @abc\n  i32 = -32\n"
		   "  u32 = 4000000000\n  f = 0.500\n  i16 = -16\n  u16 = 65535\n  null = @0\n"
		   "end user/r\n  text = 'word'\nmark user/m\n  size = 12\n");
}
IN_CHILD(values_of_all_types_arrive)

static void bad_values_are_left_out(void)
{
	int number = 1;
	struct kymo_annotation list[] = {{NULL, KYMO_INT32, &number},
					 {"no type", (enum kymo_type)99, &number},
					 {"null", KYMO_INT32, NULL},
					 {"null text", KYMO_TEXT, NULL},
					 {"good", KYMO_INT32, &number}};

	bind();
	CHECK(kymo_push_annotated_region("r", list, LENGTH(list)) == KYMO_BAD_VALUE);
	CHECK_TEXT(front_seen(), "begin user/r\n  good = 1\n");
	CHECK(kymo_push_annotated_region("r", NULL, 1) == KYMO_BAD_VALUE);
	CHECK(kymo_push_annotated_region(NULL, list, 1) == KYMO_BAD_VALUE);
	CHECK(kymo_push_region(NULL) == KYMO_BAD_VALUE && kymo_mark(NULL) == KYMO_BAD_VALUE);
	CHECK(kymo_counter(NULL, 0) == KYMO_BAD_VALUE && kymo_progress(NULL) == KYMO_BAD_VALUE);
	CHECK_TEXT(front_seen(), "");
}
IN_CHILD(bad_values_are_left_out)

static void many_values_arrive_in_order(void)
{
	struct kymo_annotation list[50];
	char wanted[1000] = "begin user/r\n", name[50][8];
	uint32_t numbers[50];

	bind();
	for (unsigned i = 0; i < 50; i++) {
		numbers[i] = i;
		snprintf(name[i], sizeof(name[i]), "v%u", i);
		list[i] = (struct kymo_annotation){name[i], KYMO_UINT32, &numbers[i]};
		sprintf(wanted + strlen(wanted), "  v%u = %u\n", i, i);
	}
	CHECK(!kymo_push_annotated_region("r", list, 50));
	CHECK_TEXT(front_seen(), wanted);
}
IN_CHILD(many_values_arrive_in_order)

static void every_status_has_words(void)
{
	static const int known[] = {KYMO_SUCCESS, KYMO_NOT_OPEN, KYMO_BAD_VALUE, KYMO_NO_BINDING,
				    KYMO_INTERNAL};

	for (size_t i = 0; i < LENGTH(known); i++)
		CHECK(strcmp(kymo_error_string(known[i]), kymo_error_string(12345)));
	CHECK(*kymo_error_string(12345));
}
IN_CHILD(every_status_has_words)

/* ---- replacing ---- */

static struct kymo_callbacks before;
static char replaced[256];

static int note_push(const char *category, const char *name)
{
	snprintf(replaced + strlen(replaced), sizeof(replaced) - strlen(replaced), "%s/%s ",
		 category ? category : "-", name);
	return before.push_region(category, name);
}

static void a_replacement_chains_and_is_put_back(void)
{
	struct kymo_callbacks mine = {.size = sizeof(mine), .push_region = note_push};

	bind();
	before.size = sizeof(before);
	CHECK(!kymo_set_callbacks(&mine, &before));
	CHECK(before.push_region && before.pop_region && before.flush);
	CHECK(!kymo_push_region("a") && !kymo_push_category_region("c", "b", NULL, 0));
	CHECK(!kymo_pop_region("a"));
	CHECK_TEXT(front_seen(), "begin user/a\nbegin c/b\nend user/a\n");
	CHECK_TEXT(replaced, "-/a c/b ");
	CHECK(!kymo_set_callbacks(&before, NULL));
	CHECK(!kymo_push_region("a"));
	CHECK_TEXT(front_seen(), "begin user/a\n");
	CHECK_TEXT(replaced, "-/a c/b ");
}
IN_CHILD(a_replacement_chains_and_is_put_back)

/* What was there before kymo came goes to kymo when it is there. */
static void a_replacement_outlives_the_binding(void)
{
	struct kymo_callbacks mine = {.size = sizeof(mine), .push_region = note_push};

	before.size = sizeof(before);
	kymo_set_callbacks(&mine, &before);
	CHECK(kymo_push_region("early") == KYMO_NO_BINDING);
	bind();
	CHECK(!kymo_push_region("late"));
	CHECK_TEXT(replaced, "-/early -/late ");
	CHECK_TEXT(front_seen(), "begin user/late\n");
	kymo_set_callbacks(&before, NULL);
	CHECK(!kymo_push_region("back"));
	CHECK_TEXT(replaced, "-/early -/late ");
	CHECK_TEXT(front_seen(), "begin user/back\n");
}
IN_CHILD(a_replacement_outlives_the_binding)

/* A program that was compiled when there were fewer callbacks. */
static void smaller_structs_are_taken_as_they_are(void)
{
	struct kymo_callbacks mine = {.size = offsetof(struct kymo_callbacks, pop_region),
				      .push_region = note_push,
				      .pop_region = note_push};
	struct kymo_callbacks old = {.size = offsetof(struct kymo_callbacks, annotate)};

	bind();
	before.size = sizeof(before);
	kymo_set_callbacks(NULL, &before);
	kymo_set_callbacks(&mine, &old);
	CHECK(old.push_region && old.pop_region && !old.annotate && !old.flush);
	CHECK(!kymo_push_region("a") && !kymo_pop_region("a"));
	CHECK_TEXT(replaced, "-/a ");
	CHECK_TEXT(front_seen(), "begin user/a\nend user/a\n");
}
IN_CHILD(smaller_structs_are_taken_as_they_are)

static atomic_int stop;

static int count_push(const char *category, const char *name)
{
	(void)category;
	(void)name;
	return 1;
}

static int count_push_too(const char *category, const char *name)
{
	(void)category;
	(void)name;
	return 2;
}

static void *call(void *context)
{
	long *calls = context;

	while (!atomic_load(&stop)) {
		int status = kymo_push_region("a");
		CHECK(status == 1 || status == 2);
		++*calls;
	}
	return NULL;
}

static void *exchange(void *context)
{
	struct kymo_callbacks one = {.size = sizeof(one), .push_region = count_push};
	struct kymo_callbacks two = {.size = sizeof(two), .push_region = count_push_too};
	struct kymo_callbacks old = {.size = sizeof(old)};

	while (!atomic_load(&stop)) {
		kymo_set_callbacks(context ? &one : &two, &old);
		CHECK(old.push_region == count_push || old.push_region == count_push_too);
	}
	return NULL;
}

static void callbacks_may_be_exchanged_at_any_time(void)
{
	struct kymo_callbacks first = {.size = sizeof(first), .push_region = count_push};
	pthread_t threads[4];
	long calls[2] = {0, 0};

	kymo_set_callbacks(&first, NULL);
	for (int i = 0; i < 2; i++) {
		pthread_create(&threads[i], NULL, call, &calls[i]);
		pthread_create(&threads[2 + i], NULL, exchange, i ? &calls : NULL);
	}
	usleep(200000);
	atomic_store(&stop, 1);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	CHECK(calls[0] && calls[1]);
}
IN_CHILD(callbacks_may_be_exchanged_at_any_time)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_child_every_call_arrives),
		cmocka_unit_test(in_child_values_of_all_types_arrive),
		cmocka_unit_test(in_child_bad_values_are_left_out),
		cmocka_unit_test(in_child_many_values_arrive_in_order),
		cmocka_unit_test(in_child_every_status_has_words),
		cmocka_unit_test(in_child_a_replacement_chains_and_is_put_back),
		cmocka_unit_test(in_child_a_replacement_outlives_the_binding),
		cmocka_unit_test(in_child_smaller_structs_are_taken_as_they_are),
		cmocka_unit_test(in_child_callbacks_may_be_exchanged_at_any_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
