/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The clock of one GPU; see gpu_clock.h. NVIDIA's %globaltimer is not disciplined by NTP, so
 * it drifts against the host's by some parts per million.
 */
#include "analysis/nccl/gpu_clock.h"

#include <errno.h>
#include <stdlib.h>

#include "analysis/arena.h"

#define CLOCK_WINDOW_INITIAL_NS UINT64_C(1000000000)
#define CLOCK_WINDOWS_MAX       512 /* a power of two */
#define NO_LOWER_BOUND          INT64_MIN
#define NO_UPPER_BOUND          INT64_MAX
#define CLOCK_DRIFT_MAX         1e-4 /* more is no drift, but a clock that was set */
#define DRIFT_SPAN_LEAST_NS     5e9  /* over less than this it cannot be distinguished from noise */
#define USUAL_GPU_TO_HOST_DELAY_NS                                                                 \
	2000 /* from a stamp of the GPU to the host that hears of it, at the least                 \
	      */
#define NARROW_BOUNDS_NS            50000 /* of bounds that are closer, the middle is taken */
#define NEIGHBOUR_WINDOWS_EACH_SIDE 15    /* windows to each side that bound together */

void nccl_gpu_clock_deinit(struct nccl_gpu_clock_model *clock)
{
	free(clock->windows);
	*clock = (struct nccl_gpu_clock_model){0};
}

static void raise_lower_bound_if_higher(struct nccl_gpu_clock_window *window, uint64_t gpu_ns,
					int64_t low_ns)
{
	if (low_ns <= window->host_minus_gpu_low_ns)
		return;
	window->host_minus_gpu_low_ns = low_ns;
	window->low_bound_at_gpu_ns = gpu_ns;
}

static void insert_upper_bound_if_among_least(struct nccl_gpu_clock_window *window, uint64_t gpu_ns,
					      int64_t high_ns)
{
	unsigned at = NCCL_GPU_UPPER_BOUNDS_MAX;

	while (at > 0 && high_ns < window->host_minus_gpu_high_ns[at - 1]) {
		at--;
		if (at + 1 < NCCL_GPU_UPPER_BOUNDS_MAX) {
			window->host_minus_gpu_high_ns[at + 1] = window->host_minus_gpu_high_ns[at];
			window->high_bounds_at_gpu_ns[at + 1] = window->high_bounds_at_gpu_ns[at];
		}
	}
	if (at == NCCL_GPU_UPPER_BOUNDS_MAX)
		return;
	window->host_minus_gpu_high_ns[at] = high_ns;
	window->high_bounds_at_gpu_ns[at] = gpu_ns;
}

/* Two windows become one: memory does not grow with the length of the run. */
static void merge_windows_in_pairs(struct nccl_gpu_clock_model *clock)
{
	size_t count = (clock->window_count + 1) / 2;

	for (size_t i = 0; i < count; i++) {
		struct nccl_gpu_clock_window window = clock->windows[2 * i];

		if (2 * i + 1 < clock->window_count) {
			const struct nccl_gpu_clock_window *next = &clock->windows[2 * i + 1];

			raise_lower_bound_if_higher(&window, next->low_bound_at_gpu_ns,
						    next->host_minus_gpu_low_ns);
			for (unsigned k = 0; k < NCCL_GPU_UPPER_BOUNDS_MAX; k++)
				insert_upper_bound_if_among_least(&window,
								  next->high_bounds_at_gpu_ns[k],
								  next->host_minus_gpu_high_ns[k]);
		}
		clock->windows[i] = window;
	}
	clock->window_count = count;
	clock->window_length_ns *= 2;
}

static struct nccl_gpu_clock_window make_empty_window(void)
{
	struct nccl_gpu_clock_window window = {.host_minus_gpu_low_ns = NO_LOWER_BOUND};

	for (unsigned i = 0; i < NCCL_GPU_UPPER_BOUNDS_MAX; i++)
		window.host_minus_gpu_high_ns[i] = NO_UPPER_BOUND;
	return window;
}

