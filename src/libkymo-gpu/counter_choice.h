/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * From names of counters to a set of them that an agent counts at once.
 */
#ifndef KYMO_LIBKYMO_GPU_COUNTER_CHOICE_H
#define KYMO_LIBKYMO_GPU_COUNTER_CHOICE_H

#include <rocprofiler-sdk/rocprofiler.h>

/* The counters of `names` (separated by commas or blanks) that the agent has, as a set; 0 where it
 * has none of them, or they cannot be counted. What is left out and why is a notice. */
rocprofiler_counter_config_id_t counter_choice_create_config(rocprofiler_agent_id_t agent,
							     const char *names);
/* Why the calling thread was just refused something of counters; never NULL. */
const char *counter_choice_get_problem_text(rocprofiler_status_t status);

#endif
