/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See notices.h.
 */
#include "core/notices.h"

#include <stddef.h>

#define NOTICE_SLOT_COUNT 32

enum notice_slot_state { NOTICE_SLOT_FREE, NOTICE_SLOT_WRITING, NOTICE_SLOT_READY };

static struct notice_slot {
	_Atomic uint32_t state;
	enum spool_notice kind;
	uint64_t argument;
	char text[NOTICES_TEXT_SIZE];
} notice_slots[NOTICE_SLOT_COUNT];

static void fill_notice_slot_text(struct notice_slot *slot, const char *text, const char *more)
{
	size_t length = 0;

	for (; *text && length + 1 < NOTICES_TEXT_SIZE; text++)
		slot->text[length++] = *text;
	for (; more && *more && length + 1 < NOTICES_TEXT_SIZE; more++)
		slot->text[length++] = *more;
	slot->text[length] = 0;
}

void notices_post(struct background_state *background, enum spool_notice kind, uint64_t argument,
		  const char *text, const char *more)
{
	for (size_t i = 0; i < NOTICE_SLOT_COUNT; i++) {
		uint32_t expected = NOTICE_SLOT_FREE;

		if (!atomic_compare_exchange_strong(&notice_slots[i].state, &expected,
						    NOTICE_SLOT_WRITING))
			continue;
		notice_slots[i].kind = kind;
		notice_slots[i].argument = argument;
		fill_notice_slot_text(&notice_slots[i], text, more);
		atomic_store_explicit(&notice_slots[i].state, NOTICE_SLOT_READY,
				      memory_order_release);
		background_wake(background);
		return;
	}
}

void notices_write_posted(struct process_records *track)
{
	for (size_t i = 0; i < NOTICE_SLOT_COUNT; i++) {
		if (atomic_load_explicit(&notice_slots[i].state, memory_order_acquire) !=
		    NOTICE_SLOT_READY)
			continue;
		process_record_write_notice(track, notice_slots[i].kind, notice_slots[i].argument,
					    notice_slots[i].text);
		atomic_store_explicit(&notice_slots[i].state, NOTICE_SLOT_FREE,
				      memory_order_release);
	}
}

void notices_discard_posted(void)
{
	for (size_t i = 0; i < NOTICE_SLOT_COUNT; i++)
		atomic_store_explicit(&notice_slots[i].state, NOTICE_SLOT_FREE,
				      memory_order_relaxed);
}
