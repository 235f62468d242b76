/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Kokkos Tools: the functions that Kokkos looks up in the library that KOKKOS_TOOLS_LIBS names
 * (core/src/impl/Kokkos_Profiling.cpp and Kokkos_Profiling_C_Interface.h of Kokkos 3.0 to 4.7).
 * They are looked up once, in Kokkos::initialize(), and stay what they are: where kymo is off they
 * do nothing.
 *
 * Names are the program's labels with KOKKOSP_PREFIX in front; events with labels longer than
 * KOKKOSP_NAME_LENGTH_MAX are left out.
 */
#include <limits.h>
#include <stdatomic.h>
#include <string.h>

#include "common/array.h"
#include "libkymo-dl/environment.h"
#include "libkymo-dl/kokkos.h"
#include "libkymo-dl/runtime.h"

#define EXPORTED __attribute__((visibility("default")))

enum { KOKKOS_NAME_SIZE_MAX = 4096, KOKKOS_DEPTH_MAX = 128, KOKKOS_SECTIONS_MAX = 512 };

/* Set by kokkosp_init_library. NULL: nothing is recorded. */
static const struct runtime_api *runtime_api_for_kokkos;
static struct {
	bool records_deep_copies;
	size_t name_length_max; /* 0: any */
	const char *prefix;
} kokkos_options;

/* ---- names ---- */

/* 0: nothing is recorded. */
static region_id find_or_add_kokkos_region_by_label(const char *label)
{
	char name[KOKKOS_NAME_SIZE_MAX];
	size_t prefix, length;

	if (!runtime_api_for_kokkos || !label)
		return 0;
	length = strlen(label);
	if (kokkos_options.name_length_max && length > kokkos_options.name_length_max)
		return 0;
	prefix = strlen(kokkos_options.prefix);
	if (!prefix)
		return runtime_api_for_kokkos->region_find_or_add_name(REGION_KOKKOS, label);
	if (prefix >= sizeof(name))
		return 0;
	if (length >= sizeof(name) - prefix)
		length = sizeof(name) - prefix - 1;
	memcpy(name, kokkos_options.prefix, prefix);
	memcpy(name + prefix, label, length);
	name[prefix + length] = 0;
	return runtime_api_for_kokkos->region_find_or_add_name(REGION_KOKKOS, name);
}

static struct region_value make_kokkos_text_value(const char *name, const char *text)
{
	return (struct region_value){
		.name = name, .type = SPOOL_VALUE_TEXT, .text = text ? text : ""};
}

static struct region_value make_kokkos_number_value(const char *name, uint64_t number)
{
	return (struct region_value){.name = name, .type = SPOOL_VALUE_UNSIGNED, .number = number};
}

static struct region_value make_kokkos_address_value(const char *name, const void *address)
{
	return (struct region_value){
		.name = name, .type = SPOOL_VALUE_ADDRESS, .number = (uint64_t)(uintptr_t)address};
}

/* ---- begin and end of the library ---- */

EXPORTED void kokkosp_init_library(int order, uint64_t version, uint32_t device_count,
				   void *devices)
{
	(void)order;
	(void)version;
	(void)device_count;
	(void)devices;
	if (!environment_setting_is_on(SETTING_USE_KOKKOSP))
		return;
	kokkos_options.records_deep_copies = environment_setting_is_on(SETTING_KOKKOSP_DEEP_COPY);
	kokkos_options.name_length_max =
		environment_get_setting_natural(SETTING_KOKKOSP_NAME_LENGTH_MAX);
	kokkos_options.prefix = environment_get_setting_text(SETTING_KOKKOSP_PREFIX);
	runtime_api_for_kokkos = dl_runtime_find_or_load();
}

/* What begins later, in destructors, finds no tool. */
EXPORTED void kokkosp_finalize_library(void)
{
	runtime_api_for_kokkos = NULL;
}

/* With a tool Kokkos waits for the device around every kernel, unless the tool says that it does
 * not need that. A profiler must not change how the program overlaps its work. */
EXPORTED void kokkosp_request_tool_settings(uint32_t version, struct kokkos_tool_settings *settings)
{
	(void)version;
	if (settings)
		settings->requires_global_fencing = false;
}

/* ---- kernels and fences: the id that Kokkos hands back at the end is the region ---- */

static void kokkos_begin_region(const char *label, const char *construct, uint32_t device,
				uint64_t *ret)
{
	struct region_value values[] = {make_kokkos_text_value("construct", construct),
					make_kokkos_number_value("device", device)};
	region_id region = find_or_add_kokkos_region_by_label(label);

	if (ret)
		*ret = region;
	if (!region)
		return;
	runtime_api_for_kokkos->region_begin(region);
	runtime_api_for_kokkos->region_values(values, 2);
}

