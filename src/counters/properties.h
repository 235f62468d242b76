/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Properties of an agent that expressions may name. The names are those of the members of
 * rocprofiler_agent_v0_t; upstream knows them up to max_engine_clk_ccompute.
 */
#ifndef KYMO_COUNTERS_PROPERTIES_H
#define KYMO_COUNTERS_PROPERTIES_H

#include <stdint.h>

#define COUNTER_PROPERTY_LIST(ENTRY)                                                               \
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
	ENTRY(max_engine_clk_fcompute)                                                             \
	ENTRY(cu_count)                                                                            \
	ENTRY(num_xcc)                                                                             \
	ENTRY(num_shader_banks)                                                                    \
	ENTRY(max_waves_per_cu)                                                                    \
	ENTRY(local_mem_size)

#define COUNTER_PROPERTY_ENUMERATOR(name) COUNTER_PROPERTY_##name,
enum counter_property_id {
	COUNTER_PROPERTY_LIST(COUNTER_PROPERTY_ENUMERATOR) COUNTER_PROPERTY_COUNT
};

struct counter_catalogue;

const char *counter_property_get_name(uint32_t property);
/* All of them, each as a counter of one value. */
void catalogue_add_properties(struct counter_catalogue *catalogue);

#endif
