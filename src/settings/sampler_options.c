/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See sampler_options.h.
 */
#include "settings/sampler_options.h"

#include "common/settings_value.h"

/* --cputime, --cputime HZ, --cputime=off. */
static int set_sampling_clock_option(struct parsed_command_line *result, enum setting_id use,
				     enum setting_id freq, const char *source, const char *value,
				     struct problem *problem)
{
	bool on, is_switch = value && setting_is_letter(value[0]) &&
			     !setting_parse_bool(setting_slice_from_text(value), &on);
	int error = effective_set_if_not_overridden(result->settings, use, is_switch ? value : "on",
						    ORIGIN_OPTION, source, problem);

	if (!error && value && !is_switch)
		error = effective_set_if_not_overridden(result->settings, freq, value,
							ORIGIN_OPTION, source, problem);
	return error;
}

int option_apply_cputime(struct parsed_command_line *result, const struct extra_option *option,
			 const char *value, struct problem *problem)
{
	(void)option;
	return set_sampling_clock_option(result, SETTING_SAMPLING_CPUTIME,
					 SETTING_SAMPLING_CPUTIME_FREQ, "--cputime", value,
					 problem);
}

int option_apply_realtime(struct parsed_command_line *result, const struct extra_option *option,
			  const char *value, struct problem *problem)
{
	(void)option;
	return set_sampling_clock_option(result, SETTING_SAMPLING_REALTIME,
					 SETTING_SAMPLING_REALTIME_FREQ, "--realtime", value,
					 problem);
}
