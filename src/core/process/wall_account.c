/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See wall_account.h.
 */
#include "core/process/wall_account.h"

#include <stddef.h>

/* Waits below this are not worth another reading. */
#define NEGLIGIBLE_WAIT_NS   50000u
#define MEAN_SMOOTHING_WAITS 8u /* a mean follows this many waits */

void wall_account_init(struct wall_account *account, uint64_t now_ns, uint64_t cpu_ns, bool new)
{
	*account = (struct wall_account){.last_ns = now_ns,
					 .cpu_ns = cpu_ns,
					 .state = WALL_STATE_RUNNING,
					 .has_queue_counts = new,
					 .is_block_count_known = new,
					 .new = new};
}

uint64_t wall_account_add_elapsed_time(struct wall_account *account, uint64_t now_ns,
				       uint64_t cpu_ns)
{
	uint64_t passed = now_ns > account->last_ns ? now_ns - account->last_ns : 0;
	uint64_t ran = cpu_ns > account->cpu_ns ? cpu_ns - account->cpu_ns : 0;

	account->unattributed_off_cpu_ns += (int64_t)passed - (int64_t)ran;
	/* A wait that is under way cannot have begun before the thread last ran. */
	account->off_cpu_since_last_run_ns = ran ? 0 : account->off_cpu_since_last_run_ns;
	account->off_cpu_since_last_run_ns += passed > ran ? passed - ran : 0;
	account->last_ns += passed;
	account->cpu_ns += ran;
	return ran;
}

static uint64_t get_open_time_ns_or_zero(const struct wall_account *account)
{
	return account->unattributed_off_cpu_ns > 0 ? (uint64_t)account->unattributed_off_cpu_ns
						    : 0;
}

void wall_account_count_open_time_as_blocked(struct wall_account *account)
{
	account->blocked_ns += get_open_time_ns_or_zero(account);
	account->unattributed_off_cpu_ns -= (int64_t)get_open_time_ns_or_zero(account);
}

/* How long one wait takes, of late. */
static void update_mean_wait(uint64_t *mean_ns, uint64_t total_ns, uint64_t count)
{
	uint64_t one = total_ns / count;

	*mean_ns = *mean_ns
			   ? *mean_ns - *mean_ns / MEAN_SMOOTHING_WAITS + one / MEAN_SMOOTHING_WAITS
			   : one;
	*mean_ns += !*mean_ns;
}

/* Moves what the kernel counted since the last settlement from `open` to `queued`; returns how
 * often the thread arrived. */
static uint64_t move_open_to_queued_time(struct wall_account *account,
					 const struct task_run_queue_counts *queue)
{
	uint64_t queued = queue->queued_ns - account->queue.queued_ns;
	uint64_t arrivals = queue->arrivals - account->queue.arrivals;
	bool known = account->has_queue_counts;

	account->queue = *queue;
	account->has_queue_counts = true;
	if (!known)
		return account->arrivals_since_block_count = 0;
	if (account->new &&queued > get_open_time_ns_or_zero(account))
		queued = get_open_time_ns_or_zero(account);
	account->new = false;
	account->unattributed_off_cpu_ns -= (int64_t)queued;
	account->undivided_queued_ns += queued;
	account->arrivals_since_block_count += arrivals;
	return arrivals;
}

/* All of the time is what was seen last; nothing better is known. */
static void assign_open_time_by_state(struct wall_account *account, enum wall_thread_state state)
{
	if (state == WALL_STATE_RUNNING)
		return; /* the next look tells */
	if (state == WALL_STATE_BLOCKED)
		account->blocked_ns += get_open_time_ns_or_zero(account);
	else if (account->state == WALL_STATE_BLOCKED)
		account->queued_after_wakeup_ns += get_open_time_ns_or_zero(account);
	else
		account->queued_after_preemption_ns += get_open_time_ns_or_zero(account);
	if (account->unattributed_off_cpu_ns > 0)
		account->unattributed_off_cpu_ns = 0;
}

bool wall_account_assign_open_time_at_state(struct wall_account *account,
					    enum wall_thread_state state,
					    const struct task_run_queue_counts *queue)
{
	bool was_blocked = account->state == WALL_STATE_BLOCKED;
	uint64_t arrivals, over;

	if (!queue) {
		assign_open_time_by_state(account, state);
		account->state = state;
		return false;
	}
	arrivals = move_open_to_queued_time(account, queue);
	account->state = state;
	over = get_open_time_ns_or_zero(account);
	if (state ==
	    WALL_STATE_QUEUED) /* a wait is under way, which the kernel has not counted yet */
		over -= account->off_cpu_since_last_run_ns < over
				? account->off_cpu_since_last_run_ns
				: over;
	account->undivided_off_cpu_ns += over;
	account->unattributed_off_cpu_ns -= (int64_t)over;
	if (was_blocked && arrivals <= 1 &&
	    account->undivided_queued_ns + account->undivided_off_cpu_ns > 0) {
		if (arrivals)
			update_mean_wait(&account->mean_wait_after_wakeup_ns,
					 account->undivided_queued_ns, 1);
		account->queued_after_wakeup_ns += account->undivided_queued_ns;
		account->blocked_ns += account->undivided_off_cpu_ns;
		account->divided_wakeup_count += arrivals;
		account->undivided_queued_ns = account->undivided_off_cpu_ns = 0;
		return false;
	}
	return account->undivided_queued_ns + account->undivided_off_cpu_ns >= NEGLIGIBLE_WAIT_NS;
}