static void kokkos_end_region(uint64_t id)
{
	if (runtime_api_for_kokkos && id && id <= UINT32_MAX)
		runtime_api_for_kokkos->region_end((region_id)id);
}

EXPORTED void kokkosp_begin_parallel_for(const char *name, uint32_t device, uint64_t *id)
{
	kokkos_begin_region(name, "parallel_for", device, id);
}

EXPORTED void kokkosp_end_parallel_for(uint64_t id)
{
	kokkos_end_region(id);
}

EXPORTED void kokkosp_begin_parallel_reduce(const char *name, uint32_t device, uint64_t *id)
{
	kokkos_begin_region(name, "parallel_reduce", device, id);
}

EXPORTED void kokkosp_end_parallel_reduce(uint64_t id)
{
	kokkos_end_region(id);
}

EXPORTED void kokkosp_begin_parallel_scan(const char *name, uint32_t device, uint64_t *id)
{
	kokkos_begin_region(name, "parallel_scan", device, id);
}

EXPORTED void kokkosp_end_parallel_scan(uint64_t id)
{
	kokkos_end_region(id);
}

EXPORTED void kokkosp_begin_fence(const char *name, uint32_t device, uint64_t *id)
{
	kokkos_begin_region(name, "fence", device, id);
}

EXPORTED void kokkosp_end_fence(uint64_t id)
{
	kokkos_end_region(id);
}

/* ---- regions: a pop has no name ---- */

static _Thread_local struct {
	uint32_t depth;
	region_id region_ids[KOKKOS_DEPTH_MAX];
} kokkos_region_stack;

EXPORTED void kokkosp_push_profile_region(const char *name)
{
	uint32_t depth = kokkos_region_stack.depth++;

	if (depth >= KOKKOS_DEPTH_MAX)
		return;
	kokkos_region_stack.region_ids[depth] = find_or_add_kokkos_region_by_label(name);
	if (kokkos_region_stack.region_ids[depth])
		runtime_api_for_kokkos->region_begin(kokkos_region_stack.region_ids[depth]);
}

EXPORTED void kokkosp_pop_profile_region(void)
{
	if (kokkos_region_stack.depth && --kokkos_region_stack.depth < KOKKOS_DEPTH_MAX)
		kokkos_end_region(kokkos_region_stack.region_ids[kokkos_region_stack.depth]);
}

/* ---- sections: may overlap each other and regions, so they are begun and ended by name ---- */

static struct kokkos_section {
	_Atomic bool used;
	char name[120];
} kokkos_sections[KOKKOS_SECTIONS_MAX];

/* Ids begin with 1. */
static struct kokkos_section *find_kokkos_section(uint32_t id)
{
	if (!id || id > KOKKOS_SECTIONS_MAX || !kokkos_sections[id - 1].used)
		return NULL;
	return &kokkos_sections[id - 1];
}

EXPORTED void kokkosp_create_profile_section(const char *name, uint32_t *ret)
{
	size_t prefix = runtime_api_for_kokkos ? strlen(kokkos_options.prefix) : 0;
	size_t length = name ? strlen(name) : 0;

	if (!ret)
		return;
	*ret = 0;
	if (!find_or_add_kokkos_region_by_label(name) ||
	    prefix >= sizeof(kokkos_sections[0].name) / 2)
		return;
	if (length >= sizeof(kokkos_sections[0].name) - prefix)
		length = sizeof(kokkos_sections[0].name) - prefix - 1;
	for (uint32_t i = 0; i < KOKKOS_SECTIONS_MAX; i++) {
		if (atomic_exchange(&kokkos_sections[i].used, true))
			continue;
		memcpy(kokkos_sections[i].name, kokkos_options.prefix, prefix);
		memcpy(kokkos_sections[i].name + prefix, name, length);
		kokkos_sections[i].name[prefix + length] = 0;
		*ret = i + 1;
		return;
	}
}

EXPORTED void kokkosp_start_profile_section(uint32_t id)
{
	struct kokkos_section *section = find_kokkos_section(id);

	if (runtime_api_for_kokkos && section)
		runtime_api_for_kokkos->region_begin_by_name("kokkos", section->name);
}

EXPORTED void kokkosp_stop_profile_section(uint32_t id)
{
	struct kokkos_section *section = find_kokkos_section(id);

	if (runtime_api_for_kokkos && section)
		runtime_api_for_kokkos->region_end_by_name("kokkos", section->name);
}

EXPORTED void kokkosp_destroy_profile_section(uint32_t id)
{
	struct kokkos_section *section = find_kokkos_section(id);

	if (section)
		section->used = false;
}

/* ---- data ---- */

/* Names of spaces fill their 64 bytes, terminated or not (make_space_handle in Kokkos_Profiling.cpp
 * leaves the last one alone). */
