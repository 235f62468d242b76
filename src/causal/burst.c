/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See burst.h.
 */
#include "causal/burst.h"

#define SAMPLED_TIME_FADE_DIVISOR 32u /* samples of a step; older ones fade */
#define TARGET_SHARE_PRIOR_NS                                                                      \
	250000u /* a kind that is new is thought to have run so long elsewhere */
#define KNOWN_TARGET_SHARE_LEAST_NS 8000000u /* so many samples tell what a thread does */
#define BURST_HASH_PROBES           8u  /* at which a kind may be found; the last one's is taken */
#define SHARE_FRACTION_BITS         22u /* of the fraction of a share */

/* First bursts of threads, of this process. */
static struct causal_burst_statistics
	statistics_of_first_bursts_of_threads[CAUSAL_BURST_KIND_SLOT_COUNT];

static void clear_burst_statistics(struct causal_burst_statistics *burst, uint64_t kind,
				   uint64_t when)
{
	struct causal_sample_time_sums *seen = &burst->seen[0][0];

	for (uint32_t i = 0; i < CAUSAL_STEPS * CAUSAL_STEPS; i++) {
		causal_store_relaxed(&seen[i].ns, 0);
		causal_store_relaxed(&seen[i].target_ns, 0);
	}
	causal_store_relaxed(&burst->kind, kind);
	causal_store_relaxed(&burst->epoch_and_thread_life, when);
	atomic_store_explicit(&burst->stale, 1, memory_order_relaxed);
}

/* What was learnt in another experiment, or by a thread that is gone, is forgotten. */
struct causal_burst_statistics *burst_find_or_reset_statistics(struct causal_thread *state)
{
	struct causal_attribution_state *attribution = &state->attribution;
	bool start = attribution->kind & CAUSAL_THREAD_START_BURST_KIND_BIT;
	struct causal_burst_statistics *bursts = start ? statistics_of_first_bursts_of_threads
						       : attribution->burst_statistics,
				       *burst;
	uint64_t hash = attribution->kind * 0x9e3779b97f4a7c15ull >> 32;
	uint64_t when = causal_load_relaxed(&state->word) >> CAUSAL_EPOCH_SHIFT << 32 |
			(start ? 0 : attribution->thread_life_number);

	for (uint32_t i = 0; i < BURST_HASH_PROBES; i++) {
		burst = &bursts[(hash + i) % CAUSAL_BURST_KIND_SLOT_COUNT];
		if (causal_load_relaxed(&burst->epoch_and_thread_life) != when)
			break;
		if (causal_load_relaxed(&burst->kind) == attribution->kind)
			return burst;
	}
	clear_burst_statistics(burst, attribution->kind, when);
	return burst;
}

/* ---- steps ---- */

static uint32_t burst_length_to_step(uint64_t ticks)
{
	uint32_t step = 0;

	while (step + 1 < CAUSAL_STEPS && ticks >= kymo_causal_rates.burst_step_ticks << step)
		step++;
	return step;
}

static uint64_t get_shortest_burst_ticks_of_step(uint32_t step)
{
	return step ? kymo_causal_rates.burst_step_ticks << (step - 1) : 0;
}

static int64_t get_burst_step_length_ticks(uint32_t step)
{
	return (int64_t)(get_shortest_burst_ticks_of_step(step + 1) -
			 get_shortest_burst_ticks_of_step(step));
}

/* ---- learning ---- */

void causal_add_sample_to_time_sums(struct causal_sample_time_sums *to, uint64_t ns,
				    uint64_t target_ns)
{
	causal_store_relaxed(&to->ns, causal_load_relaxed(&to->ns) + ns);
	causal_store_relaxed(&to->target_ns, causal_load_relaxed(&to->target_ns) + target_ns);
}