/* How many of the arrivals not divided yet were wake-ups. */
static uint64_t count_wakeups_of_undivided_arrivals(const struct wall_account *account,
						    uint64_t blocks)
{
	int64_t wakeups =
		(int64_t)(blocks - account->last_known_block_count) +
		account->was_blocked_at_block_count - (account->state == WALL_STATE_BLOCKED) -
		(int64_t)account->divided_wakeup_count + (int64_t)account->pending_wakeup_count;

	return wakeups > 0 ? (uint64_t)wakeups : 0;
}

/* Nobody knows how often it blocked: it did if it was seen so. */
static void assign_queued_time_by_last_state(struct wall_account *account)
{
	if (account->state == WALL_STATE_BLOCKED)
		account->queued_after_wakeup_ns += account->undivided_queued_ns;
	else
		account->queued_after_preemption_ns += account->undivided_queued_ns;
	account->blocked_ns += account->undivided_off_cpu_ns;
}

/* The part of what was queued that followed wake-ups. Waits after a wake-up may be much shorter
 * than those after a pre-emption, or longer: what each took where there was nothing else tells. */
static uint64_t compute_queued_ns_after_wakeups(struct wall_account *account, uint64_t wakeups,
						uint64_t preemptions)
{
	double woken, preempted;

	if (!preemptions) {
		if (wakeups)
			update_mean_wait(&account->mean_wait_after_wakeup_ns,
					 account->undivided_queued_ns, wakeups);
		return wakeups ? account->undivided_queued_ns : 0;
	}
	if (!wakeups) {
		update_mean_wait(&account->mean_wait_after_preemption_ns,
				 account->undivided_queued_ns, preemptions);
		return 0;
	}
	woken = (double)wakeups;
	preempted = (double)preemptions;
	if (account->mean_wait_after_wakeup_ns && account->mean_wait_after_preemption_ns) {
		woken *= (double)account->mean_wait_after_wakeup_ns;
		preempted *= (double)account->mean_wait_after_preemption_ns;
	}
	return (uint64_t)((double)account->undivided_queued_ns * (woken / (woken + preempted)));
}

static void divide_waits_by_block_count(struct wall_account *account, uint64_t blocks)
{
	uint64_t wakeups = count_wakeups_of_undivided_arrivals(account, blocks),
		 arrivals = account->arrivals_since_block_count, woken;
	bool has_blocked =
		blocks != account->last_known_block_count || account->was_blocked_at_block_count;

	arrivals -=
		account->divided_wakeup_count < arrivals ? account->divided_wakeup_count : arrivals;
	account->pending_wakeup_count = wakeups > arrivals ? wakeups - arrivals : 0;
	wakeups -= account->pending_wakeup_count;
	woken = compute_queued_ns_after_wakeups(account, wakeups, arrivals - wakeups);
	account->queued_after_wakeup_ns += woken;
	account->queued_after_preemption_ns += account->undivided_queued_ns - woken;
	/* Who did not block was kept from a processor all the same: by the machine below
	 * (hypervisors, interrupts), which the run queue does not count. */
	if (has_blocked || account->may_have_counted_open_block)
		account->blocked_ns += account->undivided_off_cpu_ns;
	else
		account->queued_after_preemption_ns += account->undivided_off_cpu_ns;
	/* The time of a block that was counted may still be open. */
	account->may_have_counted_open_block = has_blocked && account->state == WALL_STATE_QUEUED;
}

void wall_account_divide_waits_by_cause(struct wall_account *account, const uint64_t *blocks)
{
	if (blocks && account->is_block_count_known)
		divide_waits_by_block_count(account, *blocks);
	else
		assign_queued_time_by_last_state(account);
	account->undivided_queued_ns = account->undivided_off_cpu_ns = 0;
	account->arrivals_since_block_count = account->divided_wakeup_count = 0;
	account->was_blocked_at_block_count = account->state == WALL_STATE_BLOCKED;
	account->is_block_count_known = blocks != NULL;
	if (blocks)
		account->last_known_block_count = *blocks;
}

uint64_t wall_account_assign_open_time_at_end(struct wall_account *account, uint64_t blocks)
{
	uint64_t rest = get_open_time_ns_or_zero(account);
	bool has_blocked =
		!account->is_block_count_known || blocks != account->last_known_block_count ||
		account->was_blocked_at_block_count || account->may_have_counted_open_block;

	if (account->undivided_queued_ns || account->undivided_off_cpu_ns)
		assign_queued_time_by_last_state(account);
	account->undivided_queued_ns = account->undivided_off_cpu_ns = 0;
	account->unattributed_off_cpu_ns = 0;
	if (account->state == WALL_STATE_BLOCKED)
		account->blocked_ns += rest;
	else if (account->state == WALL_STATE_QUEUED || !has_blocked)
		account->queued_after_preemption_ns += rest;
	else
		return rest;
	return 0;
}
