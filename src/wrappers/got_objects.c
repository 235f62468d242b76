/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See got_objects.h.
 */
#include "wrappers/got_objects.h"

#include <string.h>

#include "wrappers/got_names.h"

static struct got_record *place(const struct got_objects *objects, uint64_t base, uint64_t dynamic,
				uint32_t name_hash)
{
	uint32_t at = (uint32_t)(dynamic >> 4) * 2654435761u & objects->mask;

	while (objects->record[at].dynamic) {
		const struct got_record *record = &objects->record[at];
		if (record->dynamic == dynamic && record->base == base &&
		    record->name_hash == name_hash)
			break;
		at = (at + 1) & objects->mask;
	}
	return &objects->record[at];
}

static void move(struct got_objects *objects, struct got_record *from, uint32_t size)
{
	for (uint32_t i = 0; i < size; i++) {
		if (from[i].dynamic)
			*place(objects, from[i].base, from[i].dynamic, from[i].name_hash) = from[i];
	}
}

static bool grow(struct got_objects *objects)
{
	uint32_t before = objects->record ? objects->mask + 1 : 0, size = before ? before * 2 : 256;
	struct got_record *old = objects->record;
	struct got_record *record = got_allocate(size * sizeof(*record));
	struct got_record *spare = got_allocate(size * sizeof(*spare));

	if (!record || !spare)
		return false;
	objects->record = record;
	objects->spare = spare;
	objects->mask = size - 1;
	move(objects, old, before);
	return true;
}

struct got_record *got_objects_get(struct got_objects *objects, uint64_t base, uint64_t dynamic,
				   uint32_t name_hash)
{
	struct got_record *record;

	if ((!objects->record || objects->count > objects->mask / 2) && !grow(objects))
		return NULL;
	record = place(objects, base, dynamic, name_hash);
	if (!record->dynamic) {
		record->base = base;
		record->dynamic = dynamic;
		record->name_hash = name_hash;
		objects->count++;
	}
	return record;
}

struct got_record *got_objects_find(const struct got_objects *objects, uint64_t base,
				    uint64_t dynamic, uint32_t name_hash)
{
	struct got_record *record;

	if (!objects->record)
		return NULL;
	record = place(objects, base, dynamic, name_hash);
	return record->dynamic ? record : NULL;
}

void got_objects_sweep(struct got_objects *objects, uint32_t seen,
		       void (*gone)(const struct got_record *record))
{
	struct got_record *old = objects->record;
	uint32_t size = objects->record ? objects->mask + 1 : 0, kept = 0;

	for (uint32_t i = 0; i < size; i++) {
		if (!old[i].dynamic)
			continue;
		if (old[i].seen == seen) {
			kept++;
			continue;
		}
		gone(&old[i]);
		old[i].dynamic = 0;
	}
	if (kept == objects->count)
		return;
	memset(objects->spare, 0, size * sizeof(*old));
	objects->record = objects->spare;
	objects->spare = old;
	objects->count = kept;
	move(objects, old, size);
}