struct kokkos_terminated_space_name {
	char text[sizeof(struct kokkos_space) + 1];
};

static struct kokkos_terminated_space_name
kokkos_copy_terminated_space_name(const struct kokkos_space *space)
{
	struct kokkos_terminated_space_name ret;
	size_t length = strnlen(space->name, sizeof(space->name) - 1);

	memcpy(ret.text, space->name, length);
	ret.text[length] = 0;
	return ret;
}

static void record_kokkos_mark(const char *name, const struct region_value *values, size_t count)
{
	region_id region =
		runtime_api_for_kokkos
			? runtime_api_for_kokkos->region_find_or_add_name(REGION_KOKKOS, name)
			: 0;

	if (!region)
		return;
	runtime_api_for_kokkos->region_write_mark(region);
	if (count)
		runtime_api_for_kokkos->region_values(values, count);
}

static void record_kokkos_data_event(const char *name, const struct kokkos_space *space,
				     const char *label, const void *pointer, uint64_t bytes)
{
	struct kokkos_terminated_space_name text = kokkos_copy_terminated_space_name(space);
	struct region_value values[] = {make_kokkos_text_value("label", label),
					make_kokkos_text_value("space", text.text),
					make_kokkos_address_value("address", pointer),
					make_kokkos_number_value("bytes", bytes)};

	record_kokkos_mark(name, values, 4);
}

EXPORTED void kokkosp_allocate_data(struct kokkos_space space, const char *label,
				    const void *pointer, uint64_t bytes)
{
	record_kokkos_data_event("kokkos_allocate", &space, label, pointer, bytes);
}

EXPORTED void kokkosp_deallocate_data(struct kokkos_space space, const char *label,
				      const void *pointer, uint64_t bytes)
{
	record_kokkos_data_event("kokkos_deallocate", &space, label, pointer, bytes);
}

EXPORTED void kokkosp_begin_deep_copy(struct kokkos_space to_space, const char *to_label,
				      const void *to, struct kokkos_space from_space,
				      const char *from_label, const void *from, uint64_t bytes)
{
	struct kokkos_terminated_space_name to_text = kokkos_copy_terminated_space_name(&to_space);
	struct kokkos_terminated_space_name from_text =
		kokkos_copy_terminated_space_name(&from_space);
	struct region_value values[] = {make_kokkos_number_value("bytes", bytes),
					make_kokkos_text_value("to_label", to_label),
					make_kokkos_text_value("to_space", to_text.text),
					make_kokkos_address_value("to", to),
					make_kokkos_text_value("from_label", from_label),
					make_kokkos_text_value("from_space", from_text.text),
					make_kokkos_address_value("from", from)};
	uint32_t depth = kokkos_region_stack.depth++;
	region_id region;

	if (depth >= KOKKOS_DEPTH_MAX)
		return;
	region = runtime_api_for_kokkos && kokkos_options.records_deep_copies
			 ? runtime_api_for_kokkos->region_find_or_add_name(REGION_KOKKOS,
									   "kokkos_deep_copy")
			 : 0;
	kokkos_region_stack.region_ids[depth] = region;
	if (!region)
		return;
	runtime_api_for_kokkos->region_begin(region);
	runtime_api_for_kokkos->region_values(values, ARRAY_SIZE(values));
}

/* Copies nest with regions, so they share their stack. */
EXPORTED void kokkosp_end_deep_copy(void)
{
	kokkosp_pop_profile_region();
}

static void record_kokkos_view_event(const char *name, const char *label, const void *pointer,
				     bool is_device)
{
	struct region_value values[] = {
		make_kokkos_text_value("label", label),
		make_kokkos_address_value("address", pointer),
		make_kokkos_text_value("side", is_device ? "device" : "host")};

	record_kokkos_mark(name, values, 3);
}

EXPORTED void kokkosp_dual_view_sync(const char *label, const void *pointer, bool is_device)
{
	record_kokkos_view_event("kokkos_dual_view_sync", label, pointer, is_device);
}

EXPORTED void kokkosp_dual_view_modify(const char *label, const void *pointer, bool is_device)
{
	record_kokkos_view_event("kokkos_dual_view_modify", label, pointer, is_device);
}

EXPORTED void kokkosp_profile_event(const char *name)
{
	region_id region = find_or_add_kokkos_region_by_label(name);

	if (region)
		runtime_api_for_kokkos->region_write_mark(region);
}

EXPORTED void kokkosp_declare_metadata(const char *key, const char *value)
{
	struct region_value values[] = {make_kokkos_text_value("key", key),
					make_kokkos_text_value("value", value)};

	record_kokkos_mark("kokkos_metadata", values, 2);
}
