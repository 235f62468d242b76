/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See ompt_thread.h.
 */
#include "libkymo-dl/ompt_thread.h"

#include <stdatomic.h>

#include "libkymo-dl/runtime.h"

/* A category that is off. Ids are small numbers. */
#define NAME_OFF UINT32_MAX

/* Deeper regions are recorded, but ended only when the runtime says so. */
enum { OPEN_MAX = 24 };

struct open_region {
	uint64_t what;
	region_id region;
	uint32_t name;
};

static _Thread_local struct {
	uint32_t depth; /* may be more than OPEN_MAX */
	struct open_region region[OPEN_MAX];
} open_regions;

/* The id of a name, made when it is needed: this library may be called before libkymo has started,
 * and then has no ids yet. */
static region_id ompt_region(enum ompt_name name)
{
	static const char *const texts[OMPT_NAME_COUNT] = {
#define OMPT_NAME(id, text) text,
		OMPT_NAMES(OMPT_NAME)
#undef OMPT_NAME
	};
	static _Atomic region_id ids[OMPT_NAME_COUNT];
	const struct kymo_runtime_api *api;
	region_id region;

	if (name >= OMPT_NAME_COUNT)
		return 0;
	region = atomic_load_explicit(&ids[name], memory_order_relaxed);
	if (region)
		return region == NAME_OFF ? 0 : region;
	api = dl_runtime();
	if (!api || !api->active())
		return 0;
	region = api->region_named(REGION_OMPT, texts[name]);
	atomic_store_explicit(&ids[name], region ? region : NAME_OFF, memory_order_relaxed);
	return region;
}

void ompt_begin(enum ompt_name name, uint64_t what, const struct region_value *values,
		uint32_t count)
{
	region_id region = ompt_region(name);

	if (!region)
		return;
	dl_runtime()->region_begin(region);
	if (count)
		dl_runtime()->region_values(values, count);
	if (open_regions.depth < OPEN_MAX)
		open_regions.region[open_regions.depth] =
			(struct open_region){what, region, (uint32_t)name};
	open_regions.depth++;
}

/* The place of the innermost such region, or -1. */
static int32_t ompt_find(enum ompt_name name, uint64_t what)
{
	uint32_t known = open_regions.depth < OPEN_MAX ? open_regions.depth : OPEN_MAX;

	while (known--) {
		const struct open_region *open = &open_regions.region[known];
		if (open->name == (uint32_t)name && open->what == what)
			return (int32_t)known;
	}
	return -1;
}

bool ompt_is_open(enum ompt_name name, uint64_t what)
{
	return ompt_find(name, what) >= 0;
}

static void ompt_end_down_to(uint32_t depth)
{
	uint32_t known = open_regions.depth < OPEN_MAX ? open_regions.depth : OPEN_MAX;

	while (known > depth)
		dl_runtime()->region_end(open_regions.region[--known].region);
	open_regions.depth = depth;
}

void ompt_end(enum ompt_name name, uint64_t what)
{
	int32_t place;

	if (open_regions.depth > OPEN_MAX) {
		open_regions.depth--;
		dl_runtime()->region_end(ompt_region(name));
		return;
	}
	place = ompt_find(name, what);
	if (place >= 0)
		ompt_end_down_to((uint32_t)place);
}

void ompt_end_all(bool but_thread)
{
	bool is_worker = open_regions.depth && open_regions.region[0].name == OMPT_NAME_THREAD;

	ompt_end_down_to(but_thread && is_worker ? 1 : 0);
}

void ompt_mark(enum ompt_name name, const struct region_value *values, uint32_t count)
{
	region_id region = ompt_region(name);

	if (!region)
		return;
	dl_runtime()->region_mark(region);
	if (count)
		dl_runtime()->region_values(values, count);
}

static _Thread_local uint64_t wait_begin;

void ompt_wait_begin(void)
{
	wait_begin = dl_runtime()->ticks();
}

void ompt_wait_end(enum ompt_name name, const struct region_value *values, uint32_t count)
{
	region_id region = ompt_region(name);

	if (!region || !wait_begin)
		return;
	dl_runtime()->region_whole(region, wait_begin, dl_runtime()->ticks());
	dl_runtime()->region_values(values, count);
	wait_begin = 0;
}
