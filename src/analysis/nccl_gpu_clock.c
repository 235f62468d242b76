/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The clock of one GPU; see nccl_gpu_clock.h. NVIDIA's %globaltimer is not disciplined by NTP, so
 * it drifts against the host's by some parts per million.
 */
#include "analysis/nccl_gpu_clock.h"

#include <errno.h>
#include <stdlib.h>

#include "analysis/arena.h"

#define WINDOW_FIRST_NS UINT64_C(1000000000)
#define WINDOWS_MAX     512 /* a power of two */
#define NO_LOW          INT64_MIN
#define NO_HIGH         INT64_MAX
#define DRIFT_MAX       1e-4 /* more is no drift, but a clock that was set */
#define DRIFT_SPAN_NS   5e9  /* over less than this it cannot be told from noise */
#define USUAL_DELAY_NS                                                                             \
	2000             /* from a stamp of the GPU to the host that hears of it, at the least     \
			  */
#define NARROW_NS  50000 /* of bounds that are closer, the middle is taken */
#define NEIGHBOURS 15    /* windows to each side that bound together */

void nccl_gpu_clock_deinit(struct nccl_gpu_line *clock)
{
	free(clock->windows);
	*clock = (struct nccl_gpu_line){0};
}

static void keep_low(struct nccl_gpu_window *window, uint64_t gpu_ns, int64_t low_ns)
{
	if (low_ns <= window->low_ns)
		return;
	window->low_ns = low_ns;
	window->low_gpu_ns = gpu_ns;
}

static void keep_high(struct nccl_gpu_window *window, uint64_t gpu_ns, int64_t high_ns)
{
	unsigned at = NCCL_GPU_HIGHS;

	while (at > 0 && high_ns < window->high_ns[at - 1]) {
		at--;
		if (at + 1 < NCCL_GPU_HIGHS) {
			window->high_ns[at + 1] = window->high_ns[at];
			window->high_gpu_ns[at + 1] = window->high_gpu_ns[at];
		}
	}
	if (at == NCCL_GPU_HIGHS)
		return;
	window->high_ns[at] = high_ns;
	window->high_gpu_ns[at] = gpu_ns;
}

/* Two windows become one: memory does not grow with the length of the run. */
static void halve(struct nccl_gpu_line *clock)
{
	size_t count = (clock->window_count + 1) / 2;

	for (size_t i = 0; i < count; i++) {
		struct nccl_gpu_window window = clock->windows[2 * i];

		if (2 * i + 1 < clock->window_count) {
			const struct nccl_gpu_window *next = &clock->windows[2 * i + 1];

			keep_low(&window, next->low_gpu_ns, next->low_ns);
			for (unsigned k = 0; k < NCCL_GPU_HIGHS; k++)
				keep_high(&window, next->high_gpu_ns[k], next->high_ns[k]);
		}
		clock->windows[i] = window;
	}
	clock->window_count = count;
	clock->window_ns *= 2;
}

static struct nccl_gpu_window empty_window(void)
{
	struct nccl_gpu_window window = {.low_ns = NO_LOW};

	for (unsigned i = 0; i < NCCL_GPU_HIGHS; i++)
		window.high_ns[i] = NO_HIGH;
	return window;
}

static struct nccl_gpu_window *window_of(struct nccl_gpu_line *clock, uint64_t gpu_ns)
{
	uint64_t index;

	if (!clock->any) {
		clock->any = true;
		clock->window_ns = WINDOW_FIRST_NS;
		clock->origin_gpu_ns = gpu_ns;
	}
	index = gpu_ns < clock->origin_gpu_ns ? 0
					      : (gpu_ns - clock->origin_gpu_ns) / clock->window_ns;
	while (index >= WINDOWS_MAX && clock->window_ns < UINT64_MAX / 2) {
		halve(clock);
		index /= 2;
	}
	if (index >= WINDOWS_MAX)
		index = WINDOWS_MAX - 1;
	while (clock->window_count <= index) {
		if (array_reserve((void **)&clock->windows, &clock->window_capacity,
				  clock->window_count, sizeof(*clock->windows)) < 0)
			return NULL;
		clock->windows[clock->window_count++] = empty_window();
	}
	return &clock->windows[index];
}

int nccl_gpu_clock_add(struct nccl_gpu_line *clock, uint64_t gpu_ns, uint64_t host_ns,
		       bool is_before)
{
	int64_t difference = (int64_t)(host_ns - gpu_ns);
	struct nccl_gpu_window *window;

	/* Such numbers are no times of this century. */
	if (!gpu_ns || gpu_ns > INT64_MAX || host_ns > INT64_MAX)
		return 0;
	window = window_of(clock, gpu_ns);
	if (!window)
		return -ENOMEM;
	if (is_before)
		keep_low(window, gpu_ns, difference);
	else
		keep_high(window, gpu_ns, difference);
	return 0;
}

/* ---- from bounds to a line ---- */

static double since_origin(const struct nccl_gpu_line *clock, uint64_t gpu_ns)
{
	return (double)(int64_t)(gpu_ns - clock->origin_gpu_ns);
}

/* The slope of the upper bounds by least squares: hearing of an event takes a few microseconds and
 * now and then much longer, but the least of a window is nearly always close. */
