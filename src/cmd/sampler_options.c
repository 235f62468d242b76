/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See sampler_options.h.
 */
#include "cmd/sampler_options.h"

#include "common/settings_value.h"

/* --cputime, --cputime HZ, --cputime=off. */
static int set_clock(struct options_result *result, enum setting_id use, enum setting_id freq,
		     const char *source, const char *value, struct problem *problem)
{
	bool on, is_switch = value && setting_is_letter(value[0]) &&
			     !setting_parse_bool(setting_slice(value), &on);
	int error = resolved_set(result->settings, use, is_switch ? value : "on", ORIGIN_OPTION,
				 source, problem);

	if (!error && value && !is_switch)
		error = resolved_set(result->settings, freq, value, ORIGIN_OPTION, source, problem);
	return error;
}

int option_cputime(struct options_result *result, const struct option_extra *option,
		   const char *value, struct problem *problem)
{
	(void)option;
	return set_clock(result, SETTING_SAMPLING_CPUTIME, SETTING_SAMPLING_CPUTIME_FREQ,
			 "--cputime", value, problem);
}

int option_realtime(struct options_result *result, const struct option_extra *option,
		    const char *value, struct problem *problem)
{
	(void)option;
	return set_clock(result, SETTING_SAMPLING_REALTIME, SETTING_SAMPLING_REALTIME_FREQ,
			 "--realtime", value, problem);
}
