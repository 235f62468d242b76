/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See devices.h.
 */
#include "device/registry/devices.h"

static const struct device_backend *const device_backends[] = {
	&device_backend_host,
	&device_backend_opencl,
	&device_backend_cuda,
	&device_backend_hsa,
};
#define BACKEND_COUNT (sizeof(device_backends) / sizeof(void *))

size_t device_get_backends(const struct device_backend *const **all)
{
	*all = device_backends;
	return BACKEND_COUNT;
}

void device_discover_agents(void)
{
	const struct device_sink *sink = device_get_sink();

	for (size_t i = 0; sink != NULL && i < BACKEND_COUNT; i++)
		device_backends[i]->discover_devices(sink);
}

void device_notify_wanted_services_changed(void)
{
	const struct device_sink *sink = device_get_sink();

	if (device_process_is_ending())
		return;
	for (size_t i = 0; sink != NULL && i < BACKEND_COUNT; i++)
		device_backends[i]->wanted_services_changed(sink);
}

void device_flush_all_backends(bool wait, uint64_t wait_ns)
{
	for (size_t i = 0; i < BACKEND_COUNT; i++)
		device_backends[i]->flush(wait, wait_ns);
}

void device_finish_all_backends(void)
{
	for (size_t i = 0; i < BACKEND_COUNT; i++)
		device_backends[i]->finish();
}

void device_tell_backends_of_fork(void)
{
	for (size_t i = 0; i < BACKEND_COUNT; i++)
		device_backends[i]->forked();
}

void device_sum_losses_of_all_backends(struct device_record_loss_counts *losses)
{
	*losses = (struct device_record_loss_counts){0};
	for (size_t i = 0; i < BACKEND_COUNT; i++) {
		struct device_record_loss_counts one = {0};

		device_backends[i]->losses(&one);
		losses->dropped += one.dropped;
		losses->unmatched_work_count += one.unmatched_work_count;
		losses->incomplete_work_count += one.incomplete_work_count;
		losses->tracing_conflict_count += one.tracing_conflict_count;
	}
}

/* For kymo's own tool: dropped, unmatched, incomplete, conflicts. */
__attribute__((visibility("default"))) void kymo_device_losses(uint64_t counts[4]);

void kymo_device_losses(uint64_t counts[4])
{
	struct device_record_loss_counts losses;

	device_sum_losses_of_all_backends(&losses);
	counts[0] = losses.dropped;
	counts[1] = losses.unmatched_work_count;
	counts[2] = losses.incomplete_work_count;
	counts[3] = losses.tracing_conflict_count;
}
