/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The machine's own processors: one agent a package. Everything comes from /proc and /sys; nothing
 * is ever enqueued here, but counted it is (counting.c).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text_hash.h"
#include "device/device.h"
#include "device/host/host.h"
#include "device/periodic_counters.h"

#define PACKAGES_MAX 64
#define CPUS_MAX     4096

static bool read_first_line(const char *path, char *text, size_t size)
{
	FILE *stream = fopen(path, "re");
	bool found = stream != NULL && fgets(text, (int)size, stream) != NULL;

	if (stream != NULL)
		fclose(stream);
	if (found)
		text[strcspn(text, "\n")] = '\0';
	return found;
}

static uint32_t read_cpu_sysfs_number(unsigned cpu, const char *what)
{
	char path[96], text[32];

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/%s", cpu, what);
	return read_first_line(path, text, sizeof(text)) ? (uint32_t)strtoul(text, NULL, 10)
							 : UINT32_MAX;
}

/* The first line "key : value" of /proc/cpuinfo. */
static void read_cpuinfo_value_of_key(const char *key, char *text, size_t size)
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

static uint64_t read_total_memory_bytes(void)
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
static unsigned count_packages_and_their_cpus(uint32_t cores[PACKAGES_MAX],
					      uint32_t packages[PACKAGES_MAX],
					      uint32_t clocks[PACKAGES_MAX])
{
	unsigned count = 0;

	for (unsigned cpu = 0; cpu < CPUS_MAX; cpu++) {
		uint32_t package = read_cpu_sysfs_number(cpu, "topology/physical_package_id");
		unsigned i = 0;

		if (package == UINT32_MAX)
			break;
		while (i < count && packages[i] != package)
			i++;
		if (i == PACKAGES_MAX)
			continue;
		if (i == count) {
			uint32_t khz = read_cpu_sysfs_number(cpu, "cpufreq/cpuinfo_max_freq");

			packages[i] = package;
			cores[i] = 0;
			clocks[i] = khz == UINT32_MAX ? 0 : khz / 1000;
			count++;
		}
		cores[i]++;
	}
	return count;
}

static void compute_package_uuid(uint32_t package, uint8_t uuid[16])
{
	char machine[64];
	uint64_t hash;

	if (!read_first_line("/etc/machine-id", machine, sizeof(machine)))
		machine[0] = '\0';
	hash = text_hash_append(TEXT_HASH_OF_NOTHING, machine) + package;
	memcpy(uuid, &hash, sizeof(hash));
	hash = hash * UINT64_C(0x9e3779b97f4a7c15) + 1;
	memcpy(uuid + 8, &hash, sizeof(hash));
}

static void backend_discover_agents(const struct device_sink *sink)
{
	uint32_t cores[PACKAGES_MAX], packages[PACKAGES_MAX], clocks[PACKAGES_MAX];
	char model[256], megahertz[32];
	unsigned count = count_packages_and_their_cpus(cores, packages, clocks);

	read_cpuinfo_value_of_key("model name", model, sizeof(model));
	read_cpuinfo_value_of_key("cpu MHz", megahertz, sizeof(megahertz));
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
			.logical_cpu_count = cores[i],
			.cpu_core_clock_mhz =
				clocks[i] != 0 ? clocks[i] : (uint32_t)strtoul(megahertz, NULL, 10),
			.memory_bytes = read_total_memory_bytes() / count,
			.runtime_ordinal = packages[i],
		};

		compute_package_uuid(packages[i], agent.uuid);
		host_add_package(sink->agent(&agent), packages[i], i == 0);
	}
}

static void host_ignore_wanted_change(const struct device_sink *sink)
{
	(void)sink;
}

static void backend_end_regions_if_flush_waits(bool wait, uint64_t wait_ns)
{
	(void)wait_ns;
	if (wait)
		host_regions_end_all();
}

static void backend_handle_fork(void)
{
	host_regions_reset_forked();
	periodic_counters_reset_forked();
}

static void do_nothing(void)
{
}

static void host_leave_losses_zero(struct device_record_loss_counts *out)
{
	(void)out;
}

const struct device_backend device_backend_host = {"host",
						   DEVICE_RUNTIME_HOST,
						   backend_discover_agents,
						   host_ignore_wanted_change,
						   backend_end_regions_if_flush_waits,
						   do_nothing,
						   backend_handle_fork,
						   host_leave_losses_zero,
						   &host_counting};
