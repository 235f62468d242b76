/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What is known of a process's allocations while it is scanned, and the sums of a window of time.
 */
#ifndef KYMO_ANALYSIS_ALLOCATIONS_WINDOW_H
#define KYMO_ANALYSIS_ALLOCATIONS_WINDOW_H

#include "analysis/allocations/allocations.h"
#include "analysis/clocks.h"
#include "analysis/id_map.h"

/* Sums of a site as one record has them. */
struct allocation_site_sums {
	uint64_t time; /* ticks at first, then ns; 0: unknown */
	uint32_t site; /* index */
	uint64_t allocations, frees, allocated_bytes, freed_bytes, peak_bytes;
	uint64_t temporary_allocations;
};

/* Sums of the process as one record has them. */
struct allocation_totals {
	struct model_allocation_point point; /* its time in ticks at first */
	uint64_t peak_bytes;
	bool is_complete;
	uint64_t size_classes[MODEL_ALLOCATION_SIZE_CLASS_COUNT];
};

struct process_allocation_scan_state {
	struct id_map site_index_by_id; /* id of a call site -> index in model_allocations.sites */
	/* With a window: all records of sites. */
	struct allocation_site_sums *site_sums;
	size_t site_sums_count, site_sums_capacity;
	struct allocation_totals *totals;
	size_t totals_count, totals_capacity;
	uint64_t peak_number, peak_bytes, peak_ticks;
	struct model_process_allocations model;
};

/* Does the session show a part of the time only? */
bool allocations_have_window(const struct session *session);
void allocation_site_set_sums(struct model_allocation_site *site,
			      const struct allocation_site_sums *sums);
void allocation_scan_convert_times(struct process_allocation_scan_state *scan,
				   struct clock_map *clock);
/* When all processes were scanned: sums of sites with a window, and the model of the process. */
void allocation_scan_finish_process(struct session *session,
				    struct process_allocation_scan_state *scan);
/* Sites that did nothing in the window. */
void allocations_drop_sites_without_sums(struct model_allocations *allocations);
void allocation_scan_deinit(struct process_allocation_scan_state *scan);

#endif
