/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See user_events.h.
 */
#include "device/opencl/user_events.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define TABLE_SLOTS 1024u
#define PROBES      32u
#define SHARED      USER_EVENTS_KNOWN /* the bit of all further ones */

/* Bits are given again; those that stand somewhere since before are told by the time: a count of
 * the events that were created. */
struct waits {
	uint64_t bits, time;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint64_t pending;
static struct {
	cl_event event;
	uint64_t created;
} known[USER_EVENTS_KNOWN + 1];
static uint64_t shared_count, created_count;
static struct {
	const void *key;
	struct waits waits;
} table[TABLE_SLOTS];
static struct waits without_place;
static char device_keys[256]; /* their addresses stand for devices */

bool user_events_pending(void)
{
	return atomic_load_explicit(&pending, memory_order_acquire) != 0;
}

static uint64_t live(const struct waits *waits)
{
	uint64_t bits = waits->bits & atomic_load_explicit(&pending, memory_order_relaxed);

	for (uint64_t left = bits; left != 0; left &= left - 1) {
		unsigned bit = (unsigned)__builtin_ctzll(left);

		if (known[bit].created > waits->time)
			bits &= ~(UINT64_C(1) << bit);
	}
	return bits;
}

static struct waits *place_of(const void *key, bool for_new)
{
	uint32_t first = (uint32_t)(((uintptr_t)key * UINT64_C(0x9e3779b97f4a7c15)) >> 40);

	for (uint32_t i = 0; i < PROBES; i++) {
		if (table[(first + i) % TABLE_SLOTS].key == key)
			return &table[(first + i) % TABLE_SLOTS].waits;
	}
	for (uint32_t i = 0; for_new && i < PROBES; i++) {
		uint32_t slot = (first + i) % TABLE_SLOTS;

		if (live(&table[slot].waits) != 0)
			continue;
		table[slot].key = key;
		return &table[slot].waits;
	}
	return NULL;
}

static uint64_t bits_of(const void *key)
{
	const struct waits *waits = place_of(key, false);

	return (waits != NULL ? live(waits) : 0) | live(&without_place);
}

static void set_bits(const void *key, uint64_t bits)
{
	struct waits *waits = place_of(key, bits != 0);

	if (waits == NULL && bits == 0)
		return;
	if (waits == NULL) {
		waits = &without_place;
		bits |= live(waits);
	}
	*waits = (struct waits){bits, created_count};
}

static unsigned bit_of(cl_event event)
{
	uint64_t bits = atomic_load_explicit(&pending, memory_order_relaxed);

	for (unsigned i = 0; i < USER_EVENTS_KNOWN; i++) {
		if ((bits >> i & 1) != 0 && known[i].event == event)
			return i;
	}
	return USER_EVENTS_KNOWN;
}

static void forget(unsigned bit)
{
	atomic_fetch_and(&pending, ~(UINT64_C(1) << bit));
}

void user_events_created(cl_event event)
{
	uint64_t bits;
	unsigned bit;

	pthread_mutex_lock(&lock);
	bit = bit_of(event); /* of one that was released and never set */
	bits = atomic_load_explicit(&pending, memory_order_relaxed);
	if (bit == SHARED && (~bits & ~(UINT64_C(1) << SHARED)) != 0)
		bit = (unsigned)__builtin_ctzll(~bits);
	created_count++;
	if (bit == SHARED)
		shared_count++;
	if (bit != SHARED || shared_count == 1)
		known[bit].created = created_count;
	known[bit].event = event;
	set_bits(event, UINT64_C(1) << bit);
	atomic_fetch_or(&pending, UINT64_C(1) << bit);
	pthread_mutex_unlock(&lock);
}

void user_events_set(cl_event event)
{
	unsigned bit;

	if (!user_events_pending())
		return;
	pthread_mutex_lock(&lock);
	bit = bit_of(event);
	if (bit != SHARED)
		forget(bit);
	else if (shared_count != 0 && --shared_count == 0)
		forget(SHARED);
	pthread_mutex_unlock(&lock);
}

void user_events_enqueueing(cl_command_queue queue, cl_uint count, const cl_event *waits_for)
{
	uint64_t bits;

	pthread_mutex_lock(&lock);
	bits = bits_of(queue);
	for (cl_uint i = 0; waits_for != NULL && i < count; i++)
		bits |= bits_of(waits_for[i]);
	set_bits(queue, bits);
	pthread_mutex_unlock(&lock);
}

void user_events_enqueued(cl_command_queue queue, cl_event made)
{
	unsigned bit;

	pthread_mutex_lock(&lock);
	/* Whatever had this address before is gone. */
	bit = bit_of(made);
	if (bit != SHARED)
		forget(bit);
	set_bits(made, bits_of(queue));
	pthread_mutex_unlock(&lock);
}

void user_events_kernel(cl_command_queue queue, unsigned device_number)
{
	const void *key = &device_keys[device_number % sizeof(device_keys)];

	pthread_mutex_lock(&lock);
	set_bits(key, bits_of(key) | bits_of(queue));
	pthread_mutex_unlock(&lock);
}

bool user_events_hold(cl_command_queue queue, unsigned device_number)
{
	const void *key = &device_keys[device_number % sizeof(device_keys)];
	uint64_t bits;

	if (!user_events_pending())
		return false;
	pthread_mutex_lock(&lock);
	bits = bits_of(queue) | bits_of(key);
	pthread_mutex_unlock(&lock);
	return bits != 0;
}

void user_events_forked(void)
{
	pthread_mutex_init(&lock, NULL);
	atomic_store(&pending, 0);
	shared_count = 0;
	memset(table, 0, sizeof(table));
	without_place = (struct waits){0};
}
