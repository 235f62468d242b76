/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Counters that are asked for, looked at before the program starts: are there such, can they be
 * counted together, which launches are meant.
 */
#ifndef KYMO_COUNTING_REQUEST_H
#define KYMO_COUNTING_REQUEST_H

#include <jansson.h>

#include "settings/effective.h"

bool counters_are_requested(const struct effective_settings *settings);
/* Nothing of devices needs to be asked for this: -EINVAL where KERNEL_RANGE says nothing. */
int counters_request_check_kernel_range(const struct effective_settings *settings,
					struct problem *problem);
/* The same for files of definitions that cannot be read. */
int counters_request_check_def_files(const struct effective_settings *settings,
				     struct problem *problem);
/* 0 or -EINVAL: no device has such a counter, or they do not fit. What else is in the way is a
 * warning. *early: the tool library is to be there from the program's start, since the devices
 * that are to be read over time are there without a runtime. */
int counters_request_check_on_devices(const struct effective_settings *settings, bool *early,
				      struct problem *problem);
/* Before the first of several runs: the devices are asked once (query.h). */
int counters_request_check_names(const struct effective_settings *settings, const json_t *agents,
				 bool *early, struct problem *problem);

#endif
