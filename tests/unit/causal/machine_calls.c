/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What programs on a machine call: functions of the C library, with what wrappers do around them.
 */
#include <string.h>

#include "causal/causal.h"
#include "machine.h"

static void queue_in(struct machine_queue *queue)
{
	queue->threads[queue->count++] = machine_self();
	machine_block();
}

static void queue_wake(struct machine_queue *queue)
{
	uint32_t first = queue->threads[0];

	if (!queue->count)
		return;
	memmove(queue->threads, queue->threads + 1, --queue->count * sizeof(*queue->threads));
	machine_unblock(first);
}

static void take(struct machine_lock *lock)
{
	while (lock->taken)
		queue_in(&lock->waiting);
	lock->taken = true;
}

static void leave(struct machine_lock *lock)
{
	lock->taken = false;
	queue_wake(&lock->waiting);
}

void machine_lock(struct machine_lock *lock, uint64_t site)
{
	struct causal_wait_state wait;

	if (causal_is_active())
		causal_pay_delay_at_lock_if_due(site);
	if (!lock->taken) {
		lock->taken = true;
		return;
	}
	causal_apply_delay_and_begin_wait(&wait);
	take(lock);
	causal_end_wait_on_object_at_site(&wait, lock, site);
}

void machine_unlock(struct machine_lock *lock, uint64_t site)
{
	if (causal_is_active()) {
		causal_pay_delay_at_lock_if_due(site);
		if (lock->waiting.count)
			causal_record_wakeup_in_process(lock);
	}
	leave(lock);
}

void machine_wait(struct machine_condition *condition, struct machine_lock *lock, uint64_t site)
{
	struct causal_wait_state wait;

	causal_apply_delay_and_begin_wait(&wait);
	leave(lock);
	queue_in(&condition->waiting);
	take(lock);
	causal_end_wait_at_site(&wait, CAUSAL_WAKER_SESSION, site);
}

void machine_signal(struct machine_condition *condition, uint64_t site)
{
	causal_pay_delay_at_site(site);
	queue_wake(&condition->waiting);
}

void machine_broadcast(struct machine_condition *condition, uint64_t site)
{
	causal_pay_delay_at_site(site);
	while (condition->waiting.count)
		queue_wake(&condition->waiting);
}

void machine_meet(struct machine_barrier *barrier, uint32_t threads, uint64_t site)
{
	struct causal_wait_state wait;

	causal_apply_delay_and_begin_wait(&wait);
	if (++barrier->arrived == threads) {
		barrier->arrived = 0;
		while (barrier->waiting.count)
			queue_wake(&barrier->waiting);
	} else {
		queue_in(&barrier->waiting);
	}
	causal_end_wait_at_site(&wait, CAUSAL_WAKER_SESSION, site);
}

static enum causal_waker_kind marked(uint64_t hash, const struct causal_wait_state *wait)
{
	return causal_wakeup_was_published_since(hash, wait->ticks) ? CAUSAL_WAKER_SESSION
								    : CAUSAL_WAKER_OUTSIDE;
}

void machine_send(struct machine_channel *channel, uint64_t site)
{
	struct causal_wait_state wait;

	causal_apply_delay_and_begin_wait(&wait);
	causal_publish_wakeup_to_session((uint64_t)channel / 16);
	channel->count++;
	queue_wake(&channel->waiting);
	causal_end_wait_at_site(&wait, CAUSAL_WAKER_OUTSIDE, site);
}

void machine_receive(struct machine_channel *channel, uint64_t site)
{
	struct causal_wait_state wait;

	causal_apply_delay_and_begin_wait(&wait);
	while (!channel->count)
		queue_in(&channel->waiting);
	channel->count--;
	causal_end_wait_at_site(&wait, marked((uint64_t)channel / 16, &wait), site);
}

/* All threads that poll are the first one's queue. */
uint32_t machine_poll(struct machine_channel *channels, uint32_t count, uint64_t site)
{
	struct causal_wait_state wait;
	uint32_t found = count;

	causal_apply_delay_and_begin_wait(&wait);
	while (found == count) {
		for (found = 0; found < count && !channels[found].count;)
			found++;
		if (found < count)
			break;
		for (uint32_t i = 0; i < count; i++)
			channels[i].waiting.threads[channels[i].waiting.count++] = machine_self();
		machine_block();
		for (uint32_t i = 0; i < count; i++)
			channels[i].waiting.count = 0;
	}
	causal_end_wait_at_site(&wait, marked((uint64_t)&channels[found] / 16, &wait), site);
	return found;
}
