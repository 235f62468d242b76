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

#include "libkymo-dl/environment.h"
#include "libkymo-dl/kokkos.h"
#include "libkymo-dl/runtime.h"

#define EXPORTED __attribute__((visibility("default")))

enum { KOKKOS_NAME_MAX = 4096, KOKKOS_DEPTH_MAX = 128, KOKKOS_SECTIONS_MAX = 512 };

/* Set by kokkosp_init_library. NULL: nothing is recorded. */
static const struct kymo_runtime_api *kokkos_api;
static struct {
	bool deep_copy;
	size_t name_length; /* 0: any */
	const char *prefix;
} kokkos_options;

/* ---- names ---- */

/* 0: nothing is recorded. */
static region_id kokkos_region(const char *label)
{
	char name[KOKKOS_NAME_MAX];
	size_t prefix, length;

	if (!kokkos_api || !label)
		return 0;
	length = strlen(label);
	if (kokkos_options.name_length && length > kokkos_options.name_length)
		return 0;
	prefix = strlen(kokkos_options.prefix);
	if (!prefix)
		return kokkos_api->region_named(REGION_KOKKOS, label);
	if (prefix >= sizeof(name))
		return 0;
	if (length >= sizeof(name) - prefix)
		length = sizeof(name) - prefix - 1;
	memcpy(name, kokkos_options.prefix, prefix);
	memcpy(name + prefix, label, length);
	name[prefix + length] = 0;
	return kokkos_api->region_named(REGION_KOKKOS, name);
}

static struct region_value kokkos_text(const char *name, const char *text)
{
	return (struct region_value){
		.name = name, .type = SPOOL_VALUE_TEXT, .text = text ? text : ""};
}

static struct region_value kokkos_number(const char *name, uint64_t number)
{
	return (struct region_value){.name = name, .type = SPOOL_VALUE_UNSIGNED, .number = number};
}

static struct region_value kokkos_address(const char *name, const void *address)
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
	if (!environment_on(SETTING_USE_KOKKOSP))
		return;
	kokkos_options.deep_copy = environment_on(SETTING_KOKKOSP_DEEP_COPY);
	kokkos_options.name_length = environment_natural(SETTING_KOKKOSP_NAME_LENGTH_MAX);
	kokkos_options.prefix = environment_text(SETTING_KOKKOSP_PREFIX);
	kokkos_api = dl_runtime_load();
}