static struct nccl_gpu_clock_window *find_or_add_window(struct nccl_gpu_clock_model *clock,
							uint64_t gpu_ns)
{
	uint64_t index;

	if (!clock->any) {
		clock->any = true;
		clock->window_length_ns = CLOCK_WINDOW_INITIAL_NS;
		clock->origin_gpu_ns = gpu_ns;
	}
	index = gpu_ns < clock->origin_gpu_ns
			? 0
			: (gpu_ns - clock->origin_gpu_ns) / clock->window_length_ns;
	while (index >= CLOCK_WINDOWS_MAX && clock->window_length_ns < UINT64_MAX / 2) {
		merge_windows_in_pairs(clock);
		index /= 2;
	}
	if (index >= CLOCK_WINDOWS_MAX)
		index = CLOCK_WINDOWS_MAX - 1;
	while (clock->window_count <= index) {
		if (array_reserve_one_more((void **)&clock->windows, &clock->window_capacity,
					   clock->window_count, sizeof(*clock->windows)) < 0)
			return NULL;
		clock->windows[clock->window_count++] = make_empty_window();
	}
	return &clock->windows[index];
}

int nccl_gpu_clock_add_bound(struct nccl_gpu_clock_model *clock, uint64_t gpu_ns, uint64_t host_ns,
			     bool is_before)
{
	int64_t difference = (int64_t)(host_ns - gpu_ns);
	struct nccl_gpu_clock_window *window;

	/* Such numbers are no times of this century. */
	if (!gpu_ns || gpu_ns > INT64_MAX || host_ns > INT64_MAX)
		return 0;
	window = find_or_add_window(clock, gpu_ns);
	if (!window)
		return -ENOMEM;
	if (is_before)
		raise_lower_bound_if_higher(window, gpu_ns, difference);
	else
		insert_upper_bound_if_among_least(window, gpu_ns, difference);
	return 0;
}

/* ---- from bounds to a line ---- */

static double gpu_ns_to_ns_since_gpu_origin(const struct nccl_gpu_clock_model *clock,
					    uint64_t gpu_ns)
{
	return (double)(int64_t)(gpu_ns - clock->origin_gpu_ns);
}

/* The slope of the upper bounds by least squares: hearing of an event takes a few microseconds and
 * now and then much longer, but the least of a window is nearly always close. */
static double compute_clock_drift(const struct nccl_gpu_clock_model *clock)
{
	double n = 0, sum_x = 0, sum_y = 0, sum_xx = 0, sum_xy = 0, least = 0, most = 0, slope;
	int64_t base = 0;

	for (size_t i = 0; i < clock->window_count; i++) {
		const struct nccl_gpu_clock_window *window = &clock->windows[i];
		double x = gpu_ns_to_ns_since_gpu_origin(clock, window->high_bounds_at_gpu_ns[0]),
		       y;

		if (window->host_minus_gpu_high_ns[0] == NO_UPPER_BOUND)
			continue;
		if (n == 0) {
			base = window->host_minus_gpu_high_ns[0];
			least = x;
		}
		most = x;
		y = (double)window->host_minus_gpu_high_ns[0] - (double)base;
		n++;
		sum_x += x;
		sum_y += y;
		sum_xx += x * x;
		sum_xy += x * y;
	}
	if (n < 3 || most - least < DRIFT_SPAN_LEAST_NS || n * sum_xx - sum_x * sum_x <= 0)
		return 0;
	slope = (n * sum_xy - sum_x * sum_y) / (n * sum_xx - sum_x * sum_x);
	return slope > CLOCK_DRIFT_MAX || slope < -CLOCK_DRIFT_MAX ? 0 : slope;
}

/* Leaves out upper bounds that contradict the lower one of their window. If all do, it is the lower
 * one that is wrong, or a clock was set. */
static void drop_contradicting_upper_bounds(struct nccl_gpu_clock_window *window)
{
	unsigned from = 0;

	while (from < NCCL_GPU_UPPER_BOUNDS_MAX &&
	       window->host_minus_gpu_high_ns[from] < window->host_minus_gpu_low_ns)
		from++;
	if (from == NCCL_GPU_UPPER_BOUNDS_MAX)
		return;
	for (unsigned i = 0; i < NCCL_GPU_UPPER_BOUNDS_MAX; i++) {
		bool there = i + from < NCCL_GPU_UPPER_BOUNDS_MAX;

		window->host_minus_gpu_high_ns[i] =
			there ? window->host_minus_gpu_high_ns[i + from] : NO_UPPER_BOUND;
		window->high_bounds_at_gpu_ns[i] =
			there ? window->high_bounds_at_gpu_ns[i + from] : 0;
	}
}

void nccl_gpu_clock_compute_drift(struct nccl_gpu_clock_model *clock)
{
	for (size_t i = 0; i < clock->window_count; i++)
		drop_contradicting_upper_bounds(&clock->windows[i]);
	clock->drift_ns_per_ns = compute_clock_drift(clock);
	clock->is_solved = true;
}

/* The bounds of one window, as they are at `gpu_ns`. */
struct clock_offset_bounds {
	int64_t low_ns, high_ns;
};

