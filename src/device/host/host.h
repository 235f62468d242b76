/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Inside of the host's backend.
 */
#ifndef KYMO_DEVICE_HOST_HOST_H
#define KYMO_DEVICE_HOST_HOST_H

#include "device/counting.h"

/* The agent of a package, told once; what the process does is counted on the first alone. */
void host_add_package(device_handle agent, uint32_t package, bool is_first);
extern const struct device_counting_backend host_counting;
device_handle host_get_first_agent(void); /* DEVICE_HANDLE_NONE: not asked for yet */
struct process_counter_set;
const struct process_counter_set *host_get_process_counter_set(const void *set);

/* regions.c */
void host_regions_end_all(void); /* the process ends */
void host_regions_reset_forked(void);

#endif
