/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Clocks of several hosts; see align.h. Bounds between pairs of hosts make a graph; from host
 * 0 on, each host is reached by the path whose bounds add up to the least.
 */
#include "analysis/nccl/align.h"

#include <errno.h>
#include <stdlib.h>

#include "analysis/arena.h"

#define ALIGN_WINDOW_LEAST_NS INT64_C(60000000000)
/* Wider bounds than this say less than CLOCK_REALTIME does where NTP or PTP runs. */
#define NARROW_BOUNDS_NS           1000000
#define CLOCK_DIFFERENCE_UNBOUNDED (INT64_MAX / 8)

/* clock of `high_host_index` minus clock of `low_host_index`, in one window. */
struct nccl_host_pair_clock_bounds {
	uint32_t low_host_index, high_host_index, window;
	int64_t clock_difference_low_ns, clock_difference_high_ns;
};

const char *nccl_get_clock_alignment_basis_name(enum nccl_clock_alignment_basis basis)
{
	static const char *const names[] = {"same_clock", "collectives", "realtime"};

	return names[basis];
}

int nccl_host_clock_alignment_init(struct nccl_host_clock_alignment *align, uint32_t host_count,
				   const int64_t *realtime_minus_boottime_ns,
				   uint64_t start_realtime_ns, uint64_t end_realtime_ns)
{
	uint64_t span =
		end_realtime_ns > start_realtime_ns ? end_realtime_ns - start_realtime_ns : 0;

	*align = (struct nccl_host_clock_alignment){.host_count = host_count,
						    .start_ns = start_realtime_ns};
	align->window_ns = span / NCCL_ALIGN_WINDOWS_MAX + 1;
	if (align->window_ns < ALIGN_WINDOW_LEAST_NS)
		align->window_ns = ALIGN_WINDOW_LEAST_NS;
	align->window_count = (uint32_t)(span / align->window_ns) + 1;
	align->realtime_minus_boottime_ns = calloc((size_t)host_count + 1, sizeof(int64_t));
	if (!align->realtime_minus_boottime_ns)
		return -ENOMEM;
	for (uint32_t i = 0; i < host_count; i++)
		align->realtime_minus_boottime_ns[i] = realtime_minus_boottime_ns[i];
	return 0;
}

void nccl_host_clock_alignment_deinit(struct nccl_host_clock_alignment *align)
{
	free(align->realtime_minus_boottime_ns);
	free(align->host_pair_bounds);
	free(align->offsets);
	id_map_deinit(&align->host_pair_bounds_index_by_key);
	*align = (struct nccl_host_clock_alignment){0};
}

static uint32_t find_window_index_at_time(const struct nccl_host_clock_alignment *align,
					  uint32_t host, uint64_t time_ns)
{
	uint64_t realtime = time_ns + (uint64_t)align->realtime_minus_boottime_ns[host];
	uint64_t window;

	if (realtime < align->start_ns)
		return 0;
	window = (realtime - align->start_ns) / align->window_ns;
	return window < align->window_count ? (uint32_t)window : align->window_count - 1;
}

static struct nccl_host_pair_clock_bounds *
find_or_add_host_pair_clock_bounds(struct nccl_host_clock_alignment *align, uint32_t low,
				   uint32_t high, uint32_t window)
{
	uint64_t key = ((uint64_t)low * align->host_count + high) * align->window_count + window;
	uint32_t index = id_map_get(&align->host_pair_bounds_index_by_key, key);

	if (index != ID_MAP_NONE)
		return &align->host_pair_bounds[index];
	index = (uint32_t)align->host_pair_bounds_count;
	if (array_reserve_one_more((void **)&align->host_pair_bounds,
				   &align->host_pair_bounds_capacity, align->host_pair_bounds_count,
				   sizeof(*align->host_pair_bounds)) < 0 ||
	    id_map_set(&align->host_pair_bounds_index_by_key, key, index) < 0)
		return NULL;
	align->host_pair_bounds_count++;
	align->host_pair_bounds[index] = (struct nccl_host_pair_clock_bounds){
		low, high, window, -CLOCK_DIFFERENCE_UNBOUNDED, CLOCK_DIFFERENCE_UNBOUNDED};
	return &align->host_pair_bounds[index];
}

