/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 */
#include "device/device.h"

static void discover(const struct device_sink *sink)
{
	(void)sink;
}

static void wanted_changed(const struct device_sink *sink)
{
	(void)sink;
}

static void flush(bool wait, uint64_t wait_ns)
{
	(void)wait;
	(void)wait_ns;
}

static void nothing(void)
{
}

static void losses(struct device_losses *out)
{
	(void)out;
}

const struct device_backend device_backend_hsa = {
	"hsa", DEVICE_RUNTIME_HSA, discover, wanted_changed, flush, nothing, nothing, losses};
