/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See options.h.
 */
#include "experiments/options.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "common/array.h"
#include "common/settings_value.h"

/* Experiments live on samples of CPU time, of all threads, all the time, a thousand a second: finer
 * ones would cost more than they tell. */
static const struct {
	enum setting_id id;
	const char *value;
} fixed_sampling_settings[] = {
	{SETTING_USE_SAMPLING, "on"},
	{SETTING_SAMPLING_CPUTIME, "on"},
	{SETTING_SAMPLING_REALTIME, "off"},
	{SETTING_SAMPLING_OVERFLOW, "off"},
	{SETTING_SAMPLING_CPUTIME_FREQ, "1000"},
	{SETTING_SAMPLING_CPUTIME_DELAY, "0"},
	{SETTING_SAMPLING_CPUTIME_DURATION, "0"},
	{SETTING_SAMPLING_CPUTIME_TIDS, ""},
	{SETTING_SAMPLING_TIDS, ""},
	{SETTING_SAMPLING_OVERHEAD_LIMIT, "0"},
	{SETTING_TRACE_DELAY, "0"},
	{SETTING_TRACE_DURATION, "0"},
	{SETTING_TRACE_PERIODS, ""},
	{SETTING_INIT_ENABLED, "on"},
	{SETTING_SELECTED_REGIONS, ""},
	{SETTING_CONTROL_SIGNAL, "none"},
};

/* What is off unless it is asked for: it costs time, and experiments are about time. */
static const enum setting_id settings_off_by_default[] = {
	SETTING_TRACE,
	SETTING_PROFILE,
	SETTING_USE_PROCESS_SAMPLING,
	SETTING_SAMPLING_METRICS,
};

static int set_setting_for_causal(struct effective_settings *settings, enum setting_id id,
				  const char *value, enum effective_origin origin,
				  struct problem *problem)
{
	return effective_set_if_not_overridden(settings, id, value, origin, "kymo causal", problem);
}

static int set_sampling_and_output_settings(struct effective_settings *settings,
					    struct problem *problem)
{
	int error = set_setting_for_causal(settings, SETTING_SAMPLING_SOURCE,
					   effective_setting_text(settings, SETTING_CAUSAL_BACKEND),
					   ORIGIN_OPTION, problem);

	for (size_t i = 0; !error && i < ARRAY_SIZE(fixed_sampling_settings); i++)
		error = set_setting_for_causal(settings, fixed_sampling_settings[i].id,
					       fixed_sampling_settings[i].value, ORIGIN_OPTION,
					       problem);
	for (size_t i = 0; !error && i < ARRAY_SIZE(settings_off_by_default); i++)
		error = set_setting_for_causal(settings, settings_off_by_default[i], "off",
					       ORIGIN_CONFIG, problem);
	return error;
}

static uint64_t read_duration_setting_ns(const struct effective_settings *settings,
					 enum setting_id id)
{
	int64_t ns = 0;

	setting_parse_duration(setting_slice_from_text(effective_setting_text(settings, id)), &ns);
	return ns > 0 ? (uint64_t)ns : 0;
}

static uint64_t read_or_choose_random_seed(const struct effective_settings *settings)
{
	uint64_t seed = (uint64_t)effective_setting_integer(settings, SETTING_CAUSAL_RANDOM_SEED);

	if (!seed && getrandom(&seed, sizeof(seed), 0) == sizeof(seed))
		seed = seed >> 14 | 1; /* exact in JSON */
	return seed;
}

int causal_options_read_settings(struct causal_options *ret, struct effective_settings *settings,
				 struct problem *problem)
{
	const struct effective_value *speedups = &settings->values[SETTING_CAUSAL_FIXED_SPEEDUP];
	static const uint32_t usual[] = {250, 500, 750, 1000};
	int error;

	memset(ret, 0, sizeof(*ret));
	error = causal_speedups_parse(speedups->text, speedups->source ? speedups->source : "",
				      &ret->speedups, problem);
	if (!error)
		error = set_sampling_and_output_settings(settings, problem);
	if (error)
		return error;
	ret->speedups_given = ret->speedups.count || ret->speedups.has_baseline;
	if (!ret->speedups_given) {
		memcpy(ret->speedups.permille, usual, sizeof(usual));
		ret->speedups.count = ARRAY_SIZE(usual);
	}
	ret->lines = !strcmp(effective_setting_text(settings, SETTING_CAUSAL_MODE), "line");
	ret->end_to_end = effective_setting_bool(settings, SETTING_CAUSAL_END_TO_END);
	ret->iterations = (uint32_t)effective_setting_integer(settings, SETTING_CAUSAL_ITERATIONS);
	ret->iterations_given = !effective_setting_is_default(settings, SETTING_CAUSAL_ITERATIONS);
	ret->delay_before_experiments_ns = read_duration_setting_ns(settings, SETTING_CAUSAL_DELAY);
	ret->experiments_duration_max_ns =
		read_duration_setting_ns(settings, SETTING_CAUSAL_DURATION);
	ret->random_seed = read_or_choose_random_seed(settings);
	setting_parse_number(
		setting_slice_from_text(effective_setting_text(settings, SETTING_CAUSAL_UNTIL_CI)),
		&ret->until_ci_width);
	return 0;
}
