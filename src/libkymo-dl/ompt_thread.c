/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See ompt_thread.h.
 */
#include "libkymo-dl/ompt_thread.h"

#include <stdatomic.h>

#include "libkymo-dl/runtime.h"

/* A category that is off. Ids are small numbers. */
#define REGION_ID_OF_OFF_CATEGORY UINT32_MAX

/* Deeper regions are recorded, but ended only when the runtime says so. */
enum { OPEN_REGIONS_MAX = 24 };

struct ompt_region_stack_entry {
	uint64_t what;
	region_id region;
	uint32_t name;
};

static _Thread_local struct {
	uint32_t depth; /* may be more than OPEN_REGIONS_MAX */
	struct ompt_region_stack_entry region[OPEN_REGIONS_MAX];
} thread_ompt_region_stack;

/* The id of a name, made when it is needed: this library may be called before libkymo has started,
 * and then has no ids yet. */
static region_id find_or_add_ompt_region(enum ompt_region_name name)
{
	static const char *const texts[OMPT_NAME_COUNT] = {
#define OMPT_REGION_NAME_TEXT(id, text) text,
		OMPT_REGION_NAME_LIST(OMPT_REGION_NAME_TEXT)
#undef OMPT_REGION_NAME_TEXT
	};
	static _Atomic region_id ids[OMPT_NAME_COUNT];
	const struct runtime_api *api;
	region_id region;

	if (name >= OMPT_NAME_COUNT)
		return 0;
	region = atomic_load_explicit(&ids[name], memory_order_relaxed);
	if (region)
		return region == REGION_ID_OF_OFF_CATEGORY ? 0 : region;
	api = dl_runtime_get_api();
	if (!api || !api->active())
		return 0;
	region = api->region_find_or_add_name(REGION_OMPT, texts[name]);
	atomic_store_explicit(&ids[name], region ? region : REGION_ID_OF_OFF_CATEGORY,
			      memory_order_relaxed);
	return region;
}

void ompt_begin_region(enum ompt_region_name name, uint64_t what, const struct region_value *values,
		       uint32_t count)
{
	region_id region = find_or_add_ompt_region(name);

	if (!region)
		return;
	dl_runtime_get_api()->region_begin(region);
	if (count)
		dl_runtime_get_api()->region_values(values, count);
	if (thread_ompt_region_stack.depth < OPEN_REGIONS_MAX)
		thread_ompt_region_stack.region[thread_ompt_region_stack.depth] =
			(struct ompt_region_stack_entry){what, region, (uint32_t)name};
	thread_ompt_region_stack.depth++;
}

/* The place of the innermost such region, or -1. */
static int32_t find_open_region_index(enum ompt_region_name name, uint64_t what)
{
	uint32_t known = thread_ompt_region_stack.depth < OPEN_REGIONS_MAX
				 ? thread_ompt_region_stack.depth
				 : OPEN_REGIONS_MAX;

	while (known--) {
		const struct ompt_region_stack_entry *open =
			&thread_ompt_region_stack.region[known];
		if (open->name == (uint32_t)name && open->what == what)
			return (int32_t)known;
	}
	return -1;
}

bool ompt_region_is_open(enum ompt_region_name name, uint64_t what)
{
	return find_open_region_index(name, what) >= 0;
}

static void end_regions_above_depth(uint32_t depth)
{
	uint32_t known = thread_ompt_region_stack.depth < OPEN_REGIONS_MAX
				 ? thread_ompt_region_stack.depth
				 : OPEN_REGIONS_MAX;

	while (known > depth)
		dl_runtime_get_api()->region_end(thread_ompt_region_stack.region[--known].region);
	thread_ompt_region_stack.depth = depth;
}

void ompt_end_region(enum ompt_region_name name, uint64_t what)
{
	int32_t place;

	if (thread_ompt_region_stack.depth > OPEN_REGIONS_MAX) {
		thread_ompt_region_stack.depth--;
		dl_runtime_get_api()->region_end(find_or_add_ompt_region(name));
		return;
	}
	place = find_open_region_index(name, what);
	if (place >= 0)
		end_regions_above_depth((uint32_t)place);
}

void ompt_end_all_regions(bool but_thread)
{
	bool is_worker = thread_ompt_region_stack.depth &&
			 thread_ompt_region_stack.region[0].name == OMPT_NAME_THREAD;

	end_regions_above_depth(but_thread && is_worker ? 1 : 0);
}

void ompt_record_mark(enum ompt_region_name name, const struct region_value *values, uint32_t count)
{
	region_id region = find_or_add_ompt_region(name);

	if (!region)
		return;
	dl_runtime_get_api()->region_write_mark(region);
	if (count)
		dl_runtime_get_api()->region_values(values, count);
}

static _Thread_local uint64_t lock_wait_begin_ticks;

void ompt_remember_lock_wait_begin(void)
{
	lock_wait_begin_ticks = dl_runtime_get_api()->ticks();
}

void ompt_record_lock_wait(enum ompt_region_name name, const struct region_value *values,
			   uint32_t count)
{
	region_id region = find_or_add_ompt_region(name);

	if (!region || !lock_wait_begin_ticks)
		return;
	dl_runtime_get_api()->region_write_whole_call(region, lock_wait_begin_ticks,
						      dl_runtime_get_api()->ticks());
	dl_runtime_get_api()->region_values(values, count);
	lock_wait_begin_ticks = 0;
}
