/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See counter_choice.h. A set that is refused as a whole is tried counter by counter, so that what
 * does not fit can be named and the rest is counted.
 */
#include "libkymo-gpu/counter_choice.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/settings_value.h"
#include "kymo/counting.h"
#include "libkymo-gpu/file.h"

#define COUNTERS_MAX 256

/* Only kymo's tool library has it. */
#pragma weak kymo_counter_config_problem

struct counter_selection {
	const char *names;
	rocprofiler_counter_id_t ids[COUNTERS_MAX];
	size_t count;
};

static bool name_is_in_list(const char *names, const char *name)
{
	struct text_slice rest = setting_slice_from_text(names), word;

	while (setting_next_list_word(&rest, &word)) {
		if (word.length == strlen(name) && memcmp(word.text, name, word.length) == 0)
			return true;
	}
	return false;
}

static rocprofiler_status_t choose_counters_with_listed_names(rocprofiler_agent_id_t agent,
							      rocprofiler_counter_id_t *ids,
							      size_t count, void *data)
{
	struct counter_selection *choice = data;

	(void)agent;
	for (size_t i = 0; i < count && choice->count < COUNTERS_MAX; i++) {
		rocprofiler_counter_info_v0_t info;

		if (rocprofiler_query_counter_info(ids[i], ROCPROFILER_COUNTER_INFO_VERSION_0,
						   &info) == ROCPROFILER_STATUS_SUCCESS &&
		    name_is_in_list(choice->names, info.name))
			choice->ids[choice->count++] = ids[i];
	}
	return ROCPROFILER_STATUS_SUCCESS;
}

const char *counter_choice_get_problem_text(rocprofiler_status_t status)
{
	const char *why =
		kymo_counter_config_problem != NULL ? kymo_counter_config_problem() : NULL;

	if (why == NULL || *why == '\0')
		why = rocprofiler_get_status_string(status);
	return why != NULL ? why : "unknown status";
}

static void write_refused_counter_notice(rocprofiler_counter_id_t id, rocprofiler_status_t status)
{
	rocprofiler_counter_info_v0_t info;
	char text[768], why[512];

	snprintf(why, sizeof(why), "%s", counter_choice_get_problem_text(status));
	if (rocprofiler_query_counter_info(id, ROCPROFILER_COUNTER_INFO_VERSION_0, &info) !=
	    ROCPROFILER_STATUS_SUCCESS)
		return;
	snprintf(text, sizeof(text), "%.200s is not counted: %s%s", info.name, why,
		 status == ROCPROFILER_STATUS_ERROR_EXCEEDS_HW_LIMIT
			 ? "; count it in a separate run"
			 : "");
	gpu_file_write_notice(text);
}

static rocprofiler_counter_config_id_t
create_config_counter_by_counter(rocprofiler_agent_id_t agent, struct counter_selection *choice)
{
	rocprofiler_counter_config_id_t whole = {0};

	for (size_t i = 0; i < choice->count; i++) {
		rocprofiler_counter_config_id_t more = whole;
		rocprofiler_status_t status =
			rocprofiler_create_counter_config(agent, &choice->ids[i], 1, &more);

		if (status == ROCPROFILER_STATUS_SUCCESS)
			whole = more;
		else
			write_refused_counter_notice(choice->ids[i], status);
	}
	return whole;
}

rocprofiler_counter_config_id_t counter_choice_create_config(rocprofiler_agent_id_t agent,
							     const char *names)
{
	rocprofiler_counter_config_id_t config = {0};
	struct counter_selection *choice = calloc(1, sizeof(*choice));

	if (choice == NULL)
		return config;
	choice->names = names;
	rocprofiler_iterate_agent_supported_counters(agent, choose_counters_with_listed_names,
						     choice);
	if (choice->count != 0 &&
	    rocprofiler_create_counter_config(agent, choice->ids, choice->count, &config) !=
		    ROCPROFILER_STATUS_SUCCESS) {
		config.handle = 0;
		config = create_config_counter_by_counter(agent, choice);
	}
	free(choice);
	return config;
}
