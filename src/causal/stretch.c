/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See stretch.h.
 */
#include "causal/stretch.h"

#define MEMORY     32u      /* samples of a step; older ones fade */
#define DOUBT_NS   250000u  /* a kind that is new is thought to have run so long elsewhere */
#define KNOWN_NS   8000000u /* so many samples tell what a thread does */
#define PLACES     8u       /* at which a kind may be found; the last one's is taken */
#define SHARE_BITS 22u      /* of the fraction of a share */

/* First stretches of threads, of this process. */
static struct causal_stretch starts[CAUSAL_STRETCHES];

static void empty(struct causal_stretch *stretch, uint64_t kind, uint64_t when)
{
	struct causal_time *seen = &stretch->seen[0][0];

	for (uint32_t i = 0; i < CAUSAL_STEPS * CAUSAL_STEPS; i++) {
		causal_set(&seen[i].ns, 0);
		causal_set(&seen[i].target_ns, 0);
	}
	causal_set(&stretch->kind, kind);
	causal_set(&stretch->when, when);
	atomic_store_explicit(&stretch->stale, 1, memory_order_relaxed);
}

/* What was learnt in another experiment, or by a thread that is gone, is forgotten. */
struct causal_stretch *stretch_at_hand(struct causal_thread *state)
{
	struct causal_earning *earning = &state->earning;
	bool start = earning->kind & CAUSAL_KIND_START;
	struct causal_stretch *stretches = start ? starts : earning->stretches, *stretch;
	uint64_t hash = earning->kind * 0x9e3779b97f4a7c15ull >> 32;
	uint64_t when =
		causal_get(&state->word) >> CAUSAL_EPOCH_SHIFT << 32 | (start ? 0 : earning->life);

	for (uint32_t i = 0; i < PLACES; i++) {
		stretch = &stretches[(hash + i) % CAUSAL_STRETCHES];
		if (causal_get(&stretch->when) != when)
			break;
		if (causal_get(&stretch->kind) == earning->kind)
			return stretch;
	}
	empty(stretch, earning->kind, when);
	return stretch;
}

/* ---- steps ---- */

static uint32_t step_at(uint64_t ticks)
{
	uint32_t step = 0;

	while (step + 1 < CAUSAL_STEPS && ticks >= kymo_causal_rates.step << step)
		step++;
	return step;
}

static uint64_t begin_of(uint32_t step)
{
	return step ? kymo_causal_rates.step << (step - 1) : 0;
}

static int64_t length_of(uint32_t step)
{
	return (int64_t)(begin_of(step + 1) - begin_of(step));
}

/* ---- learning ---- */

void causal_time_add(struct causal_time *to, uint64_t ns, uint64_t target_ns)
{
	causal_set(&to->ns, causal_get(&to->ns) + ns);
	causal_set(&to->target_ns, causal_get(&to->target_ns) + target_ns);
}

void causal_time_fade(struct causal_time *time)
{
	causal_set(&time->ns, causal_get(&time->ns) - causal_get(&time->ns) / MEMORY);
	causal_set(&time->target_ns,
		   causal_get(&time->target_ns) - causal_get(&time->target_ns) / MEMORY);
}

/* How often stretches end where is a matter of proportion: all that was seen of a step fades
 * alike, wherever it ended. */
static void ended_in(struct causal_thread *state, uint32_t end)
{
	struct causal_stretch *stretch = stretch_at_hand(state);
	struct causal_time *seen = state->earning.seen;

	for (uint32_t step = 0; step <= end; step++) {
		uint64_t ns = causal_get(&seen[step].ns);

		if (!ns)
			continue;
		for (uint32_t i = step; i < CAUSAL_STEPS; i++)
			causal_time_fade(&stretch->seen[i][step]);
		causal_time_add(&stretch->seen[end][step], ns, causal_get(&seen[step].target_ns));
		causal_set(&seen[step].ns, 0);
		causal_set(&seen[step].target_ns, 0);
		atomic_store_explicit(&stretch->stale, 1, memory_order_relaxed);
	}
}

void stretch_sampled(struct causal_thread *state, uint64_t after, uint64_t ns, bool hit)
{
	uint32_t step = step_at(after);

	causal_time_add(&state->earning.seen[step], ns, hit ? ns : 0);
	if (step == CAUSAL_STEPS - 1)
		ended_in(state, step);
}

void stretch_forget(struct causal_thread *state)
{
	for (uint32_t i = 0; i < CAUSAL_STEPS; i++) {
		causal_set(&state->earning.seen[i].ns, 0);
		causal_set(&state->earning.seen[i].target_ns, 0);
	}
}

/* ---- what follows ---- */

