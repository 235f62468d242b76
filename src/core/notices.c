/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See notices.h.
 */
#include "core/notices.h"

#include <stddef.h>

#define SLOTS 32

enum slot_state { SLOT_FREE, SLOT_WRITING, SLOT_READY };

static struct slot {
	_Atomic uint32_t state;
	enum spool_notice kind;
	uint64_t argument;
	char text[NOTICES_TEXT];
} slots[SLOTS];

static void fill(struct slot *slot, const char *text, const char *more)
{
	size_t length = 0;

	for (; *text && length + 1 < NOTICES_TEXT; text++)
		slot->text[length++] = *text;
	for (; more && *more && length + 1 < NOTICES_TEXT; more++)
		slot->text[length++] = *more;
	slot->text[length] = 0;
}

void notices_post(struct background *background, enum spool_notice kind, uint64_t argument,
		  const char *text, const char *more)
{
	for (size_t i = 0; i < SLOTS; i++) {
		uint32_t expected = SLOT_FREE;

		if (!atomic_compare_exchange_strong(&slots[i].state, &expected, SLOT_WRITING))
			continue;
		slots[i].kind = kind;
		slots[i].argument = argument;
		fill(&slots[i], text, more);
		atomic_store_explicit(&slots[i].state, SLOT_READY, memory_order_release);
		background_wake(background);
		return;
	}
}

void notices_write(struct track *track)
{
	for (size_t i = 0; i < SLOTS; i++) {
		if (atomic_load_explicit(&slots[i].state, memory_order_acquire) != SLOT_READY)
			continue;
		track_notice(track, slots[i].kind, slots[i].argument, slots[i].text);
		atomic_store_explicit(&slots[i].state, SLOT_FREE, memory_order_release);
	}
}

void notices_forget(void)
{
	for (size_t i = 0; i < SLOTS; i++)
		atomic_store_explicit(&slots[i].state, SLOT_FREE, memory_order_relaxed);
}