int nccl_align_add_observations(struct nccl_host_clock_alignment *align,
				const struct nccl_host_collective_observation *first,
				const struct nccl_host_collective_observation *second)
{
	const struct nccl_host_collective_observation *low =
		first->host < second->host ? first : second;
	const struct nccl_host_collective_observation *high = low == first ? second : first;
	struct nccl_host_pair_clock_bounds *edge;

	if (low->host == high->host || low->first_leave_ns < low->last_enter_ns ||
	    high->first_leave_ns < high->last_enter_ns || low->last_enter_ns < 0 ||
	    high->last_enter_ns < 0)
		return 0;
	edge = find_or_add_host_pair_clock_bounds(
		align, low->host, high->host,
		find_window_index_at_time(align, low->host, (uint64_t)low->last_enter_ns));
	if (!edge)
		return -ENOMEM;
	/* entered on one before left on the other, whichever way round */
	if (high->first_leave_ns - low->last_enter_ns < edge->clock_difference_high_ns)
		edge->clock_difference_high_ns = high->first_leave_ns - low->last_enter_ns;
	if (high->last_enter_ns - low->first_leave_ns > edge->clock_difference_low_ns)
		edge->clock_difference_low_ns = high->last_enter_ns - low->first_leave_ns;
	align->constraint_count++;
	return 0;
}

/* ---- from bounds to offsets ---- */

struct host_clock_bounds {
	int64_t clock_difference_low_ns,
		clock_difference_high_ns; /* of the host's clock minus that of host 0 */
	bool is_known, is_settled;
};

/* Times of damaged records may be any numbers. */
static uint64_t compute_absolute_difference(int64_t a, int64_t b)
{
	return a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a;
}

static uint64_t compute_clock_bounds_width(const struct host_clock_bounds *reach)
{
	return reach->clock_difference_high_ns > reach->clock_difference_low_ns
		       ? compute_absolute_difference(reach->clock_difference_high_ns,
						     reach->clock_difference_low_ns)
		       : 0;
}

/* What host 0 has, carried over an edge. */
static void carry_clock_bounds_to_paired_host(struct host_clock_bounds *reaches,
					      const struct nccl_host_pair_clock_bounds *edge,
					      uint32_t from)
{
	bool forward = edge->low_host_index == from;
	struct host_clock_bounds
		*to = &reaches[forward ? edge->high_host_index : edge->low_host_index],
		longer;

	if (to->is_settled || edge->clock_difference_low_ns <= -CLOCK_DIFFERENCE_UNBOUNDED ||
	    edge->clock_difference_high_ns >= CLOCK_DIFFERENCE_UNBOUNDED ||
	    edge->clock_difference_low_ns >= CLOCK_DIFFERENCE_UNBOUNDED ||
	    edge->clock_difference_high_ns <= -CLOCK_DIFFERENCE_UNBOUNDED)
		return;
	longer.is_known = true;
	longer.is_settled = false;
	if (__builtin_add_overflow(reaches[from].clock_difference_low_ns,
				   forward ? edge->clock_difference_low_ns
					   : -edge->clock_difference_high_ns,
				   &longer.clock_difference_low_ns) ||
	    __builtin_add_overflow(reaches[from].clock_difference_high_ns,
				   forward ? edge->clock_difference_high_ns
					   : -edge->clock_difference_low_ns,
				   &longer.clock_difference_high_ns))
		return;
	if (!to->is_known || compute_clock_bounds_width(&longer) < compute_clock_bounds_width(to))
		*to = longer;
}

static uint32_t find_narrowest_unsettled_host(const struct host_clock_bounds *reaches,
					      uint32_t count)
{
	uint32_t best = ID_MAP_NONE;

	for (uint32_t i = 0; i < count; i++) {
		if (reaches[i].is_known && !reaches[i].is_settled &&
		    (best == ID_MAP_NONE || compute_clock_bounds_width(&reaches[i]) <
						    compute_clock_bounds_width(&reaches[best])))
			best = i;
	}
	return best;
}

static struct nccl_host_clock_offset
compute_offset_by_realtime(const struct nccl_host_clock_alignment *align, uint32_t host)
{
	return (struct nccl_host_clock_offset){
		.offset_to_host0_ns = (int64_t)((uint64_t)align->realtime_minus_boottime_ns[host] -
						(uint64_t)align->realtime_minus_boottime_ns[0]),
		.error_ns = host ? UINT64_MAX : 0,
		.alignment_basis = host ? NCCL_ALIGN_BY_REALTIME : NCCL_ALIGN_SAME_CLOCK,
	};
}

