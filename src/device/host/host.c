/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The machine's own processors: one agent a package. Everything comes from /proc and /sys; nothing
 * is ever enqueued here, but counted it is (counting.c).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "device/host/host.h"
#include "device/over_time.h"

#define PACKAGES_MAX 64
#define CPUS_MAX     4096

static bool read_line(const char *path, char *text, size_t size)
{
	FILE *stream = fopen(path, "re");
	bool found = stream != NULL && fgets(text, (int)size, stream) != NULL;

	if (stream != NULL)
		fclose(stream);
	if (found)
		text[strcspn(text, "\n")] = '\0';
	return found;
}

static uint32_t cpu_number(unsigned cpu, const char *what)
{
	char path[96], text[32];

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/%s", cpu, what);
	return read_line(path, text, sizeof(text)) ? (uint32_t)strtoul(text, NULL, 10) : UINT32_MAX;
}

/* The first line "key : value" of /proc/cpuinfo. */
static void cpu_text(const char *key, char *text, size_t size)
{
	FILE *stream = fopen("/proc/cpuinfo", "re");
	char line[512];

	text[0] = '\0';
	while (stream != NULL && text[0] == '\0' && fgets(line, sizeof(line), stream) != NULL) {
		char *colon = strchr(line, ':');

		if (colon == NULL || strncmp(line, key, strlen(key)) != 0)
			continue;
		colon[strcspn(colon, "\n")] = '\0';
		snprintf(text, size, "%s", colon[1] == ' ' ? colon + 2 : colon + 1);
	}
	if (stream != NULL)
		fclose(stream);
}

static uint64_t memory_bytes(void)
{
	FILE *stream = fopen("/proc/meminfo", "re");
	unsigned long kib = 0;

	if (stream == NULL)
		return 0;
	if (fscanf(stream, "MemTotal: %lu", &kib) != 1)
		kib = 0;
	fclose(stream);
	return (uint64_t)kib << 10;
}

/* Logical CPUs by package; packages are numbered as found. */
static unsigned count_cpus(uint32_t cores[PACKAGES_MAX], uint32_t packages[PACKAGES_MAX],
			   uint32_t clocks[PACKAGES_MAX])
{
	unsigned count = 0;

	for (unsigned cpu = 0; cpu < CPUS_MAX; cpu++) {
		uint32_t package = cpu_number(cpu, "topology/physical_package_id");
		unsigned i = 0;

		if (package == UINT32_MAX)
			break;
		while (i < count && packages[i] != package)
			i++;
		if (i == PACKAGES_MAX)
			continue;
		if (i == count) {
			uint32_t khz = cpu_number(cpu, "cpufreq/cpuinfo_max_freq");

			packages[i] = package;
			cores[i] = 0;
			clocks[i] = khz == UINT32_MAX ? 0 : khz / 1000;
			count++;
		}
		cores[i]++;
	}
	return count;
}

static uint64_t hash_text(const char *text) /* FNV-1a */
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	while (*text != '\0')
		hash = (hash ^ (unsigned char)*text++) * UINT64_C(0x100000001b3);
	return hash;
}

static void make_uuid(uint32_t package, uint8_t uuid[16])
{
	char machine[64];
	uint64_t hash;

	if (!read_line("/etc/machine-id", machine, sizeof(machine)))
		machine[0] = '\0';
	hash = hash_text(machine) + package;
	memcpy(uuid, &hash, sizeof(hash));
	hash = hash * UINT64_C(0x9e3779b97f4a7c15) + 1;
	memcpy(uuid + 8, &hash, sizeof(hash));
}

static void discover(const struct device_sink *sink)
{
	uint32_t cores[PACKAGES_MAX], packages[PACKAGES_MAX], clocks[PACKAGES_MAX];
	char model[256], megahertz[32];
	unsigned count = count_cpus(cores, packages, clocks);

	cpu_text("model name", model, sizeof(model));
	cpu_text("cpu MHz", megahertz, sizeof(megahertz));
	if (count == 0) { /* no /sys */
		packages[0] = clocks[0] = 0;
		cores[0] = 1;
		count = 1;
	}
	for (unsigned i = 0; i < count; i++) {
		struct device_agent agent = {
			.runtime = DEVICE_RUNTIME_HOST,
			.name = model,
			.vendor_name = "CPU", /* as tools look for it */
			.product_name = model,
			.model_name = model,
			.cores = cores[i],
			.core_clock_mhz =
				clocks[i] != 0 ? clocks[i] : (uint32_t)strtoul(megahertz, NULL, 10),
			.memory_bytes = memory_bytes() / count,
			.runtime_ordinal = packages[i],
		};

		make_uuid(packages[i], agent.uuid);
		host_package_is(sink->agent(&agent), packages[i], i == 0);
	}
}

static void wanted_changed(const struct device_sink *sink)
{
	(void)sink;
}

static void flush(bool wait, uint64_t wait_ns)
{
	(void)wait_ns;
	if (wait)
		host_regions_give_up();
}

static void forked(void)
{
	host_regions_forked();
	over_time_forked();
}

static void nothing(void)
{
}

static void losses(struct device_losses *out)
{
	(void)out;
}

const struct device_backend device_backend_host = {
	"host", DEVICE_RUNTIME_HOST, discover, wanted_changed, flush, nothing, forked,
	losses, &host_counting};
