/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * All backends together, and the one sink that they tell.
 */
#include "device/device.h"
#include "common/hot.h"

#include <stdatomic.h>

static const struct device_backend *const backends[] = {
	&device_backend_host,
	&device_backend_opencl,
	&device_backend_cuda,
	&device_backend_hsa,
};
#define BACKENDS (sizeof(backends) / sizeof(void *))

static _Atomic(const struct device_sink *) current;
static void (*_Atomic found)(enum device_runtime);
static _Atomic bool ending;

size_t device_backends(const struct device_backend *const **all)
{
	*all = backends;
	return BACKENDS;
}

void device_start(const struct device_sink *sink, void (*runtime_found)(enum device_runtime))
{
	atomic_store(&found, runtime_found);
	atomic_store(&current, sink);
}

KYMO_HOT const struct device_sink *device_sink(void)
{
	return atomic_load_explicit(&current, memory_order_acquire);
}

void device_runtime_found(enum device_runtime runtime)
{
	void (*call)(enum device_runtime) = atomic_load(&found);

	if (call != NULL)
		call(runtime);
}

void device_discover(void)
{
	const struct device_sink *sink = device_sink();

	for (size_t i = 0; sink != NULL && i < BACKENDS; i++)
		backends[i]->discover(sink);
}

void device_process_ends(void)
{
	atomic_store(&ending, true);
}

bool device_is_ending(void)
{
	return atomic_load(&ending);
}

void device_wanted_changed(void)
{
	const struct device_sink *sink = device_sink();

	if (device_is_ending())
		return;
	for (size_t i = 0; sink != NULL && i < BACKENDS; i++)
		backends[i]->wanted_changed(sink);
}

void device_flush(bool wait, uint64_t wait_ns)
{
	for (size_t i = 0; i < BACKENDS; i++)
		backends[i]->flush(wait, wait_ns);
}

void device_finish(void)
{
	for (size_t i = 0; i < BACKENDS; i++)
		backends[i]->finish();
}

void device_forked(void)
{
	for (size_t i = 0; i < BACKENDS; i++)
		backends[i]->forked();
}

void device_losses(struct device_losses *losses)
{
	*losses = (struct device_losses){0};
	for (size_t i = 0; i < BACKENDS; i++) {
		struct device_losses one = {0};

		backends[i]->losses(&one);
		losses->dropped += one.dropped;
		losses->unmatched += one.unmatched;
		losses->incomplete += one.incomplete;
		losses->conflicts += one.conflicts;
	}
}

/* For kymo's own tool: dropped, unmatched, incomplete, conflicts. */
__attribute__((visibility("default"))) void kymo_device_losses(uint64_t counts[4]);

void kymo_device_losses(uint64_t counts[4])
{
	struct device_losses losses;

	device_losses(&losses);
	counts[0] = losses.dropped;
	counts[1] = losses.unmatched;
	counts[2] = losses.incomplete;
	counts[3] = losses.conflicts;
}
