/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Metrics and sets of a GH100 by NVIDIA's own host library, which needs no device; skipped where it
 * is not installed. Also: kymo's structs have the layout that this library expects.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/counting.h"
#include "sink.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_SANITIZED 1
#endif
#endif
#ifndef IS_SANITIZED
#define IS_SANITIZED 0 /* sanitizers refuse to load NVIDIA's library */
#endif

static struct cuda_chip *chip;
static struct counting_problem problem;

static int setup(void **state)
{
	enum counting_status status;

	(void)state;
	sink_start();
	if (!IS_SANITIZED && cuda_profiler_load_or_get_missing_text() == NULL)
		chip = cuda_chip_find_or_add_by_name("GH100", &status);
	return 0;
}

static bool count_metric(void *context, const struct counting_event_info *event)
{
	unsigned *counts = context;

	for (const char *at = event->name; *at != '\0'; at++)
		assert_true(isalnum((unsigned char)*at) || *at == '_');
	assert_false(isdigit((unsigned char)event->name[0]));
	assert_int_equal(counting_get_event_value_count(event), 1);
	assert_true(event->ways != 0);
	counts[0]++;
	counts[1] += (event->ways & COUNTING_BY_DEVICE) != 0;
	counts[2] += event->has_rollups;
	return true;
}

static void its_metrics_are_listed(void **state)
{
	unsigned counts[3] = {0};

	(void)state;
	if (chip == NULL)
		skip();
	cuda_chip_for_each_metric(chip, count_metric, counts);
	print_message("%u metrics, %u of the device, %u with rollups\n", counts[0], counts[1],
		      counts[2]);
	assert_true(counts[0] > 1000 && counts[1] > 300 && counts[2] > 1000);
}

static void one_is_found_by_its_name(void **state)
{
	struct cuda_metric metric;

	(void)state;
	if (chip == NULL)
		skip();
	assert_int_equal(cuda_chip_find_metric(chip, "sm__cycles_elapsed", &metric), COUNTING_OK);
	assert_string_equal(metric.event.block, "SM");
	assert_true(metric.event.has_rollups);
	assert_false(metric.is_ratio);
	assert_int_equal(metric.event.ways, COUNTING_BY_DISPATCH | COUNTING_BY_DEVICE);
	assert_int_equal(cuda_chip_find_metric(chip, "lts__t_sector_hit_rate.pct", &metric),
			 COUNTING_OK);
	assert_true(metric.is_ratio);
	assert_int_equal(cuda_chip_find_metric(chip, "dram__bytes.sum.per_second", &metric),
			 COUNTING_OK);
	assert_true(metric.is_ratio);
	assert_false(metric.event.has_rollups);
	assert_int_equal(cuda_chip_find_metric(chip, "dram__bytes.sum.per_second", &metric),
			 COUNTING_OK);
	assert_int_equal(cuda_chip_find_metric(chip, "sm__coffee", &metric),
			 COUNTING_NO_SUCH_EVENT);
	assert_int_equal(cuda_chip_find_metric(chip, "sm__coffee.sum", &metric),
			 COUNTING_NO_SUCH_EVENT);
	assert_int_equal(cuda_chip_find_metric(chip, "", &metric), COUNTING_NO_SUCH_EVENT);
}

static enum counting_status make(const struct counting_event_request *requests, uint32_t count,
				 uint32_t *ways)
{
	struct cuda_metric_set *set = NULL;
	enum counting_status status =
		cuda_metric_set_create(chip, 1, requests, count, &set, ways, &problem);

	if (status == COUNTING_OK)
		cuda_metric_set_free(set);
	return status;
}

static void sets_fit_one_pass_or_are_refused(void **state)
{
	static const struct counting_event_request few[] = {
		{.event = "sm__cycles_elapsed", .rollup = COUNTING_ROLLUP_MAX},
		{.event = "sm__inst_executed"}};
	static const struct counting_event_request hit_rate[] = {
		{.event = "LTS.TriageCompute.lts__average_t_sector_hit_rate_realtime.pct"},
		{.event = "dram__bytes"}};
	static const struct counting_event_request instrumented[] = {
		{.event = "smsp__sass_thread_inst_executed_op_ffma_pred_on"}};
	static const struct counting_event_request many[] = {
		{.event = "sm__cycles_elapsed"},
		{.event = "sm__throughput.avg.pct_of_peak_sustained_elapsed"}};
	static const struct counting_event_request unknown[] = {{.event = "sm__coffee"}},
						   ratio[] = {
							   {.event = "lts__t_sector_hit_rate.pct",
							    .rollup = COUNTING_ROLLUP_MAX}};
	uint32_t ways = 0;

	(void)state;
	if (chip == NULL)
		skip();
	assert_int_equal(make(few, 2, &ways), COUNTING_OK);
	assert_int_equal(ways, COUNTING_BY_DISPATCH | COUNTING_BY_DEVICE);
	assert_int_equal(make(hit_rate, 2, &ways), COUNTING_OK);
	assert_int_equal(make(instrumented, 1, &ways), COUNTING_NOT_SUPPORTED);
	assert_non_null(strstr(problem.text, "_sass_"));
	assert_int_equal(make(many, 2, &ways), COUNTING_DOES_NOT_FIT);
	assert_non_null(strstr(problem.text, "sm__throughput"));
	assert_non_null(strstr(problem.text, "sm__cycles_elapsed.sum"));
	print_message("%s\n", problem.text);
	assert_int_equal(make(unknown, 1, &ways), COUNTING_NO_SUCH_EVENT);
	assert_int_equal(make(ratio, 1, &ways), COUNTING_NOT_SUPPORTED);
}

static void unknown_chips_are_refused(void **state)
{
	enum counting_status status = COUNTING_OK;

	(void)state;
	if (chip == NULL)
		skip();
	assert_null(cuda_chip_find_or_add_by_name("XY999", &status));
	assert_int_not_equal(status, COUNTING_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(its_metrics_are_listed),
		cmocka_unit_test(one_is_found_by_its_name),
		cmocka_unit_test(sets_fit_one_pass_or_are_refused),
		cmocka_unit_test(unknown_chips_are_refused),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
