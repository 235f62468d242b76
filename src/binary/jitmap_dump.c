/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Jitdump, version 1 (tools/perf/Documentation/jitdump-specification.txt of Linux).
 *
 *   file   := magic version total_size elf_mach pad pid (4 bytes each) timestamp flags (8 each)
 *             record*
 *   record := id total_size (4 each) timestamp (8) payload
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "binary/jitmap_internal.h"

#define DUMP_MAGIC          0x4a695444u /* "JiTD" in the writer's byte order */
#define DUMP_VERSION        1u
#define DUMP_HEADER         40u
#define DUMP_ARCH_TIMESTAMP 1u /* flag: times are cycles, not CLOCK_MONOTONIC */
#define RECORD_HEADER       16u

enum record_id { RECORD_LOAD = 0, RECORD_MOVE = 1, RECORD_DEBUG_INFO = 2, RECORD_CLOSE = 3 };

#define LOAD_FIXED  40u
#define MOVE_FIXED  48u
#define DEBUG_FIXED 16u
#define LINE_FIXED                                                                                 \
	16u /* of a debug entry: address (8), line (4), discriminator (4); a name follows */

/* Where the newest code with an index is; open addressing. */
struct code_slot {
	uint64_t index;
	size_t entry; /* position in the map plus 1; 0: empty */
};

struct dump {
	struct jitmap *map;
	struct code_slot *slots;
	size_t slot_count, slot_capacity; /* capacity is a power of two */
	bool timed;
	const uint8_t *lines; /* of the last debug record, waiting for its code */
	size_t line_size;
	uint64_t line_address;
};

static uint32_t read32(const uint8_t *at)
{
	uint32_t value;
	memcpy(&value, at, sizeof(value));
	return value;
}

static uint64_t read64(const uint8_t *at)
{
	uint64_t value;
	memcpy(&value, at, sizeof(value));
	return value;
}

static struct code_slot *slot_of(const struct dump *dump, uint64_t index)
{
	size_t mask = dump->slot_capacity - 1;
	size_t at = (size_t)((index * 0x9e3779b97f4a7c15u) >> 32) & mask;
	while (dump->slots[at].entry && dump->slots[at].index != index)
		at = (at + 1) & mask;
	return &dump->slots[at];
}

static int slots_grow(struct dump *dump)
{
	struct dump larger = *dump;
	larger.slot_capacity = dump->slot_capacity ? dump->slot_capacity * 2 : 256;
	larger.slots = calloc(larger.slot_capacity, sizeof(*larger.slots));
	if (!larger.slots)
		return -ENOMEM;
	for (size_t i = 0; i < dump->slot_capacity; i++) {
		if (dump->slots[i].entry)
			*slot_of(&larger, dump->slots[i].index) = dump->slots[i];
	}
	free(dump->slots);
	*dump = larger;
	return 0;
}

static int code_append(struct dump *dump, const struct jitmap_entry *entry)
{
	if (entry->code.size == 0 || entry->code.size > UINT64_MAX - entry->code.address)
		return 0;
	int error = dump->slot_count * 2 >= dump->slot_capacity ? slots_grow(dump) : 0;
	if (!error)
		error = jitmap_append(dump->map, entry);
	if (error)
		return error;
	struct code_slot *slot = slot_of(dump, entry->index);
	dump->slot_count += slot->entry == 0;
	*slot = (struct code_slot){entry->index, dump->map->count};
	return 0;
}

static int parse_load(struct dump *dump, const uint8_t *payload, size_t size, uint64_t time)
{
	if (size <= LOAD_FIXED || !memchr(payload + LOAD_FIXED, 0, size - LOAD_FIXED))
		return 0;
	struct jitmap_entry entry = {
		.code = {.address = read64(payload + 16),
			 .size = read64(payload + 24),
			 .from_ns = time,
			 .name = (const char *)payload + LOAD_FIXED},
		.index = read64(payload + 32),
	};
	if (dump->lines && dump->line_address == entry.code.address) {
		entry.lines = dump->lines;
		entry.line_size = dump->line_size;
	}
	dump->lines = NULL;
	return code_append(dump, &entry);
}

