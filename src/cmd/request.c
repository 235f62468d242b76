/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See request.h.
 */
#include "cmd/request.h"

#include <errno.h>
#include <string.h>

#include "cmd/counters_request.h"
#include "cmd/message.h"
#include "cmd/nearest.h"
#include "common/region_categories.h"
#include "common/settings_value.h"

static bool request_is_category(struct setting_slice word)
{
	for (unsigned i = 0; i < REGION_CATEGORY_COUNT; i++) {
		if (setting_slice_is(word, region_categories[i].name))
			return true;
	}
	return false;
}

/* Programs may have categories of their own; a name close to one of kymo's is no such. */
static void request_warn_categories(const struct resolved *settings, enum setting_id id)
{
	struct setting_slice rest = setting_slice(resolved_text(settings, id)), word;

	while (setting_list_next(&rest, &word)) {
		struct nearest nearest;
		char hint[64];

		if (request_is_category(word))
			continue;
		nearest_init(&nearest, word.text, word.length);
		for (unsigned i = 0; i < REGION_CATEGORY_COUNT; i++)
			nearest_offer(&nearest, region_categories[i].name,
				      strlen(region_categories[i].name));
		if (nearest.best)
			message_warning("%s: '%.*s' is none of kymo's categories%s",
					settings->values[id].source ? settings->values[id].source
								    : settings_table[id].name,
					(int)word.length, word.text,
					nearest_hint(&nearest, "", hint, sizeof(hint)));
	}
}

static int request_check_signals(const struct resolved *settings, struct problem *problem)
{
	const char *control = resolved_text(settings, SETTING_CONTROL_SIGNAL);

	if (!setting_slice_is(setting_slice(control),
			      resolved_text(settings, SETTING_SAMPLING_SIGNAL)))
		return 0;
	return problem_set(problem, -EINVAL, "CONTROL_SIGNAL and SAMPLING_SIGNAL cannot both be %s",
			   control);
}

/* Two lists of which one says what to record, the other what not. */
static int request_check_lists(const struct resolved *settings, enum setting_id wanted,
			       enum setting_id unwanted, struct problem *problem)
{
	if (!*resolved_text(settings, wanted) || !*resolved_text(settings, unwanted))
		return 0;
	return problem_set(problem, -EINVAL,
			   "%s and %s cannot both be set: one says what to record, the other what "
			   "not",
			   settings_table[wanted].name, settings_table[unwanted].name);
}

int request_check(const struct resolved *settings, struct problem *problem)
{
	int error = request_check_lists(settings, SETTING_ENABLE_CATEGORIES,
					SETTING_DISABLE_CATEGORIES, problem);

	if (!error)
		error = request_check_lists(settings, SETTING_MPIP_PERMIT_LIST,
					    SETTING_MPIP_REJECT_LIST, problem);
	if (!error)
		error = counters_request_check_range(settings, problem);
	if (!error)
		error = counters_request_check_files(settings, problem);
	if (error)
		return error;
	request_warn_categories(settings, SETTING_ENABLE_CATEGORIES);
	request_warn_categories(settings, SETTING_DISABLE_CATEGORIES);
	return request_check_signals(settings, problem);
}