/* Of the time of which little is known that is taken for what is usual. */
static int64_t share_of(const struct causal_time *time, int64_t usual)
{
	uint64_t target_ns = causal_get(&time->target_ns), ns = causal_get(&time->ns);

	return (int64_t)(((target_ns << SHARE_BITS) + (uint64_t)usual * DOUBT_NS) /
			 (ns + DOUBT_NS));
}

/* Of a thread; one that has hardly been sampled has done little else than what it did first. */
static int64_t usual_share(const struct causal_time *thread)
{
	return causal_get(&thread->ns) < KNOWN_NS ? 0 : share_of(thread, 0);
}

/* A share of so many ticks, at the speedup, in ticks. */
static int64_t earned(int64_t share, int64_t ticks, uint64_t speedup)
{
	return (int64_t)((__int128)share * ticks * (int64_t)speedup / 1000 >> SHARE_BITS);
}

static int64_t rate_of(int64_t share, uint64_t speedup)
{
	return share * (int64_t)speedup / 1000 * (int64_t)(CAUSAL_RATE_ONE >> SHARE_BITS);
}

/* What is left of the step when stretches that ended before `end` are not looked at. */
static void left_at(const struct causal_stretch *stretch, uint32_t step, uint32_t end,
		    struct causal_time *ret)
{
	*ret = (struct causal_time){0};
	for (uint32_t i = end; i < CAUSAL_STEPS; i++)
		causal_time_add(ret, causal_get(&stretch->seen[i][step].ns),
				causal_get(&stretch->seen[i][step].target_ns));
}

/* It has come to this step, or ends in it: what that says of the steps before it, whose shares are
 * brought up to date. */
static void conclude_at(struct causal_stretch *stretch, uint32_t here, int64_t *shares,
			uint64_t speedup)
{
	int64_t jump = 0, end_jump = 0, share;
	struct causal_time left;

	for (uint32_t step = 0; step < here; step++) {
		left_at(stretch, step, here, &left);
		share = share_of(&left, shares[step]);
		jump += earned(share - shares[step], length_of(step), speedup);
		shares[step] = share;
		share = share_of(&stretch->seen[here][step], shares[step]) - shares[step];
		end_jump += earned(share, length_of(step), speedup);
	}
	share = share_of(&stretch->seen[here][here], shares[here]) - shares[here];
	causal_set(&stretch->rates[here], (uint64_t)rate_of(shares[here], speedup));
	atomic_store_explicit(&stretch->jumps[here], jump, memory_order_relaxed);
	atomic_store_explicit(&stretch->end_jumps[here], end_jump, memory_order_relaxed);
	atomic_store_explicit(&stretch->end_rates[here], rate_of(share, speedup),
			      memory_order_relaxed);
}

bool stretch_conclude(struct causal_stretch *stretch, const struct causal_time *thread,
		      uint64_t speedup)
{
	struct causal_time left[CAUSAL_STEPS], all = {0};
	int64_t shares[CAUSAL_STEPS], usual;
	bool any = false;

	if (atomic_load_explicit(&stretch->stale, memory_order_relaxed)) {
		atomic_store_explicit(&stretch->stale, 0, memory_order_relaxed);
		for (uint32_t step = 0; step < CAUSAL_STEPS; step++) {
			left_at(stretch, step, step, &left[step]);
			causal_time_add(&all, causal_get(&left[step].ns),
					causal_get(&left[step].target_ns));
		}
		usual = share_of(&all, usual_share(thread));
		for (uint32_t step = 0; step < CAUSAL_STEPS; step++)
			shares[step] = share_of(&left[step], usual);
		for (uint32_t step = 0; step < CAUSAL_STEPS; step++)
			conclude_at(stretch, step, shares, speedup);
	}
	for (uint32_t step = 0; step < CAUSAL_STEPS; step++)
		any |= causal_get(&stretch->rates[step]) != 0;
	return any;
}

static int64_t end_of(const struct causal_stretch *stretch, uint64_t length)
{
	uint32_t end = step_at(length);
	int64_t rate = atomic_load_explicit(&stretch->end_rates[end], memory_order_relaxed);

	return atomic_load_explicit(&stretch->end_jumps[end], memory_order_relaxed) +
	       (int64_t)((__int128)rate * (int64_t)(length - begin_of(end)) >> 32);
}

int64_t stretch_ended(struct causal_thread *state, uint64_t length)
{
	uint64_t word = causal_get(&state->word);
	int64_t more = 0;

	if (!(word & CAUSAL_ACTIVE))
		return 0;
	if (state->earning.running)
		more = end_of(stretch_at_hand(state), length);
	ended_in(state, step_at(length));
	return more;
}