void causal_fade_old_samples_in_time_sums(struct causal_sample_time_sums *time)
{
	causal_store_relaxed(&time->ns,
			     causal_load_relaxed(&time->ns) -
				     causal_load_relaxed(&time->ns) / SAMPLED_TIME_FADE_DIVISOR);
	causal_store_relaxed(&time->target_ns, causal_load_relaxed(&time->target_ns) -
						       causal_load_relaxed(&time->target_ns) /
							       SAMPLED_TIME_FADE_DIVISOR);
}

/* How often bursts end where is a matter of proportion: all that was seen of a step fades
 * alike, wherever it ended. */
static void add_ended_burst_to_statistics(struct causal_thread *state, uint32_t end)
{
	struct causal_burst_statistics *burst = burst_find_or_reset_statistics(state);
	struct causal_sample_time_sums *seen = state->attribution.seen;

	for (uint32_t step = 0; step <= end; step++) {
		uint64_t ns = causal_load_relaxed(&seen[step].ns);

		if (!ns)
			continue;
		for (uint32_t i = step; i < CAUSAL_STEPS; i++)
			causal_fade_old_samples_in_time_sums(&burst->seen[i][step]);
		causal_add_sample_to_time_sums(&burst->seen[end][step], ns,
					       causal_load_relaxed(&seen[step].target_ns));
		causal_store_relaxed(&seen[step].ns, 0);
		causal_store_relaxed(&seen[step].target_ns, 0);
		atomic_store_explicit(&burst->stale, 1, memory_order_relaxed);
	}
}

void burst_add_sample(struct causal_thread *state, uint64_t after, uint64_t ns, bool hit)
{
	uint32_t step = burst_length_to_step(after);

	causal_add_sample_to_time_sums(&state->attribution.seen[step], ns, hit ? ns : 0);
	if (step == CAUSAL_STEPS - 1)
		add_ended_burst_to_statistics(state, step);
}

void burst_forget_samples(struct causal_thread *state)
{
	for (uint32_t i = 0; i < CAUSAL_STEPS; i++) {
		causal_store_relaxed(&state->attribution.seen[i].ns, 0);
		causal_store_relaxed(&state->attribution.seen[i].target_ns, 0);
	}
}

/* ---- what follows ---- */

/* The share of the target; time of which little is known counts as what is usual. */
static int64_t compute_target_share(const struct causal_sample_time_sums *time, int64_t usual)
{
	uint64_t target_ns = causal_load_relaxed(&time->target_ns),
		 ns = causal_load_relaxed(&time->ns);

	return (int64_t)(((target_ns << SHARE_FRACTION_BITS) +
			  (uint64_t)usual * TARGET_SHARE_PRIOR_NS) /
			 (ns + TARGET_SHARE_PRIOR_NS));
}

/* The usual share of a thread; one that has hardly been sampled has done little else than what it
 * did first. */
static int64_t compute_usual_target_share(const struct causal_sample_time_sums *thread)
{
	return causal_load_relaxed(&thread->ns) < KNOWN_TARGET_SHARE_LEAST_NS
		       ? 0
		       : compute_target_share(thread, 0);
}

/* A share of so many ticks, at the speedup, in ticks. */
static int64_t compute_delay_for_share(int64_t share, int64_t ticks, uint64_t speedup)
{
	return (int64_t)((__int128)share * ticks * (int64_t)speedup / 1000 >> SHARE_FRACTION_BITS);
}

static int64_t compute_delay_rate_for_share(int64_t share, uint64_t speedup)
{
	return share * (int64_t)speedup / 1000 *
	       (int64_t)(CAUSAL_RATE_FIXED_POINT_ONE >> SHARE_FRACTION_BITS);
}

/* What is left of the step when bursts that ended before `end` are not looked at. */
static void sum_time_of_longer_bursts(const struct causal_burst_statistics *burst, uint32_t step,
				      uint32_t end, struct causal_sample_time_sums *ret)
{
	*ret = (struct causal_sample_time_sums){0};
	for (uint32_t i = end; i < CAUSAL_STEPS; i++)
		causal_add_sample_to_time_sums(
			ret, causal_load_relaxed(&burst->seen[i][step].ns),
			causal_load_relaxed(&burst->seen[i][step].target_ns));
}