/* Bounds of damaged records may be any numbers. */
static int64_t shift_bound_unless_overflow(int64_t bound_ns, double by_ns)
{
	int64_t result;

	if (by_ns > 1e18 || by_ns < -1e18 ||
	    __builtin_add_overflow(bound_ns, (int64_t)by_ns, &result))
		return bound_ns;
	return result;
}

static void narrow_bounds_by_window(const struct nccl_gpu_clock_model *clock,
				    const struct nccl_gpu_clock_window *window, uint64_t gpu_ns,
				    struct clock_offset_bounds *bounds)
{
	if (window->host_minus_gpu_low_ns != NO_LOWER_BOUND) {
		double apart = (double)(int64_t)(gpu_ns - window->low_bound_at_gpu_ns);
		int64_t low = shift_bound_unless_overflow(window->host_minus_gpu_low_ns,
							  apart * clock->drift_ns_per_ns);

		if (low > bounds->low_ns)
			bounds->low_ns = low;
	}
	if (window->host_minus_gpu_high_ns[0] != NO_UPPER_BOUND) {
		double apart = (double)(int64_t)(gpu_ns - window->high_bounds_at_gpu_ns[0]);
		int64_t high = shift_bound_unless_overflow(window->host_minus_gpu_high_ns[0],
							   apart * clock->drift_ns_per_ns);

		if (high < bounds->high_ns)
			bounds->high_ns = high;
	}
}

/* Further windows count as long as they do not contradict the nearer ones, and beyond the usual
 * number of them as long as one bound is missing. */
static struct clock_offset_bounds compute_offset_bounds(const struct nccl_gpu_clock_model *clock,
							uint64_t gpu_ns, size_t index)
{
	struct clock_offset_bounds bounds = {NO_LOWER_BOUND, NO_UPPER_BOUND}, wider;

	for (size_t away = 0; away < clock->window_count; away++) {
		if (away > NEIGHBOUR_WINDOWS_EACH_SIDE && bounds.low_ns != NO_LOWER_BOUND &&
		    bounds.high_ns != NO_UPPER_BOUND)
			break;
		wider = bounds;
		if (index + away < clock->window_count)
			narrow_bounds_by_window(clock, &clock->windows[index + away], gpu_ns,
						&wider);
		if (away && index >= away)
			narrow_bounds_by_window(clock, &clock->windows[index - away], gpu_ns,
						&wider);
		if (away && wider.low_ns > wider.high_ns)
			break;
		bounds = wider;
	}
	return bounds;
}

static struct nccl_gpu_time_on_host make_host_time(uint64_t gpu_ns, int64_t offset_ns,
						   uint64_t error_ns)
{
	int64_t time_ns;

	if (__builtin_add_overflow((int64_t)gpu_ns, offset_ns, &time_ns) || time_ns < 0)
		time_ns = 0;
	return (struct nccl_gpu_time_on_host){(uint64_t)time_ns, error_ns};
}

bool nccl_gpu_clock_to_host_time(const struct nccl_gpu_clock_model *clock, uint64_t gpu_ns,
				 struct nccl_gpu_time_on_host *ret)
{
	struct clock_offset_bounds bounds;
	uint64_t index, width, below;

	if (!clock->window_count || gpu_ns > INT64_MAX)
		return false;
	index = gpu_ns < clock->origin_gpu_ns
			? 0
			: (gpu_ns - clock->origin_gpu_ns) / clock->window_length_ns;
	if (index >= clock->window_count)
		index = clock->window_count - 1;
	bounds = compute_offset_bounds(clock, gpu_ns, (size_t)index);
	if (bounds.low_ns == NO_LOWER_BOUND && bounds.high_ns == NO_UPPER_BOUND)
		return false;
	if (bounds.low_ns == NO_LOWER_BOUND || bounds.high_ns == NO_UPPER_BOUND) {
		*ret = make_host_time(
			gpu_ns, bounds.low_ns == NO_LOWER_BOUND ? bounds.high_ns : bounds.low_ns,
			UINT64_MAX);
		return true;
	}
	width = bounds.high_ns > bounds.low_ns ? (uint64_t)bounds.high_ns - (uint64_t)bounds.low_ns
					       : (uint64_t)bounds.low_ns - (uint64_t)bounds.high_ns;
	below = width <= NARROW_BOUNDS_NS ? width / 2 : USUAL_GPU_TO_HOST_DELAY_NS;
	*ret = make_host_time(gpu_ns, shift_bound_unless_overflow(bounds.high_ns, -(double)below),
			      width - below + 1);
	return true;
}
