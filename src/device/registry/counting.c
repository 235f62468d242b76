/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See counting.h.
 */
#include "device/counting.h"
#include "common/array.h"
#include "device/registry/devices.h"

static const struct device_counting_backend *counting_backend_for_tests;

const char *counting_status_to_text(enum counting_status status)
{
	static const char *const texts[] = {
		[COUNTING_OK] = "counted",
		[COUNTING_NO_SUCH_EVENT] = "the agent has no such event",
		[COUNTING_DOES_NOT_FIT] = "does not fit in one pass",
		[COUNTING_NOT_PERMITTED] = "not permitted",
		[COUNTING_BUSY] = "another program is counting",
		[COUNTING_NOT_SUPPORTED] = "not supported",
		[COUNTING_NOT_READY] = "the runtime is not up yet",
		[COUNTING_NO_MEMORY] = "no memory",
		[COUNTING_FAILED] = "failed",
		[COUNTING_FILTERED] = "excluded by the filter",
		[COUNTING_TIMED_OUT] = "kernels were waiting for each other",
		[COUNTING_NOT_FINISHED] = "still running at the end",
	};

	return (unsigned)status < ARRAY_SIZE(texts) ? texts[status] : "unknown";
}

static bool stop_at_first_countable_event(void *context, const struct counting_event_info *event)
{
	(void)context;
	(void)event;
	return false;
}

static bool counting_backend_has_agent(const struct device_counting_backend *counting,
				       device_handle agent)
{
	return counting != NULL && counting->events(agent, stop_at_first_countable_event, NULL) !=
					   COUNTING_NO_SUCH_EVENT;
}

const struct device_counting_backend *counting_find_backend_of_agent(device_handle agent)
{
	const struct device_backend *const *backends;
	size_t count = device_get_backends(&backends);

	if (counting_backend_has_agent(counting_backend_for_tests, agent))
		return counting_backend_for_tests;
	for (size_t i = 0; i < count; i++) {
		if (counting_backend_has_agent(backends[i]->counting, agent))
			return backends[i]->counting;
	}
	return NULL;
}

void device_counting_set_test_backend(const struct device_counting_backend *first)
{
	counting_backend_for_tests = first;
}
