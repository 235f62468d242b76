/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The HSA backend against a runtime of the test's own, which gives its tables as AMD's does with
 * libraries of HSA_TOOLS_LIB: hsa_api_trace.h says how they lie. No AMD device is needed, and none
 * has ever been asked.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "sink.h"

/* hsa_agent_t, hsa_status_t, hsa_agent_info_t, hsa_amd_agent_info_t. */
struct hsa_agent {
	uint64_t handle;
};

enum {
	HSA_SUCCESS = 0,
	HSA_ERROR = 0x1000,
	HSA_NAME = 0,
	HSA_VENDOR = 1,
	HSA_WAVE_SIZE = 6,
	HSA_DEVICE = 17,
	HSA_UNITS = 0xa002,
	HSA_CLOCK = 0xa003,
	HSA_BDF = 0xa006,
	HSA_PRODUCT = 0xa009,
	HSA_DOMAIN = 0xa00f,
	HSA_UUID = 0xa011,
	HSA_AGENTS = 3
};

struct hsa_version {
	uint32_t major, minor, step, reserved;
};

struct hsa_core_table {
	struct hsa_version version;
	int (*others[5])(void);
	int (*iterate_agents)(int (*each)(struct hsa_agent agent, void *context), void *context);
	int (*agent_get_info)(struct hsa_agent agent, unsigned what, void *value);
	int (*more[100])(void);
};

struct hsa_table {
	struct hsa_version version;
	const struct hsa_core_table *core;
};

bool OnLoad(struct hsa_table *table, uint64_t version, uint64_t failed_count,
	    const char *const *failed_names);
void OnUnload(void);

static unsigned asked;
static bool knows_nothing;

static int iterate(int (*each)(struct hsa_agent agent, void *context), void *context)
{
	for (uint64_t i = 1; i <= HSA_AGENTS; i++) {
		if (each((struct hsa_agent){i}, context) != HSA_SUCCESS)
			return HSA_ERROR;
	}
	return HSA_SUCCESS;
}

/* Agent 1 is the processor. Texts fill all of their 64 bytes. */
static int get_info(struct hsa_agent agent, unsigned what, void *value)
{
	uint32_t number = 0;

	asked++;
	if (knows_nothing && what != HSA_DEVICE)
		return HSA_ERROR;
	switch (what) {
	case HSA_NAME:
		snprintf(value, 64, "gfx942");
		return HSA_SUCCESS;
	case HSA_VENDOR:
		memset(value, 'V', 64);
		return HSA_SUCCESS;
	case HSA_PRODUCT:
		snprintf(value, 64, "Instinct of test");
		return HSA_SUCCESS;
	case HSA_UUID:
		snprintf(value, 64, "GPU-00000000000000%02x", (unsigned)agent.handle);
		return HSA_SUCCESS;
	case HSA_DEVICE:
		number = agent.handle != 1;
		break;
	case HSA_UNITS:
		number = 304;
		break;
	case HSA_WAVE_SIZE:
		number = 64;
		break;
	case HSA_CLOCK:
		number = 2100;
		break;
	case HSA_BDF:
		number = (uint32_t)agent.handle << 8;
		break;
	case HSA_DOMAIN:
		number = 1;
		break;
	default:
		return HSA_ERROR;
	}
	memcpy(value, &number, sizeof(number));
	return HSA_SUCCESS;
}

static struct hsa_core_table core = {
	.version = {2, sizeof(core), 0, 0}, .iterate_agents = iterate, .agent_get_info = get_info};
static struct hsa_table table = {{3, sizeof(table), 0, 0}, &core};

static void devices_are_told(void **state)
{
	(void)state;
	sink_start();
	assert_true(OnLoad(&table, 1, 0, NULL));
	assert_int_equal(told.agents, HSA_AGENTS - 1);
	assert_int_equal(told.runtimes, 1);
	assert_string_equal(told.last_agent, "gfx942, Instinct of test");
	assert_int_equal(told.last_device.runtime, DEVICE_RUNTIME_HSA);
	assert_true(told.last_device.is_gpu);
	assert_int_equal(told.last_device.compute_units, 304);
	assert_int_equal(told.last_device.wave_size, 64);
	assert_int_equal(told.last_device.clock_mhz, 2100);
	assert_int_equal(told.last_device.pci_location, HSA_AGENTS << 8);
	assert_int_equal(told.last_device.pci_domain, 1);
	assert_int_equal(told.last_device.uuid[0], HSA_AGENTS);
	assert_int_equal(told.misused, 0);
}

static void asked_again_by_the_library(void **state)
{
	(void)state;
	sink_start();
	device_backend_hsa.discover_devices(device_get_sink());
	assert_int_equal(told.agents, HSA_AGENTS - 1);
	device_backend_hsa.flush(true, 1000);
}

static void a_runtime_that_knows_nothing(void **state)
{
	(void)state;
	sink_start();
	knows_nothing = true;
	device_backend_hsa.discover_devices(device_get_sink());
	knows_nothing = false;
	assert_int_equal(told.agents, HSA_AGENTS - 1);
	assert_string_equal(told.last_agent, ", ");
	assert_int_equal(told.last_device.compute_units, 0);
	assert_int_equal(told.last_device.uuid[0], 0);
}

static void other_tables_are_refused(void **state)
{
	static struct hsa_table without = {{3, sizeof(without), 0, 0}, NULL};
	unsigned before = asked;

	(void)state;
	sink_start();
	core.version.minor = 32;
	assert_false(OnLoad(&table, 1, 0, NULL));
	core.version.minor = sizeof(core);
	assert_false(OnLoad(&without, 1, 0, NULL));
	assert_false(OnLoad(NULL, 1, 0, NULL));
	assert_int_equal(asked, before);
	assert_int_equal(told.agents, 0);
}

static void nothing_is_asked_after_its_end(void **state)
{
	unsigned before;

	(void)state;
	sink_start();
	assert_true(OnLoad(&table, 1, 0, NULL));
	OnUnload();
	before = asked;
	device_backend_hsa.discover_devices(device_get_sink());
	assert_int_equal(asked, before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(devices_are_told),
		cmocka_unit_test(asked_again_by_the_library),
		cmocka_unit_test(a_runtime_that_knows_nothing),
		cmocka_unit_test(other_tables_are_refused),
		cmocka_unit_test(nothing_is_asked_after_its_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
