/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Clocks of several hosts; see nccl_align.h. Bounds between pairs of hosts make a graph; from host
 * 0 on, each host is reached by the path whose bounds add up to the least.
 */
#include "analysis/nccl_align.h"

#include <errno.h>
#include <stdlib.h>

#include "analysis/arena.h"

#define WINDOW_LEAST_NS INT64_C(60000000000)
/* Wider bounds than this say less than CLOCK_REALTIME does where NTP or PTP runs. */
#define GOOD_ENOUGH_NS 1000000
#define FAR            (INT64_MAX / 8)

/* clock of `high_host` minus clock of `low_host`, in one window. */
struct nccl_align_edge {
	uint32_t low_host, high_host, window;
	int64_t low_ns, high_ns;
};

const char *nccl_align_basis_name(enum nccl_align_basis basis)
{
	static const char *const names[] = {"same_clock", "collectives", "realtime"};

	return names[basis];
}

int nccl_align_init(struct nccl_align *align, uint32_t host_count,
		    const int64_t *realtime_minus_boottime_ns, uint64_t start_realtime_ns,
		    uint64_t end_realtime_ns)
{
	uint64_t span =
		end_realtime_ns > start_realtime_ns ? end_realtime_ns - start_realtime_ns : 0;

	*align = (struct nccl_align){.host_count = host_count, .start_ns = start_realtime_ns};
	align->window_ns = span / NCCL_ALIGN_WINDOWS + 1;
	if (align->window_ns < WINDOW_LEAST_NS)
		align->window_ns = WINDOW_LEAST_NS;
	align->window_count = (uint32_t)(span / align->window_ns) + 1;
	align->realtime_minus_boottime_ns = calloc((size_t)host_count + 1, sizeof(int64_t));
	if (!align->realtime_minus_boottime_ns)
		return -ENOMEM;
	for (uint32_t i = 0; i < host_count; i++)
		align->realtime_minus_boottime_ns[i] = realtime_minus_boottime_ns[i];
	return 0;
}

void nccl_align_deinit(struct nccl_align *align)
{
	free(align->realtime_minus_boottime_ns);
	free(align->edges);
	free(align->offsets);
	id_map_deinit(&align->pairs);
	*align = (struct nccl_align){0};
}

static uint32_t window_at(const struct nccl_align *align, uint32_t host, uint64_t time_ns)
{
	uint64_t realtime = time_ns + (uint64_t)align->realtime_minus_boottime_ns[host];
	uint64_t window;

	if (realtime < align->start_ns)
		return 0;
	window = (realtime - align->start_ns) / align->window_ns;
	return window < align->window_count ? (uint32_t)window : align->window_count - 1;
}

static struct nccl_align_edge *edge_of(struct nccl_align *align, uint32_t low, uint32_t high,
				       uint32_t window)
{
	uint64_t key = ((uint64_t)low * align->host_count + high) * align->window_count + window;
	uint32_t index = id_map_get(&align->pairs, key);

	if (index != ID_MAP_NONE)
		return &align->edges[index];
	index = (uint32_t)align->edge_count;
	if (array_reserve((void **)&align->edges, &align->edge_capacity, align->edge_count,
			  sizeof(*align->edges)) < 0 ||
	    id_map_set(&align->pairs, key, index) < 0)
		return NULL;
	align->edge_count++;
	align->edges[index] = (struct nccl_align_edge){low, high, window, -FAR, FAR};
	return &align->edges[index];
}

int nccl_align_add(struct nccl_align *align, const struct nccl_align_sight *first,
		   const struct nccl_align_sight *second)
{
	const struct nccl_align_sight *low = first->host < second->host ? first : second;
	const struct nccl_align_sight *high = low == first ? second : first;
	struct nccl_align_edge *edge;

	if (low->host == high->host || low->left_ns < low->entered_ns ||
	    high->left_ns < high->entered_ns || low->entered_ns < 0 || high->entered_ns < 0)
		return 0;
	edge = edge_of(align, low->host, high->host,
		       window_at(align, low->host, (uint64_t)low->entered_ns));
	if (!edge)
		return -ENOMEM;
	/* entered on one before left on the other, whichever way round */
	if (high->left_ns - low->entered_ns < edge->high_ns)
		edge->high_ns = high->left_ns - low->entered_ns;
	if (high->entered_ns - low->left_ns > edge->low_ns)
		edge->low_ns = high->entered_ns - low->left_ns;
	align->constraints++;
	return 0;
}

/* ---- from bounds to offsets ---- */

struct reach {
	int64_t low_ns, high_ns; /* of the host's clock minus that of host 0 */
	bool known, settled;
};

/* Times of damaged records may be any numbers. */
static uint64_t distance(int64_t a, int64_t b)
{
	return a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a;
}

static uint64_t reach_width(const struct reach *reach)
{
	return reach->high_ns > reach->low_ns ? distance(reach->high_ns, reach->low_ns) : 0;
}

/* What host 0 has, carried over an edge. */
static void extend(struct reach *reaches, const struct nccl_align_edge *edge, uint32_t from)
{
	bool forward = edge->low_host == from;
	struct reach *to = &reaches[forward ? edge->high_host : edge->low_host], longer;

	if (to->settled || edge->low_ns <= -FAR || edge->high_ns >= FAR || edge->low_ns >= FAR ||
	    edge->high_ns <= -FAR)
		return;
	longer.known = true;
	longer.settled = false;
	if (__builtin_add_overflow(reaches[from].low_ns, forward ? edge->low_ns : -edge->high_ns,
				   &longer.low_ns) ||
	    __builtin_add_overflow(reaches[from].high_ns, forward ? edge->high_ns : -edge->low_ns,
				   &longer.high_ns))
		return;
	if (!to->known || reach_width(&longer) < reach_width(to))
		*to = longer;
}

