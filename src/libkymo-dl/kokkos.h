/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The functions that Kokkos calls, and what it passes by value or lets tools change
 * (Kokkos_Profiling_C_Interface.h).
 */
#ifndef KYMO_LIBKYMO_DL_KOKKOS_H
#define KYMO_LIBKYMO_DL_KOKKOS_H

#include <stdbool.h>
#include <stdint.h>

struct kokkos_space {
	char name[64];
};

struct kokkos_tool_settings {
	bool requires_global_fencing;
	bool padding[255];
};

void kokkosp_init_library(int order, uint64_t version, uint32_t device_count, void *devices);
void kokkosp_finalize_library(void);
void kokkosp_request_tool_settings(uint32_t version, struct kokkos_tool_settings *settings);

void kokkosp_begin_parallel_for(const char *name, uint32_t device, uint64_t *id);
void kokkosp_end_parallel_for(uint64_t id);
void kokkosp_begin_parallel_reduce(const char *name, uint32_t device, uint64_t *id);
void kokkosp_end_parallel_reduce(uint64_t id);
void kokkosp_begin_parallel_scan(const char *name, uint32_t device, uint64_t *id);
void kokkosp_end_parallel_scan(uint64_t id);
void kokkosp_begin_fence(const char *name, uint32_t device, uint64_t *id);
void kokkosp_end_fence(uint64_t id);

void kokkosp_push_profile_region(const char *name);
void kokkosp_pop_profile_region(void);
void kokkosp_create_profile_section(const char *name, uint32_t *ret);
void kokkosp_start_profile_section(uint32_t id);
void kokkosp_stop_profile_section(uint32_t id);
void kokkosp_destroy_profile_section(uint32_t id);

void kokkosp_allocate_data(struct kokkos_space space, const char *label, const void *pointer,
			   uint64_t bytes);
void kokkosp_deallocate_data(struct kokkos_space space, const char *label, const void *pointer,
			     uint64_t bytes);
void kokkosp_begin_deep_copy(struct kokkos_space to_space, const char *to_label, const void *to,
			     struct kokkos_space from_space, const char *from_label,
			     const void *from, uint64_t bytes);
void kokkosp_end_deep_copy(void);
void kokkosp_dual_view_sync(const char *label, const void *pointer, bool is_device);
void kokkosp_dual_view_modify(const char *label, const void *pointer, bool is_device);
void kokkosp_profile_event(const char *name);
void kokkosp_declare_metadata(const char *key, const char *value);

#endif
