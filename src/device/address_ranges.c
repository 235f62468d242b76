/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See address_ranges.h.
 */
#include "device/address_ranges.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 64u

/* The first one that ends past the address. */
static size_t find_first_ending_after(const struct address_ranges *ranges, uintptr_t address)
{
	size_t low = 0, high = ranges->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (ranges->sorted[middle].begin + ranges->sorted[middle].bytes > address)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static void remove_ranges_at(struct address_ranges *ranges, size_t at, size_t count)
{
	if (count == 0)
		return;
	memmove(&ranges->sorted[at], &ranges->sorted[at + count],
		(ranges->count - at - count) * sizeof(*ranges->sorted));
	ranges->count -= count;
}

static bool make_room(struct address_ranges *ranges)
{
	size_t room = ranges->room != 0 ? 2 * ranges->room : FIRST_ROOM;
	struct address_range *grown;

	if (ranges->count < ranges->room)
		return true;
	grown = reallocarray(ranges->sorted, room, sizeof(*grown));
	if (grown == NULL)
		return false;
	ranges->sorted = grown;
	ranges->room = room;
	return true;
}

bool address_ranges_add(struct address_ranges *ranges, const void *begin, size_t bytes)
{
	uintptr_t address = (uintptr_t)begin;
	size_t at, overlapped = 0;
	bool has_room;

	if (begin == NULL || bytes == 0 || bytes > UINTPTR_MAX - address)
		return false;
	pthread_mutex_lock(&ranges->mutex);
	at = find_first_ending_after(ranges, address);
	while (at + overlapped < ranges->count &&
	       ranges->sorted[at + overlapped].begin < address + bytes)
		overlapped++;
	remove_ranges_at(ranges, at, overlapped);
	has_room = make_room(ranges);
	if (has_room) {
		memmove(&ranges->sorted[at + 1], &ranges->sorted[at],
			(ranges->count - at) * sizeof(*ranges->sorted));
		ranges->sorted[at] = (struct address_range){address, bytes};
		ranges->count++;
	}
	pthread_mutex_unlock(&ranges->mutex);
	return has_room;
}

size_t address_ranges_remove(struct address_ranges *ranges, const void *begin)
{
	size_t at, bytes = 0;

	pthread_mutex_lock(&ranges->mutex);
	at = find_first_ending_after(ranges, (uintptr_t)begin);
	if (at < ranges->count && ranges->sorted[at].begin == (uintptr_t)begin) {
		bytes = ranges->sorted[at].bytes;
		remove_ranges_at(ranges, at, 1);
	}
	pthread_mutex_unlock(&ranges->mutex);
	return bytes;
}

bool address_ranges_contain(struct address_ranges *ranges, const void *address)
{
	bool contain;
	size_t at;

	pthread_mutex_lock(&ranges->mutex);
	at = find_first_ending_after(ranges, (uintptr_t)address);
	contain = at < ranges->count && ranges->sorted[at].begin <= (uintptr_t)address;
	pthread_mutex_unlock(&ranges->mutex);
	return contain;
}

void address_ranges_reset_forked(struct address_ranges *ranges)
{
	pthread_mutex_init(&ranges->mutex, NULL);
	ranges->count = 0;
}
