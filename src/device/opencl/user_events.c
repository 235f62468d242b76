/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See user_events.h.
 */
#include "device/opencl/user_events.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define AWAITED_BITS_TABLE_SLOT_COUNT 1024u
#define AWAITED_BITS_TABLE_PROBES_MAX 32u
#define SHARED_EVENT_BIT_NUMBER       USER_EVENTS_TRACKED_MAX /* the bit of all further ones */

/* Bits are given again; those that stand somewhere since before are found out by the time: a count
 * of the events that were created. */
struct awaited_event_bit_set {
	uint64_t bits, time;
};

static pthread_mutex_t user_events_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint64_t unset_user_event_bits;
static struct {
	cl_event event;
	uint64_t creation_number;
} unset_user_event_table_by_bit[USER_EVENTS_TRACKED_MAX + 1];
static uint64_t shared_bit_event_count, created_event_count;
static struct {
	const void *key;
	struct awaited_event_bit_set waits;
} awaited_bits_by_key[AWAITED_BITS_TABLE_SLOT_COUNT];
static struct awaited_event_bit_set overflow_awaited_bits;
static char device_key_placeholder_bytes[256]; /* their addresses stand for devices */

bool user_events_are_pending(void)
{
	return atomic_load_explicit(&unset_user_event_bits, memory_order_acquire) != 0;
}

static uint64_t filter_awaited_bits_still_unset(const struct awaited_event_bit_set *waits)
{
	uint64_t bits =
		waits->bits & atomic_load_explicit(&unset_user_event_bits, memory_order_relaxed);

	for (uint64_t left = bits; left != 0; left &= left - 1) {
		unsigned bit = (unsigned)__builtin_ctzll(left);

		if (unset_user_event_table_by_bit[bit].creation_number > waits->time)
			bits &= ~(UINT64_C(1) << bit);
	}
	return bits;
}

static struct awaited_event_bit_set *find_or_add_awaited_bits(const void *key, bool for_new)
{
	uint32_t first = (uint32_t)(((uintptr_t)key * UINT64_C(0x9e3779b97f4a7c15)) >> 40);

	for (uint32_t i = 0; i < AWAITED_BITS_TABLE_PROBES_MAX; i++) {
		if (awaited_bits_by_key[(first + i) % AWAITED_BITS_TABLE_SLOT_COUNT].key == key)
			return &awaited_bits_by_key[(first + i) % AWAITED_BITS_TABLE_SLOT_COUNT]
					.waits;
	}
	for (uint32_t i = 0; for_new && i < AWAITED_BITS_TABLE_PROBES_MAX; i++) {
		uint32_t slot = (first + i) % AWAITED_BITS_TABLE_SLOT_COUNT;

		if (filter_awaited_bits_still_unset(&awaited_bits_by_key[slot].waits) != 0)
			continue;
		awaited_bits_by_key[slot].key = key;
		return &awaited_bits_by_key[slot].waits;
	}
	return NULL;
}

static uint64_t get_awaited_bits_of_key(const void *key)
{
	const struct awaited_event_bit_set *waits = find_or_add_awaited_bits(key, false);

	return (waits != NULL ? filter_awaited_bits_still_unset(waits) : 0) |
	       filter_awaited_bits_still_unset(&overflow_awaited_bits);
}

static void set_awaited_bits_of_key(const void *key, uint64_t bits)
{
	struct awaited_event_bit_set *waits = find_or_add_awaited_bits(key, bits != 0);

	if (waits == NULL && bits == 0)
		return;
	if (waits == NULL) {
		waits = &overflow_awaited_bits;
		bits |= filter_awaited_bits_still_unset(waits);
	}
	*waits = (struct awaited_event_bit_set){bits, created_event_count};
}

static unsigned find_bit_of_unset_event(cl_event event)
{
	uint64_t bits = atomic_load_explicit(&unset_user_event_bits, memory_order_relaxed);

	for (unsigned i = 0; i < USER_EVENTS_TRACKED_MAX; i++) {
		if ((bits >> i & 1) != 0 && unset_user_event_table_by_bit[i].event == event)
			return i;
	}
	return USER_EVENTS_TRACKED_MAX;
}

