/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See regions.h: what is recorded at all.
 */
#include "regions/gate.h"

bool region_recording(enum region_category category)
{
	const struct region_thread *thread = kymo_region_thread;
	uint32_t closed = region_closed_bits();

	if (closed || kymo_regions.categories_off & 1u << category || kymo_region_own ||
	    !kymo_regions.runtime || !*kymo_runtime.same_process)
		return false;
	return !thread || (!thread->stopped && (!kymo_regions.select || thread->selected));
}

void region_enter_own(void)
{
	kymo_region_own++;
	if (kymo_region_thread)
		kymo_region_thread->busy += REGION_BUSY_OWN;
}

void region_leave_own(void)
{
	kymo_region_own--;
	if (kymo_region_thread)
		kymo_region_thread->busy -= REGION_BUSY_OWN;
}

bool region_is_own(void)
{
	return kymo_region_own != 0;
}

void regions_close(enum regions_closed why)
{
	control_close((enum control_closed)why);
}

void regions_open(enum regions_closed why)
{
	control_open((enum control_closed)why);
}

uint32_t regions_closed_bits(void)
{
	return region_closed_bits();
}

static void set_stopped(bool stopped)
{
	struct region_thread *thread = region_enter();

	if (!thread)
		return;
	thread->stopped = stopped;
	if (stopped)
		control_exclude_thread(thread->thread, THREAD_EXCLUDED_STOPPED);
	else
		control_include_thread(thread->thread, THREAD_EXCLUDED_STOPPED);
	region_leave(thread);
}

void regions_thread_stop(void)
{
	set_stopped(true);
}

void regions_thread_start(void)
{
	set_stopped(false);
}

bool regions_thread_selected(void)
{
	const struct region_thread *thread = kymo_region_thread;

	return !kymo_regions.select || (thread && thread->selected);
}