/* It has come to this step, or ends in it: what that says of the steps before it, whose shares are
 * brought up to date. */
static void compute_delay_rates_and_jumps_of_step(struct causal_burst_statistics *burst,
						  uint32_t here, int64_t *shares, uint64_t speedup)
{
	int64_t jump = 0, end_jump = 0, share;
	struct causal_sample_time_sums left;

	for (uint32_t step = 0; step < here; step++) {
		sum_time_of_longer_bursts(burst, step, here, &left);
		share = compute_target_share(&left, shares[step]);
		jump += compute_delay_for_share(share - shares[step],
						get_burst_step_length_ticks(step), speedup);
		shares[step] = share;
		share = compute_target_share(&burst->seen[here][step], shares[step]) - shares[step];
		end_jump +=
			compute_delay_for_share(share, get_burst_step_length_ticks(step), speedup);
	}
	share = compute_target_share(&burst->seen[here][here], shares[here]) - shares[here];
	causal_store_relaxed(&burst->delay_rates[here],
			     (uint64_t)compute_delay_rate_for_share(shares[here], speedup));
	atomic_store_explicit(&burst->delay_jumps[here], jump, memory_order_relaxed);
	atomic_store_explicit(&burst->delay_jumps_at_end[here], end_jump, memory_order_relaxed);
	atomic_store_explicit(&burst->delay_rates_at_end[here],
			      compute_delay_rate_for_share(share, speedup), memory_order_relaxed);
}

bool burst_update_delay_rates_if_stale(struct causal_burst_statistics *burst,
				       const struct causal_sample_time_sums *thread,
				       uint64_t speedup)
{
	struct causal_sample_time_sums left[CAUSAL_STEPS], all = {0};
	int64_t shares[CAUSAL_STEPS], usual;
	bool any = false;

	if (atomic_load_explicit(&burst->stale, memory_order_relaxed)) {
		atomic_store_explicit(&burst->stale, 0, memory_order_relaxed);
		for (uint32_t step = 0; step < CAUSAL_STEPS; step++) {
			sum_time_of_longer_bursts(burst, step, step, &left[step]);
			causal_add_sample_to_time_sums(&all, causal_load_relaxed(&left[step].ns),
						       causal_load_relaxed(&left[step].target_ns));
		}
		usual = compute_target_share(&all, compute_usual_target_share(thread));
		for (uint32_t step = 0; step < CAUSAL_STEPS; step++)
			shares[step] = compute_target_share(&left[step], usual);
		for (uint32_t step = 0; step < CAUSAL_STEPS; step++)
			compute_delay_rates_and_jumps_of_step(burst, step, shares, speedup);
	}
	for (uint32_t step = 0; step < CAUSAL_STEPS; step++)
		any |= causal_load_relaxed(&burst->delay_rates[step]) != 0;
	return any;
}

static int64_t compute_delay_correction_at_end(const struct causal_burst_statistics *burst,
					       uint64_t length)
{
	uint32_t end = burst_length_to_step(length);
	int64_t rate = atomic_load_explicit(&burst->delay_rates_at_end[end], memory_order_relaxed);

	return atomic_load_explicit(&burst->delay_jumps_at_end[end], memory_order_relaxed) +
	       (int64_t)((__int128)rate *
				 (int64_t)(length - get_shortest_burst_ticks_of_step(end)) >>
			 32);
}

int64_t burst_end_and_get_delay_correction(struct causal_thread *state, uint64_t length)
{
	uint64_t word = causal_load_relaxed(&state->word);
	int64_t more = 0;

	if (!(word & CAUSAL_ACTIVE))
		return 0;
	if (state->attribution.running)
		more = compute_delay_correction_at_end(burst_find_or_reset_statistics(state),
						       length);
	add_ended_burst_to_statistics(state, burst_length_to_step(length));
	return more;
}
