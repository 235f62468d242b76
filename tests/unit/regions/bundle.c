/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What a bundle of components does with each verb: the example of the specification (Component
 * member functions), with its output, and the audits of function wrappers.
 */
#include "regions/bundle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

static char output[1024];

static void say(const char *text)
{
	strcat(output, text);
	strcat(output, "\n");
}

static void foo_sample(const struct bundle_component *self, uint64_t *data,
		       struct component_readings_at_moment *moment)
{
	(void)self;
	(void)data;
	(void)moment;
	say("foo::sample()");
}

static void bar_sample(const struct bundle_component *self, uint64_t *data,
		       struct component_readings_at_moment *moment, int64_t value)
{
	(void)self;
	(void)moment;
	assert_int_equal(value, 10);
	*data = (uint64_t)value;
	say("bar::sample(int)");
}

static void spam_start(const struct bundle_component *self, uint64_t *data,
		       struct component_readings_at_moment *moment, int64_t value)
{
	(void)self;
	(void)data;
	(void)moment;
	(void)value;
	say("spam::start()");
}

static void spam_stop(const struct bundle_component *self, uint64_t *data,
		      struct component_readings_at_moment *moment)
{
	(void)self;
	(void)data;
	(void)moment;
	say("spam::stop()");
}

static const struct bundle_component foo = {.name = "foo", .sample = foo_sample};
static const struct bundle_component bar = {.name = "bar", .sample_with_value = bar_sample};
static const struct bundle_component spam = {
	.name = "spam", .start_with_value = spam_start, .stop = spam_stop};

static void verbs_reach_those_that_have_them(void **state)
{
	struct component_bundle bundle = {0};
	uint64_t data[COMPONENTS_PER_PROFILE_MAX] = {0};

	(void)state;
	output[0] = 0;
	assert_int_equal(component_bundle_add(&bundle, &foo), 0);
	assert_int_equal(component_bundle_add(&bundle, &bar), 1);
	assert_int_equal(component_bundle_add(&bundle, &spam), 2);
	say("A");
	component_bundle_call_all_starts(&bundle, data, NULL);
	say("B");
	component_bundle_call_all_sample_values(&bundle, data, NULL, 10);
	say("C");
	component_bundle_call_all_samples(&bundle, data, NULL);
	say("D");
	component_bundle_call_all_stops(&bundle, data, NULL);
	assert_string_equal(output, "A\nspam::start()\nB\nfoo::sample()\nbar::sample(int)\n"
				    "C\nfoo::sample()\nD\nspam::stop()\n");
	assert_int_equal(data[1], 10);
	assert_int_equal(data[0], 0);
}

static void enter(const struct bundle_component *self, uint64_t *data,
		  struct component_readings_at_moment *moment, const uint64_t *arguments,
		  size_t count)
{
	(void)self;
	(void)moment;
	assert_int_equal(count, 2);
	*data += arguments[0] * arguments[1];
}

static void leave(const struct bundle_component *self, uint64_t *data,
		  struct component_readings_at_moment *moment, const uint64_t *results,
		  size_t count)
{
	(void)self;
	(void)moment;
	assert_int_equal(count, 1);
	*data += results[0];
}

static void audits_see_arguments_and_results(void **state)
{
	const struct bundle_component wrapper = {
		.name = "wrapper", .audit_enter = enter, .audit_exit = leave};
	struct component_bundle bundle = {0};
	uint64_t data[COMPONENTS_PER_PROFILE_MAX] = {0}, arguments[] = {6, 7}, result = 1000;

	(void)state;
	output[0] = 0;
	component_bundle_add(&bundle, &foo);
	component_bundle_add(&bundle, &wrapper);
	component_bundle_call_all_audit_enters(&bundle, data, NULL, arguments, 2);
	component_bundle_call_all_audit_exits(&bundle, data, NULL, &result, 1);
	assert_int_equal(data[1], 1042);
	assert_int_equal(data[0], 0);
	assert_string_equal(output, "");
}

static void a_bundle_is_full_at_its_limit(void **state)
{
	struct component_bundle bundle = {0};

	(void)state;
	for (int i = 0; i < COMPONENTS_PER_PROFILE_MAX; i++)
		assert_int_equal(component_bundle_add(&bundle, &foo), i);
	assert_int_equal(component_bundle_add(&bundle, &foo), -1);
	assert_int_equal(bundle.count, COMPONENTS_PER_PROFILE_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(verbs_reach_those_that_have_them),
		cmocka_unit_test(audits_see_arguments_and_results),
		cmocka_unit_test(a_bundle_is_full_at_its_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
