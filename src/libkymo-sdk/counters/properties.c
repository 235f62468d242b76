/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Properties of agents that expressions may name, by upstream's names of them.
 */
#include "libkymo-sdk/counters/counters.h"

#define PROPERTIES(ENTRY)                                                                          \
	ENTRY(cpu_cores_count)                                                                     \
	ENTRY(simd_count)                                                                          \
	ENTRY(mem_banks_count)                                                                     \
	ENTRY(caches_count)                                                                        \
	ENTRY(io_links_count)                                                                      \
	ENTRY(cpu_core_id_base)                                                                    \
	ENTRY(simd_id_base)                                                                        \
	ENTRY(max_waves_per_simd)                                                                  \
	ENTRY(lds_size_in_kb)                                                                      \
	ENTRY(gds_size_in_kb)                                                                      \
	ENTRY(num_gws)                                                                             \
	ENTRY(wave_front_size)                                                                     \
	ENTRY(array_count)                                                                         \
	ENTRY(simd_arrays_per_engine)                                                              \
	ENTRY(cu_per_simd_array)                                                                   \
	ENTRY(simd_per_cu)                                                                         \
	ENTRY(max_slots_scratch_cu)                                                                \
	ENTRY(gfx_target_version)                                                                  \
	ENTRY(vendor_id)                                                                           \
	ENTRY(device_id)                                                                           \
	ENTRY(location_id)                                                                         \
	ENTRY(domain)                                                                              \
	ENTRY(drm_render_minor)                                                                    \
	ENTRY(hive_id)                                                                             \
	ENTRY(num_sdma_engines)                                                                    \
	ENTRY(num_sdma_xgmi_engines)                                                               \
	ENTRY(num_sdma_queues_per_engine)                                                          \
	ENTRY(num_cp_queues)                                                                       \
	ENTRY(max_engine_clk_ccompute)                                                             \
	/* Upstream has these in an agent, but no name for them in expressions. */                 \
	ENTRY(max_engine_clk_fcompute)                                                             \
	ENTRY(cu_count)                                                                            \
	ENTRY(num_xcc)                                                                             \
	ENTRY(num_shader_banks)                                                                    \
	ENTRY(max_waves_per_cu)                                                                    \
	ENTRY(local_mem_size)

#define PROPERTY_NAME(name) #name,
static const char *const property_names[] = {PROPERTIES(PROPERTY_NAME)};

#define PROPERTY_ENUM(name) PROPERTY_##name,
enum { PROPERTIES(PROPERTY_ENUM) };

uint32_t sdk_counter_properties(const char *const **names)
{
	*names = property_names;
	return sizeof(property_names) / sizeof(property_names[0]);
}

double sdk_counter_property(const rocprofiler_agent_v0_t *agent, uint32_t property)
{
	switch (property) {
#define PROPERTY_VALUE(name)                                                                       \
	case PROPERTY_##name:                                                                      \
		return (double)agent->name;
		PROPERTIES(PROPERTY_VALUE)
	default:
		return 0;
	}
}