/* Code with that index now is at another address; what it was called stays. */
static int parse_move(struct dump *dump, const uint8_t *payload, size_t size, uint64_t time)
{
	if (size < MOVE_FIXED || dump->slot_capacity == 0)
		return 0;
	uint64_t from = read64(payload + 16), to = read64(payload + 24);
	const struct code_slot *slot = slot_of(dump, read64(payload + 40));
	if (!slot->entry || dump->map->entries[slot->entry - 1].code.address != from)
		return 0;
	struct jitmap_entry entry = dump->map->entries[slot->entry - 1];
	entry.code.address = to;
	entry.code.size = read64(payload + 32);
	entry.code.from_ns = time;
	entry.moved += to - from;
	return code_append(dump, &entry);
}

/* Bytes of the debug entries that are whole. */
static size_t lines_size(const uint8_t *lines, size_t size, uint64_t count)
{
	size_t at = 0;
	for (uint64_t i = 0; i < count && size - at > LINE_FIXED; i++) {
		const uint8_t *name = lines + at + LINE_FIXED;
		const uint8_t *end = memchr(name, 0, size - at - LINE_FIXED);
		if (!end)
			break;
		at = (size_t)(end - lines) + 1;
	}
	return at;
}

static void parse_debug(struct dump *dump, const uint8_t *payload, size_t size)
{
	dump->lines = NULL;
	if (size < DEBUG_FIXED)
		return;
	dump->line_address = read64(payload);
	dump->lines = payload + DEBUG_FIXED;
	dump->line_size = lines_size(dump->lines, size - DEBUG_FIXED, read64(payload + 8));
}

static int parse_record(struct dump *dump, const uint8_t *record, size_t size)
{
	const uint8_t *payload = record + RECORD_HEADER;
	uint64_t time = dump->timed ? read64(record + 8) : 0;
	switch (read32(record)) {
	case RECORD_LOAD:
		return parse_load(dump, payload, size - RECORD_HEADER, time);
	case RECORD_MOVE:
		return parse_move(dump, payload, size - RECORD_HEADER, time);
	case RECORD_DEBUG_INFO:
		parse_debug(dump, payload, size - RECORD_HEADER);
		return 0;
	default:
		return 0;
	}
}

static int parse_records(struct dump *dump, const uint8_t *bytes, size_t size, size_t at)
{
	while (size - at >= RECORD_HEADER) {
		size_t record = read32(bytes + at + 4);
		if (record < RECORD_HEADER || record > size - at ||
		    read32(bytes + at) == RECORD_CLOSE)
			break;
		int error = parse_record(dump, bytes + at, record);
		if (error)
			return error;
		at += record;
	}
	return 0;
}

int jitmap_parse_jitdump(struct jitmap *map, const uint8_t *bytes, size_t size)
{
	if (size < DUMP_HEADER || read32(bytes) != DUMP_MAGIC || read32(bytes + 4) != DUMP_VERSION)
		return -EINVAL;
	struct dump dump = {.map = map, .timed = !(read64(bytes + 32) & DUMP_ARCH_TIMESTAMP)};
	size_t at = read32(bytes + 8);
	if (at < DUMP_HEADER || at > size)
		return -EINVAL;
	int error = parse_records(&dump, bytes, size, at);
	free(dump.slots);
	return error;
}

void jitmap_line(const struct jitmap_code *code, uint64_t address, const char **ret_file,
		 uint32_t *ret_line)
{
	const struct jitmap_entry *entry = (const struct jitmap_entry *)code; /* first member */
	const char *file = NULL;
	*ret_file = NULL;
	*ret_line = 0;
	address -= entry->moved;
	for (size_t at = 0; at < entry->line_size;) {
		const uint8_t *line = entry->lines + at;
		const char *name = (const char *)line + LINE_FIXED;
		if (strcmp(name, "\xff") != 0) /* which means: the same file */
			file = name;
		if (read64(line) > address)
			break;
		*ret_file = file;
		*ret_line = read32(line + 8);
		at += LINE_FIXED + strlen(name) + 1;
	}
}