static struct nccl_host_clock_offset
compute_offset_from_bounds(const struct nccl_host_clock_alignment *align,
			   const struct host_clock_bounds *reach, uint32_t host)
{
	struct nccl_host_clock_offset offset = compute_offset_by_realtime(align, host);
	int64_t difference = (int64_t) - (uint64_t)offset.offset_to_host0_ns, middle;

	if (!host || !reach->is_known)
		return offset;
	middle = reach->clock_difference_low_ns / 2 + reach->clock_difference_high_ns / 2;
	offset.alignment_basis = NCCL_ALIGN_BY_COLLECTIVES;
	offset.is_contradicted = reach->clock_difference_low_ns > reach->clock_difference_high_ns;
	if (offset.is_contradicted || compute_clock_bounds_width(reach) <= 2 * NARROW_BOUNDS_NS)
		difference = middle;
	else if (difference < reach->clock_difference_low_ns)
		difference = reach->clock_difference_low_ns;
	else if (difference > reach->clock_difference_high_ns)
		difference = reach->clock_difference_high_ns;
	offset.offset_to_host0_ns = (int64_t) - (uint64_t)difference;
	offset.error_ns =
		compute_absolute_difference(difference, reach->clock_difference_low_ns) + 1;
	if (compute_absolute_difference(reach->clock_difference_high_ns, difference) + 1 >
	    offset.error_ns)
		offset.error_ns =
			compute_absolute_difference(reach->clock_difference_high_ns, difference) +
			1;
	return offset;
}

static void solve_host_clock_offsets_in_window(struct nccl_host_clock_alignment *align,
					       struct host_clock_bounds *reaches,
					       const struct nccl_host_pair_clock_bounds *edges,
					       size_t count, uint32_t window)
{
	struct nccl_host_clock_offset *row = &align->offsets[(size_t)window * align->host_count];

	for (uint32_t i = 0; i < align->host_count; i++)
		reaches[i] = (struct host_clock_bounds){.is_known = i == 0};
	for (;;) {
		uint32_t host = find_narrowest_unsettled_host(reaches, align->host_count);

		if (host == ID_MAP_NONE)
			break;
		reaches[host].is_settled = true;
		for (size_t i = 0; i < count; i++) {
			if (edges[i].low_host_index == host || edges[i].high_host_index == host)
				carry_clock_bounds_to_paired_host(reaches, &edges[i], host);
		}
	}
	for (uint32_t i = 0; i < align->host_count; i++)
		row[i] = compute_offset_from_bounds(align, &reaches[i], i);
}

static int compare_host_pairs_by_window(const void *left_edge, const void *right_edge)
{
	const struct nccl_host_pair_clock_bounds *left = left_edge, *right = right_edge;

	return left->window < right->window ? -1 : left->window > right->window;
}

/* A window without collectives has the offset of the nearest one that has some. */
static void copy_offsets_to_empty_windows(struct nccl_host_clock_alignment *align, uint32_t host)
{
	const struct nccl_host_clock_offset *last = NULL;
	struct nccl_host_clock_offset *offsets = align->offsets;
	uint32_t hosts = align->host_count;

	for (uint32_t i = 0; i < align->window_count; i++) {
		struct nccl_host_clock_offset *at = &offsets[(size_t)i * hosts + host];

		if (at->alignment_basis == NCCL_ALIGN_BY_COLLECTIVES)
			last = at;
		else if (last)
			*at = *last;
	}
	last = NULL;
	for (uint32_t i = align->window_count; i-- > 0;) {
		struct nccl_host_clock_offset *at = &offsets[(size_t)i * hosts + host];

		if (at->alignment_basis == NCCL_ALIGN_BY_COLLECTIVES)
			last = at;
		else if (last)
			*at = *last;
	}
}

int nccl_align_solve_offsets(struct nccl_host_clock_alignment *align)
{
	struct host_clock_bounds *reaches = calloc((size_t)align->host_count + 1, sizeof(*reaches));
	size_t from = 0;

	align->offsets = calloc((size_t)align->host_count * align->window_count + 1,
				sizeof(*align->offsets));
	if (!reaches || !align->offsets) {
		free(reaches);
		return -ENOMEM;
	}
	if (align->host_pair_bounds_count > 1)
		qsort(align->host_pair_bounds, align->host_pair_bounds_count,
		      sizeof(*align->host_pair_bounds), compare_host_pairs_by_window);
	for (uint32_t window = 0; window < align->window_count; window++) {
		size_t to = from;

		while (to < align->host_pair_bounds_count &&
		       align->host_pair_bounds[to].window == window)
			to++;
		solve_host_clock_offsets_in_window(
			align, reaches, to > from ? &align->host_pair_bounds[from] : NULL,
			to - from, window);
		from = to;
	}
	for (uint32_t host = 1; host < align->host_count; host++)
		copy_offsets_to_empty_windows(align, host);
	free(reaches);
	return 0;
}

struct nccl_host_clock_offset
nccl_align_get_offset_at_time(const struct nccl_host_clock_alignment *align, uint32_t host,
			      uint64_t time_ns)
{
	return align->offsets[(size_t)find_window_index_at_time(align, host, time_ns) *
				      align->host_count +
			      host];
}