static double fit_drift(const struct nccl_gpu_line *clock)
{
	double n = 0, sum_x = 0, sum_y = 0, sum_xx = 0, sum_xy = 0, least = 0, most = 0, slope;
	int64_t base = 0;

	for (size_t i = 0; i < clock->window_count; i++) {
		const struct nccl_gpu_window *window = &clock->windows[i];
		double x = since_origin(clock, window->high_gpu_ns[0]), y;

		if (window->high_ns[0] == NO_HIGH)
			continue;
		if (n == 0) {
			base = window->high_ns[0];
			least = x;
		}
		most = x;
		y = (double)window->high_ns[0] - (double)base;
		n++;
		sum_x += x;
		sum_y += y;
		sum_xx += x * x;
		sum_xy += x * y;
	}
	if (n < 3 || most - least < DRIFT_SPAN_NS || n * sum_xx - sum_x * sum_x <= 0)
		return 0;
	slope = (n * sum_xy - sum_x * sum_y) / (n * sum_xx - sum_x * sum_x);
	return slope > DRIFT_MAX || slope < -DRIFT_MAX ? 0 : slope;
}

/* Leaves out upper bounds that contradict the lower one of their window. If all do, it is the lower
 * one that is wrong, or a clock was set. */
static void drop_wrong(struct nccl_gpu_window *window)
{
	unsigned from = 0;

	while (from < NCCL_GPU_HIGHS && window->high_ns[from] < window->low_ns)
		from++;
	if (from == NCCL_GPU_HIGHS)
		return;
	for (unsigned i = 0; i < NCCL_GPU_HIGHS; i++) {
		bool there = i + from < NCCL_GPU_HIGHS;

		window->high_ns[i] = there ? window->high_ns[i + from] : NO_HIGH;
		window->high_gpu_ns[i] = there ? window->high_gpu_ns[i + from] : 0;
	}
}

void nccl_gpu_clock_solve(struct nccl_gpu_line *clock)
{
	for (size_t i = 0; i < clock->window_count; i++)
		drop_wrong(&clock->windows[i]);
	clock->drift = fit_drift(clock);
	clock->solved = true;
}

/* The bounds of one window, as they are at `gpu_ns`. */
struct bounds {
	int64_t low_ns, high_ns;
};

/* Bounds of damaged records may be any numbers. */
static int64_t moved(int64_t bound_ns, double by_ns)
{
	int64_t result;

	if (by_ns > 1e18 || by_ns < -1e18 ||
	    __builtin_add_overflow(bound_ns, (int64_t)by_ns, &result))
		return bound_ns;
	return result;
}

static void narrow(const struct nccl_gpu_line *clock, const struct nccl_gpu_window *window,
		   uint64_t gpu_ns, struct bounds *bounds)
{
	if (window->low_ns != NO_LOW) {
		double apart = (double)(int64_t)(gpu_ns - window->low_gpu_ns);
		int64_t low = moved(window->low_ns, apart * clock->drift);

		if (low > bounds->low_ns)
			bounds->low_ns = low;
	}
	if (window->high_ns[0] != NO_HIGH) {
		double apart = (double)(int64_t)(gpu_ns - window->high_gpu_ns[0]);
		int64_t high = moved(window->high_ns[0], apart * clock->drift);

		if (high < bounds->high_ns)
			bounds->high_ns = high;
	}
}

/* Further windows count as long as they do not contradict the nearer ones, and beyond the usual
 * number of them as long as one bound is missing. */
static struct bounds bounds_at(const struct nccl_gpu_line *clock, uint64_t gpu_ns, size_t index)
{
	struct bounds bounds = {NO_LOW, NO_HIGH}, wider;

	for (size_t away = 0; away < clock->window_count; away++) {
		if (away > NEIGHBOURS && bounds.low_ns != NO_LOW && bounds.high_ns != NO_HIGH)
			break;
		wider = bounds;
		if (index + away < clock->window_count)
			narrow(clock, &clock->windows[index + away], gpu_ns, &wider);
		if (away && index >= away)
			narrow(clock, &clock->windows[index - away], gpu_ns, &wider);
		if (away && wider.low_ns > wider.high_ns)
			break;
		bounds = wider;
	}
	return bounds;
}

static struct nccl_host_time at_offset(uint64_t gpu_ns, int64_t offset_ns, uint64_t error_ns)
{
	int64_t time_ns;

	if (__builtin_add_overflow((int64_t)gpu_ns, offset_ns, &time_ns) || time_ns < 0)
		time_ns = 0;
	return (struct nccl_host_time){(uint64_t)time_ns, error_ns};
}

bool nccl_gpu_clock_find(const struct nccl_gpu_line *clock, uint64_t gpu_ns,
			 struct nccl_host_time *ret)
{
	struct bounds bounds;
	uint64_t index, width, below;

	if (!clock->window_count || gpu_ns > INT64_MAX)
		return false;
	index = gpu_ns < clock->origin_gpu_ns ? 0
					      : (gpu_ns - clock->origin_gpu_ns) / clock->window_ns;
	if (index >= clock->window_count)
		index = clock->window_count - 1;
	bounds = bounds_at(clock, gpu_ns, (size_t)index);
	if (bounds.low_ns == NO_LOW && bounds.high_ns == NO_HIGH)
		return false;
	if (bounds.low_ns == NO_LOW || bounds.high_ns == NO_HIGH) {
		*ret = at_offset(gpu_ns, bounds.low_ns == NO_LOW ? bounds.high_ns : bounds.low_ns,
				 UINT64_MAX);
		return true;
	}
	width = bounds.high_ns > bounds.low_ns ? (uint64_t)bounds.high_ns - (uint64_t)bounds.low_ns
					       : (uint64_t)bounds.low_ns - (uint64_t)bounds.high_ns;
	below = width <= NARROW_NS ? width / 2 : USUAL_DELAY_NS;
	*ret = at_offset(gpu_ns, moved(bounds.high_ns, -(double)below), width - below + 1);
	return true;
}
