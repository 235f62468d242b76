/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See objects.h.
 */
#include "wrappers/got/objects.h"

#include <string.h>

#include "wrappers/got/names.h"

static struct got_object_record *find_record_hash_slot(const struct got_object_table *objects,
						       uint64_t base, uint64_t dynamic,
						       uint32_t name_hash)
{
	uint32_t at = (uint32_t)(dynamic >> 4) * 2654435761u & objects->mask;

	while (objects->record[at].dynamic_section_address) {
		const struct got_object_record *record = &objects->record[at];
		if (record->dynamic_section_address == dynamic && record->base == base &&
		    record->name_hash == name_hash)
			break;
		at = (at + 1) & objects->mask;
	}
	return &objects->record[at];
}

static void rehash_records(struct got_object_table *objects, struct got_object_record *from,
			   uint32_t size)
{
	for (uint32_t i = 0; i < size; i++) {
		if (from[i].dynamic_section_address)
			*find_record_hash_slot(objects, from[i].base,
					       from[i].dynamic_section_address, from[i].name_hash) =
				from[i];
	}
}

static bool grow_record_table(struct got_object_table *objects)
{
	uint32_t before = objects->record ? objects->mask + 1 : 0, size = before ? before * 2 : 256;
	struct got_object_record *old = objects->record;
	struct got_object_record *record = got_allocate_permanent(size * sizeof(*record));
	struct got_object_record *spare = got_allocate_permanent(size * sizeof(*spare));

	if (!record || !spare)
		return false;
	objects->record = record;
	objects->spare = spare;
	objects->mask = size - 1;
	rehash_records(objects, old, before);
	return true;
}

struct got_object_record *got_objects_find_or_add_record(struct got_object_table *objects,
							 uint64_t base, uint64_t dynamic,
							 uint32_t name_hash)
{
	struct got_object_record *record;

	if ((!objects->record || objects->count > objects->mask / 2) && !grow_record_table(objects))
		return NULL;
	record = find_record_hash_slot(objects, base, dynamic, name_hash);
	if (!record->dynamic_section_address) {
		record->base = base;
		record->dynamic_section_address = dynamic;
		record->name_hash = name_hash;
		objects->count++;
	}
	return record;
}

struct got_object_record *got_objects_find_record(const struct got_object_table *objects,
						  uint64_t base, uint64_t dynamic,
						  uint32_t name_hash)
{
	struct got_object_record *record;

	if (!objects->record)
		return NULL;
	record = find_record_hash_slot(objects, base, dynamic, name_hash);
	return record->dynamic_section_address ? record : NULL;
}

void got_objects_remove_unseen(struct got_object_table *objects, uint32_t seen,
			       void (*gone)(const struct got_object_record *record))
{
	struct got_object_record *old = objects->record;
	uint32_t size = objects->record ? objects->mask + 1 : 0, kept = 0;

	for (uint32_t i = 0; i < size; i++) {
		if (!old[i].dynamic_section_address)
			continue;
		if (old[i].seen == seen) {
			kept++;
			continue;
		}
		gone(&old[i]);
		old[i].dynamic_section_address = 0;
	}
	if (kept == objects->count)
		return;
	memset(objects->spare, 0, size * sizeof(*old));
	objects->record = objects->spare;
	objects->spare = old;
	objects->count = kept;
	rehash_records(objects, old, size);
}
