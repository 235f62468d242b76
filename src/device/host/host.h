/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Inside of the host's backend.
 */
#ifndef KYMO_DEVICE_HOST_HOST_H
#define KYMO_DEVICE_HOST_HOST_H

#include "device/counting.h"

/* The agent of a package, told once; what the process does is counted on the first alone. */
void host_package_is(device_handle agent, uint32_t package, bool is_first);
extern const struct device_counting host_counting;
device_handle host_first_agent(void); /* DEVICE_NONE: not asked for yet */
struct process_set;
const struct process_set *host_set_process(const void *set);

/* regions.c */
void host_regions_give_up(void); /* the process ends */
void host_regions_forked(void);

#endif