static uint32_t nearest_open(const struct reach *reaches, uint32_t count)
{
	uint32_t best = ID_MAP_NONE;

	for (uint32_t i = 0; i < count; i++) {
		if (reaches[i].known && !reaches[i].settled &&
		    (best == ID_MAP_NONE || reach_width(&reaches[i]) < reach_width(&reaches[best])))
			best = i;
	}
	return best;
}

static struct nccl_offset by_realtime(const struct nccl_align *align, uint32_t host)
{
	return (struct nccl_offset){
		.add_ns = (int64_t)((uint64_t)align->realtime_minus_boottime_ns[host] -
				    (uint64_t)align->realtime_minus_boottime_ns[0]),
		.error_ns = host ? UINT64_MAX : 0,
		.basis = host ? NCCL_ALIGN_REALTIME : NCCL_ALIGN_SAME,
	};
}

static struct nccl_offset offset_of(const struct nccl_align *align, const struct reach *reach,
				    uint32_t host)
{
	struct nccl_offset offset = by_realtime(align, host);
	int64_t difference = (int64_t) - (uint64_t)offset.add_ns, middle;

	if (!host || !reach->known)
		return offset;
	middle = reach->low_ns / 2 + reach->high_ns / 2;
	offset.basis = NCCL_ALIGN_COLLECTIVES;
	offset.contradicted = reach->low_ns > reach->high_ns;
	if (offset.contradicted || reach_width(reach) <= 2 * GOOD_ENOUGH_NS)
		difference = middle;
	else if (difference < reach->low_ns)
		difference = reach->low_ns;
	else if (difference > reach->high_ns)
		difference = reach->high_ns;
	offset.add_ns = (int64_t) - (uint64_t)difference;
	offset.error_ns = distance(difference, reach->low_ns) + 1;
	if (distance(reach->high_ns, difference) + 1 > offset.error_ns)
		offset.error_ns = distance(reach->high_ns, difference) + 1;
	return offset;
}

static void solve_window(struct nccl_align *align, struct reach *reaches,
			 const struct nccl_align_edge *edges, size_t count, uint32_t window)
{
	struct nccl_offset *row = &align->offsets[(size_t)window * align->host_count];

	for (uint32_t i = 0; i < align->host_count; i++)
		reaches[i] = (struct reach){.known = i == 0};
	for (;;) {
		uint32_t host = nearest_open(reaches, align->host_count);

		if (host == ID_MAP_NONE)
			break;
		reaches[host].settled = true;
		for (size_t i = 0; i < count; i++) {
			if (edges[i].low_host == host || edges[i].high_host == host)
				extend(reaches, &edges[i], host);
		}
	}
	for (uint32_t i = 0; i < align->host_count; i++)
		row[i] = offset_of(align, &reaches[i], i);
}

static int by_window(const void *left_edge, const void *right_edge)
{
	const struct nccl_align_edge *left = left_edge, *right = right_edge;

	return left->window < right->window ? -1 : left->window > right->window;
}

/* A window without collectives has the offset of the nearest one that has some. */
static void fill_gaps(struct nccl_align *align, uint32_t host)
{
	const struct nccl_offset *last = NULL;
	struct nccl_offset *offsets = align->offsets;
	uint32_t hosts = align->host_count;

	for (uint32_t i = 0; i < align->window_count; i++) {
		struct nccl_offset *at = &offsets[(size_t)i * hosts + host];

		if (at->basis == NCCL_ALIGN_COLLECTIVES)
			last = at;
		else if (last)
			*at = *last;
	}
	last = NULL;
	for (uint32_t i = align->window_count; i-- > 0;) {
		struct nccl_offset *at = &offsets[(size_t)i * hosts + host];

		if (at->basis == NCCL_ALIGN_COLLECTIVES)
			last = at;
		else if (last)
			*at = *last;
	}
}

int nccl_align_solve(struct nccl_align *align)
{
	struct reach *reaches = calloc((size_t)align->host_count + 1, sizeof(*reaches));
	size_t from = 0;

	align->offsets = calloc((size_t)align->host_count * align->window_count + 1,
				sizeof(*align->offsets));
	if (!reaches || !align->offsets) {
		free(reaches);
		return -ENOMEM;
	}
	if (align->edge_count > 1)
		qsort(align->edges, align->edge_count, sizeof(*align->edges), by_window);
	for (uint32_t window = 0; window < align->window_count; window++) {
		size_t to = from;

		while (to < align->edge_count && align->edges[to].window == window)
			to++;
		solve_window(align, reaches, to > from ? &align->edges[from] : NULL, to - from,
			     window);
		from = to;
	}
	for (uint32_t host = 1; host < align->host_count; host++)
		fill_gaps(align, host);
	free(reaches);
	return 0;
}

struct nccl_offset nccl_align_at(const struct nccl_align *align, uint32_t host, uint64_t time_ns)
{
	return align->offsets[(size_t)window_at(align, host, time_ns) * align->host_count + host];
}
