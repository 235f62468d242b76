/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See causal_options.h.
 */
#include "cmd/causal_options.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "common/settings_value.h"

/* Experiments live on samples of CPU time, of all threads, all the time, a thousand a second: finer
 * ones would cost more than they tell. */
static const struct {
	enum setting_id id;
	const char *value;
} options_fixed[] = {
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
static const enum setting_id options_off[] = {
	SETTING_TRACE,
	SETTING_PROFILE,
	SETTING_USE_PROCESS_SAMPLING,
	SETTING_SAMPLING_METRICS,
};

static int options_set(struct resolved *settings, enum setting_id id, const char *value,
		       enum resolved_origin origin, struct problem *problem)
{
	return resolved_set(settings, id, value, origin, "kymo causal", problem);
}

static int options_sampling(struct resolved *settings, struct problem *problem)
{
	int error = options_set(settings, SETTING_SAMPLING_SOURCE,
				resolved_text(settings, SETTING_CAUSAL_BACKEND), ORIGIN_OPTION,
				problem);

	for (size_t i = 0; !error && i < sizeof(options_fixed) / sizeof(options_fixed[0]); i++)
		error = options_set(settings, options_fixed[i].id, options_fixed[i].value,
				    ORIGIN_OPTION, problem);
	for (size_t i = 0; !error && i < sizeof(options_off) / sizeof(options_off[0]); i++)
		error = options_set(settings, options_off[i], "off", ORIGIN_CONFIG, problem);
	return error;
}

static uint64_t options_duration(const struct resolved *settings, enum setting_id id)
{
	int64_t ns = 0;

	setting_parse_duration(setting_slice(resolved_text(settings, id)), &ns);
	return ns > 0 ? (uint64_t)ns : 0;
}

static uint64_t options_seed(const struct resolved *settings)
{
	uint64_t seed = (uint64_t)resolved_integer(settings, SETTING_CAUSAL_RANDOM_SEED);

	if (!seed && getrandom(&seed, sizeof(seed), 0) == sizeof(seed))
		seed = seed >> 14 | 1; /* exact in JSON */
	return seed;
}

int causal_options_init(struct causal_options *ret, struct resolved *settings,
			struct problem *problem)
{
	const struct resolved_value *speedups = &settings->values[SETTING_CAUSAL_FIXED_SPEEDUP];
	static const uint32_t usual[] = {250, 500, 750, 1000};
	int error;

	memset(ret, 0, sizeof(*ret));
	error = causal_speedups_parse(speedups->text, speedups->source ? speedups->source : "",
				      &ret->speedups, problem);
	if (!error)
		error = options_sampling(settings, problem);
	if (error)
		return error;
	ret->speedups_given = ret->speedups.count || ret->speedups.baseline;
	if (!ret->speedups_given) {
		memcpy(ret->speedups.permille, usual, sizeof(usual));
		ret->speedups.count = sizeof(usual) / sizeof(usual[0]);
	}
	ret->lines = !strcmp(resolved_text(settings, SETTING_CAUSAL_MODE), "line");
	ret->end_to_end = resolved_bool(settings, SETTING_CAUSAL_END_TO_END);
	ret->iterations = (uint32_t)resolved_integer(settings, SETTING_CAUSAL_ITERATIONS);
	ret->iterations_given = !resolved_is_default(settings, SETTING_CAUSAL_ITERATIONS);
	ret->delay_ns = options_duration(settings, SETTING_CAUSAL_DELAY);
	ret->duration_ns = options_duration(settings, SETTING_CAUSAL_DURATION);
	ret->seed = options_seed(settings);
	setting_parse_number(setting_slice(resolved_text(settings, SETTING_CAUSAL_UNTIL_CI)),
			     &ret->until_ci);
	return 0;
}
