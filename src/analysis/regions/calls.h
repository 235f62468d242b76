/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Instrumented functions in the session model (kymo/plan.h): in which modules, and what is known of
 * those that were not recorded call by call.
 *
 * Recorded calls are regions (analysis/regions/regions.h) of the category of instrumented functions
 * (REGION_INSTRUMENTED) and events like those of all other regions. A function has a region once it
 * was called, counted or demoted.
 *
 * Life: as analysis/regions/regions.h.
 */
#ifndef KYMO_ANALYSIS_REGIONS_CALLS_H
#define KYMO_ANALYSIS_REGIONS_CALLS_H

#include "analysis/regions/regions.h"
#include "kymo/plan.h"

struct model_instrumented_module {
	uint32_t process;
	const char *module, *plan; /* paths */
	uint64_t time_ns, bias, arena, arena_size;
	uint32_t first_id, count; /* functions, in the plan's order */
	uint32_t called;          /* that were executed, as far as anything tells */
	bool was_plan_read;       /* the plan was there and could be read */
};

/* Calls that were only counted, of a function, or how often a place in one was come by. */
struct model_counted_function {
	uint32_t process, id, region;
	uint64_t calls;
};

struct model_demoted_function {
	uint32_t process, id, region;
	uint64_t time_ns;
	enum plan_mode mode; /* since then */
};

struct model_instrumented_calls {
	struct model_instrumented_module *modules;
	struct model_counted_function *counted_functions; /* the most often called first */
	struct model_demoted_function *demoted_functions; /* by process and time */
	uint32_t module_count, counted_function_count, demoted_function_count;
	uint64_t recorded;  /* calls whose entry is in the data */
	uint64_t words;     /* entries and exits */
	uint64_t unwound;   /* calls that an exit of an outer one ended */
	uint64_t unmatched; /* exits without an entry */
};

#define CALLS_DATA_KIND_NAME "calls"

extern const struct session_data_kind_operations calls_data_kind_operations;

static inline struct model_instrumented_calls *session_get_calls(const struct session *session)
{
	return session_find_kind_data(session, CALLS_DATA_KIND_NAME);
}

#endif