/* What begins later, in destructors, finds no tool. */
EXPORTED void kokkosp_finalize_library(void)
{
	kokkos_api = NULL;
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

static void kokkos_begin(const char *label, const char *construct, uint32_t device, uint64_t *ret)
{
	struct region_value values[] = {kokkos_text("construct", construct),
					kokkos_number("device", device)};
	region_id region = kokkos_region(label);

	if (ret)
		*ret = region;
	if (!region)
		return;
	kokkos_api->region_begin(region);
	kokkos_api->region_values(values, 2);
}

static void kokkos_end(uint64_t id)
{
	if (kokkos_api && id && id <= UINT32_MAX)
		kokkos_api->region_end((region_id)id);
}

EXPORTED void kokkosp_begin_parallel_for(const char *name, uint32_t device, uint64_t *id)
{
	kokkos_begin(name, "parallel_for", device, id);
}

EXPORTED void kokkosp_end_parallel_for(uint64_t id)
{
	kokkos_end(id);
}

EXPORTED void kokkosp_begin_parallel_reduce(const char *name, uint32_t device, uint64_t *id)
{
	kokkos_begin(name, "parallel_reduce", device, id);
}

EXPORTED void kokkosp_end_parallel_reduce(uint64_t id)
{
	kokkos_end(id);
}

EXPORTED void kokkosp_begin_parallel_scan(const char *name, uint32_t device, uint64_t *id)
{
	kokkos_begin(name, "parallel_scan", device, id);
}

EXPORTED void kokkosp_end_parallel_scan(uint64_t id)
{
	kokkos_end(id);
}

EXPORTED void kokkosp_begin_fence(const char *name, uint32_t device, uint64_t *id)
{
	kokkos_begin(name, "fence", device, id);
}

EXPORTED void kokkosp_end_fence(uint64_t id)
{
	kokkos_end(id);
}

/* ---- regions: a pop has no name ---- */

static _Thread_local struct {
	uint32_t depth;
	region_id region[KOKKOS_DEPTH_MAX];
} kokkos_pushed;

EXPORTED void kokkosp_push_profile_region(const char *name)
{
	uint32_t depth = kokkos_pushed.depth++;

	if (depth >= KOKKOS_DEPTH_MAX)
		return;
	kokkos_pushed.region[depth] = kokkos_region(name);
	if (kokkos_pushed.region[depth])
		kokkos_api->region_begin(kokkos_pushed.region[depth]);
}

EXPORTED void kokkosp_pop_profile_region(void)
{
	if (kokkos_pushed.depth && --kokkos_pushed.depth < KOKKOS_DEPTH_MAX)
		kokkos_end(kokkos_pushed.region[kokkos_pushed.depth]);
}

/* ---- sections: may overlap each other and regions, so they are begun and ended by name ---- */

static struct kokkos_section {
	_Atomic bool used;
	char name[120];
} kokkos_sections[KOKKOS_SECTIONS_MAX];

/* Ids begin with 1. */
static struct kokkos_section *kokkos_section(uint32_t id)
{
	if (!id || id > KOKKOS_SECTIONS_MAX || !kokkos_sections[id - 1].used)
		return NULL;
	return &kokkos_sections[id - 1];
}

EXPORTED void kokkosp_create_profile_section(const char *name, uint32_t *ret)
{
	size_t prefix = kokkos_api ? strlen(kokkos_options.prefix) : 0;
	size_t length = name ? strlen(name) : 0;

	if (!ret)
		return;
	*ret = 0;
	if (!kokkos_region(name) || prefix >= sizeof(kokkos_sections[0].name) / 2)
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
	struct kokkos_section *section = kokkos_section(id);

	if (kokkos_api && section)
		kokkos_api->region_begin_name("kokkos", section->name);
}

EXPORTED void kokkosp_stop_profile_section(uint32_t id)
{
	struct kokkos_section *section = kokkos_section(id);

	if (kokkos_api && section)
		kokkos_api->region_end_name("kokkos", section->name);
}

EXPORTED void kokkosp_destroy_profile_section(uint32_t id)
{
	struct kokkos_section *section = kokkos_section(id);

	if (section)
		section->used = false;
}

/* ---- data ---- */

/* Names of spaces fill their 64 bytes, terminated or not (make_space_handle in Kokkos_Profiling.cpp
 * leaves the last one alone). */
struct kokkos_space_text {
	char text[sizeof(struct kokkos_space) + 1];
};

static struct kokkos_space_text kokkos_space_text(const struct kokkos_space *space)
{
	struct kokkos_space_text ret;
	size_t length = strnlen(space->name, sizeof(space->name) - 1);

	memcpy(ret.text, space->name, length);
	ret.text[length] = 0;
	return ret;
}

static void kokkos_mark(const char *name, const struct region_value *values, size_t count)
{
	region_id region = kokkos_api ? kokkos_api->region_named(REGION_KOKKOS, name) : 0;

	if (!region)
		return;
	kokkos_api->region_mark(region);
	if (count)
		kokkos_api->region_values(values, count);
}

static void kokkos_data(const char *name, const struct kokkos_space *space, const char *label,
			const void *pointer, uint64_t bytes)
{
	struct kokkos_space_text text = kokkos_space_text(space);
	struct region_value values[] = {
		kokkos_text("label", label), kokkos_text("space", text.text),
		kokkos_address("address", pointer), kokkos_number("bytes", bytes)};

	kokkos_mark(name, values, 4);
}

EXPORTED void kokkosp_allocate_data(struct kokkos_space space, const char *label,
				    const void *pointer, uint64_t bytes)
{
	kokkos_data("kokkos_allocate", &space, label, pointer, bytes);
}

EXPORTED void kokkosp_deallocate_data(struct kokkos_space space, const char *label,
				      const void *pointer, uint64_t bytes)
{
	kokkos_data("kokkos_deallocate", &space, label, pointer, bytes);
}

EXPORTED void kokkosp_begin_deep_copy(struct kokkos_space to_space, const char *to_label,
				      const void *to, struct kokkos_space from_space,
				      const char *from_label, const void *from, uint64_t bytes)
{
	struct kokkos_space_text to_text = kokkos_space_text(&to_space);
	struct kokkos_space_text from_text = kokkos_space_text(&from_space);
	struct region_value values[] = {
		kokkos_number("bytes", bytes),         kokkos_text("to_label", to_label),
		kokkos_text("to_space", to_text.text), kokkos_address("to", to),
		kokkos_text("from_label", from_label), kokkos_text("from_space", from_text.text),
		kokkos_address("from", from)};
	uint32_t depth = kokkos_pushed.depth++;
	region_id region;

	if (depth >= KOKKOS_DEPTH_MAX)
		return;
	region = kokkos_api && kokkos_options.deep_copy
			 ? kokkos_api->region_named(REGION_KOKKOS, "kokkos_deep_copy")
			 : 0;
	kokkos_pushed.region[depth] = region;
	if (!region)
		return;
	kokkos_api->region_begin(region);
	kokkos_api->region_values(values, sizeof(values) / sizeof(values[0]));
}

/* Copies nest with regions, so they share their stack. */
EXPORTED void kokkosp_end_deep_copy(void)
{
	kokkosp_pop_profile_region();
}

static void kokkos_view(const char *name, const char *label, const void *pointer, bool is_device)
{
	struct region_value values[] = {kokkos_text("label", label),
					kokkos_address("address", pointer),
					kokkos_text("side", is_device ? "device" : "host")};

	kokkos_mark(name, values, 3);
}

EXPORTED void kokkosp_dual_view_sync(const char *label, const void *pointer, bool is_device)
{
	kokkos_view("kokkos_dual_view_sync", label, pointer, is_device);
}

EXPORTED void kokkosp_dual_view_modify(const char *label, const void *pointer, bool is_device)
{
	kokkos_view("kokkos_dual_view_modify", label, pointer, is_device);
}

EXPORTED void kokkosp_profile_event(const char *name)
{
	region_id region = kokkos_region(name);

	if (region)
		kokkos_api->region_mark(region);
}

EXPORTED void kokkosp_declare_metadata(const char *key, const char *value)
{
	struct region_value values[] = {kokkos_text("key", key), kokkos_text("value", value)};

	kokkos_mark("kokkos_metadata", values, 2);
}
