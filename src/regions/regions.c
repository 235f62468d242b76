/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See regions.h.
 */
#include "regions/regions.h"

region_id region_named(enum region_category category, const char *name)
{
	(void)category;
	(void)name;
	return 0;
}

region_id region_named_in(const char *category, const char *name)
{
	(void)category;
	(void)name;
	return 0;
}

region_id region_function(enum region_category category, uint64_t address)
{
	(void)category;
	(void)address;
	return 0;
}

void region_begin(region_id region)
{
	(void)region;
}

bool region_end(region_id region)
{
	(void)region;
	return true;
}

int region_begin_name(const char *category, const char *name)
{
	(void)category;
	(void)name;
	return 0;
}

int region_end_name(const char *category, const char *name)
{
	(void)category;
	(void)name;
	return 0;
}

void region_values(const struct region_value *values, size_t count)
{
	(void)values;
	(void)count;
}

void region_mark(region_id region)
{
	(void)region;
}

void region_counter(region_id counter, uint64_t real_bits)
{
	(void)counter;
	(void)real_bits;
}

void region_progress(region_id point, enum spool_progress kind)
{
	(void)point;
	(void)kind;
}

void region_whole(region_id region, uint64_t begin_ticks, uint64_t end_ticks)
{
	(void)region;
	(void)begin_ticks;
	(void)end_ticks;
}

bool region_recording(enum region_category category)
{
	(void)category;
	return false;
}

void region_enter_own(void)
{
}

void region_leave_own(void)
{
}

bool region_is_own(void)
{
	return false;
}

void regions_close(enum regions_closed why)
{
	(void)why;
}

void regions_open(enum regions_closed why)
{
	(void)why;
}

uint32_t regions_closed_bits(void)
{
	return 0;
}

void regions_thread_stop(void)
{
}

void regions_thread_start(void)
{
}

bool regions_thread_selected(void)
{
	return true;
}

int regions_start(struct runtime *runtime)
{
	(void)runtime;
	return 0;
}

void regions_thread_end(void)
{
}

void regions_forked(void)
{
}