static void clear_event_bit(unsigned bit)
{
	atomic_fetch_and(&unset_user_event_bits, ~(UINT64_C(1) << bit));
}

void user_events_add(cl_event event)
{
	uint64_t bits;
	unsigned bit;

	pthread_mutex_lock(&user_events_lock);
	bit = find_bit_of_unset_event(event); /* of one that was released and never set */
	bits = atomic_load_explicit(&unset_user_event_bits, memory_order_relaxed);
	if (bit == SHARED_EVENT_BIT_NUMBER &&
	    (~bits & ~(UINT64_C(1) << SHARED_EVENT_BIT_NUMBER)) != 0)
		bit = (unsigned)__builtin_ctzll(~bits);
	created_event_count++;
	if (bit == SHARED_EVENT_BIT_NUMBER)
		shared_bit_event_count++;
	if (bit != SHARED_EVENT_BIT_NUMBER || shared_bit_event_count == 1)
		unset_user_event_table_by_bit[bit].creation_number = created_event_count;
	unset_user_event_table_by_bit[bit].event = event;
	set_awaited_bits_of_key(event, UINT64_C(1) << bit);
	atomic_fetch_or(&unset_user_event_bits, UINT64_C(1) << bit);
	pthread_mutex_unlock(&user_events_lock);
}

void user_events_remove(cl_event event)
{
	unsigned bit;

	if (!user_events_are_pending())
		return;
	pthread_mutex_lock(&user_events_lock);
	bit = find_bit_of_unset_event(event);
	if (bit != SHARED_EVENT_BIT_NUMBER)
		clear_event_bit(bit);
	else if (shared_bit_event_count != 0 && --shared_bit_event_count == 0)
		clear_event_bit(SHARED_EVENT_BIT_NUMBER);
	pthread_mutex_unlock(&user_events_lock);
}

void user_events_add_queue_waits(cl_command_queue queue, cl_uint count, const cl_event *waits_for)
{
	uint64_t bits;

	pthread_mutex_lock(&user_events_lock);
	bits = get_awaited_bits_of_key(queue);
	for (cl_uint i = 0; waits_for != NULL && i < count; i++)
		bits |= get_awaited_bits_of_key(waits_for[i]);
	set_awaited_bits_of_key(queue, bits);
	pthread_mutex_unlock(&user_events_lock);
}

void user_events_copy_queue_waits_to_event(cl_command_queue queue, cl_event made)
{
	unsigned bit;

	pthread_mutex_lock(&user_events_lock);
	/* Whatever had this address before is gone. */
	bit = find_bit_of_unset_event(made);
	if (bit != SHARED_EVENT_BIT_NUMBER)
		clear_event_bit(bit);
	set_awaited_bits_of_key(made, get_awaited_bits_of_key(queue));
	pthread_mutex_unlock(&user_events_lock);
}

void user_events_add_queue_waits_to_device(cl_command_queue queue, unsigned device_number)
{
	const void *key =
		&device_key_placeholder_bytes[device_number % sizeof(device_key_placeholder_bytes)];

	pthread_mutex_lock(&user_events_lock);
	set_awaited_bits_of_key(key, get_awaited_bits_of_key(key) | get_awaited_bits_of_key(queue));
	pthread_mutex_unlock(&user_events_lock);
}

bool user_events_would_block_kernel(cl_command_queue queue, unsigned device_number)
{
	const void *key =
		&device_key_placeholder_bytes[device_number % sizeof(device_key_placeholder_bytes)];
	uint64_t bits;

	if (!user_events_are_pending())
		return false;
	pthread_mutex_lock(&user_events_lock);
	bits = get_awaited_bits_of_key(queue) | get_awaited_bits_of_key(key);
	pthread_mutex_unlock(&user_events_lock);
	return bits != 0;
}

void user_events_reset_forked(void)
{
	pthread_mutex_init(&user_events_lock, NULL);
	atomic_store(&unset_user_event_bits, 0);
	shared_bit_event_count = 0;
	memset(awaited_bits_by_key, 0, sizeof(awaited_bits_by_key));
	overflow_awaited_bits = (struct awaited_event_bit_set){0};
}
