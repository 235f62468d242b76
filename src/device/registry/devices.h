/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * All backends together: the list of them, and what the tool library asks of all at once.
 */
#ifndef KYMO_DEVICE_REGISTRY_DEVICES_H
#define KYMO_DEVICE_REGISTRY_DEVICES_H

#include "device/device.h"

size_t device_get_backends(const struct device_backend *const **all);
/* Each asks every backend; see struct device_backend. */
void device_discover_agents(void);
void device_notify_wanted_services_changed(void);
void device_flush_all_backends(bool wait, uint64_t wait_ns);
void device_finish_all_backends(void);
void device_tell_backends_of_fork(void);
void device_sum_losses_of_all_backends(
	struct device_record_loss_counts *losses); /* the sum over all backends */

/* NULL: a service whose calls no backend numbers. */
const struct device_call_catalog *
device_find_call_catalog_of_service(enum device_service_kind service);

#endif
