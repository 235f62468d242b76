/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See conflicts.h.
 */
#include "runs/conflicts.h"

#include <errno.h>
#include <string.h>

#include "common/region_categories.h"
#include "common/settings_value.h"
#include "console/message.h"
#include "counting/request.h"
#include "settings/suggest.h"

static bool is_region_category(struct text_slice word)
{
	for (unsigned i = 0; i < REGION_CATEGORY_COUNT; i++) {
		if (setting_slice_equals_word(word, region_categories[i].name))
			return true;
	}
	return false;
}

/* Programs may have categories of their own; a name close to one of kymo's is no such. */
static void warn_of_misspelled_categories(const struct effective_settings *settings,
					  enum setting_id id)
{
	struct text_slice rest = setting_slice_from_text(effective_setting_text(settings, id)),
			  word;

	while (setting_next_list_word(&rest, &word)) {
		struct suggestion suggestion;
		char hint[64];

		if (is_region_category(word))
			continue;
		suggestion_init(&suggestion, word.text, word.length);
		for (unsigned i = 0; i < REGION_CATEGORY_COUNT; i++)
			suggestion_offer(&suggestion, region_categories[i].name,
					 strlen(region_categories[i].name));
		if (suggestion.best_candidate)
			message_warning(
				"%s: '%.*s' is not a category of kymo's%s",
				settings->values[id].source ? settings->values[id].source
							    : settings_table[id].name,
				(int)word.length, word.text,
				suggestion_format_hint(&suggestion, "", hint, sizeof(hint)));
	}
}

static int conflicts_check_signal_settings(const struct effective_settings *settings,
					   struct problem *problem)
{
	const char *control = effective_setting_text(settings, SETTING_CONTROL_SIGNAL);

	if (!setting_slice_equals_word(setting_slice_from_text(control),
				       effective_setting_text(settings, SETTING_SAMPLING_SIGNAL)))
		return 0;
	return problem_set(problem, -EINVAL, "CONTROL_SIGNAL and SAMPLING_SIGNAL cannot both be %s",
			   control);
}

/* Two lists of which one says what to record, the other what not. */
static int conflicts_refuse_two_given_lists(const struct effective_settings *settings,
					    enum setting_id wanted, enum setting_id unwanted,
					    struct problem *problem)
{
	if (!*effective_setting_text(settings, wanted) ||
	    !*effective_setting_text(settings, unwanted))
		return 0;
	return problem_set(
		problem, -EINVAL,
		"%s and %s cannot both be set: one includes categories, the other excludes them",
		settings_table[wanted].name, settings_table[unwanted].name);
}

int conflicts_check_settings(const struct effective_settings *settings, struct problem *problem)
{
	int error = conflicts_refuse_two_given_lists(settings, SETTING_ENABLE_CATEGORIES,
						     SETTING_DISABLE_CATEGORIES, problem);

	if (!error)
		error = conflicts_refuse_two_given_lists(settings, SETTING_MPIP_PERMIT_LIST,
							 SETTING_MPIP_REJECT_LIST, problem);
	if (!error)
		error = counters_request_check_kernel_range(settings, problem);
	if (!error)
		error = counters_request_check_def_files(settings, problem);
	if (error)
		return error;
	warn_of_misspelled_categories(settings, SETTING_ENABLE_CATEGORIES);
	warn_of_misspelled_categories(settings, SETTING_DISABLE_CATEGORIES);
	return conflicts_check_signal_settings(settings, problem);
}
