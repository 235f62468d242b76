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

#include "binary/jit/private.h"

#define JITDUMP_MAGIC               0x4a695444u /* "JiTD" in the writer's byte order */
#define JITDUMP_VERSION             1u
#define JITDUMP_HEADER_BYTES        40u
#define JITDUMP_FLAG_ARCH_TIMESTAMP 1u /* flag: times are cycles, not CLOCK_MONOTONIC */
#define JITDUMP_RECORD_HEADER_BYTES 16u

enum jitdump_record_id {
	JITDUMP_CODE_LOAD = 0,
	JITDUMP_CODE_MOVE = 1,
	JITDUMP_CODE_DEBUG_INFO = 2,
	JITDUMP_CODE_CLOSE = 3
};

#define LOAD_RECORD_FIXED_BYTES  40u
#define MOVE_RECORD_FIXED_BYTES  48u
#define DEBUG_RECORD_FIXED_BYTES 16u
#define DEBUG_ENTRY_FIXED_BYTES                                                                    \
	16u /* of a debug entry: address (8), line (4), discriminator (4); a name follows */

/* Where the newest code with an index is; open addressing. */
struct jitdump_code_index_slot {
	uint64_t index;
	size_t entry; /* position in the map plus 1; 0: empty */
};

struct jitdump_parser {
	struct jitmap *map;
	struct jitdump_code_index_slot *slots;
	size_t slot_count, slot_capacity; /* capacity is a power of two */
	bool has_clock_timestamps;
	const uint8_t *debug_entries; /* of the last debug record, waiting for its code */
	size_t debug_entries_size;
	uint64_t debug_code_address;
};

static uint32_t read_u32(const uint8_t *at)
{
	uint32_t value;
	memcpy(&value, at, sizeof(value));
	return value;
}

static uint64_t read_u64(const uint8_t *at)
{
	uint64_t value;
	memcpy(&value, at, sizeof(value));
	return value;
}

static struct jitdump_code_index_slot *find_code_index_slot(const struct jitdump_parser *dump,
							    uint64_t index)
{
	size_t mask = dump->slot_capacity - 1;
	size_t at = (size_t)((index * 0x9e3779b97f4a7c15u) >> 32) & mask;
	while (dump->slots[at].entry && dump->slots[at].index != index)
		at = (at + 1) & mask;
	return &dump->slots[at];
}

static int grow_code_index_slots(struct jitdump_parser *dump)
{
	struct jitdump_parser larger = *dump;
	larger.slot_capacity = dump->slot_capacity ? dump->slot_capacity * 2 : 256;
	larger.slots = calloc(larger.slot_capacity, sizeof(*larger.slots));
	if (!larger.slots)
		return -ENOMEM;
	for (size_t i = 0; i < dump->slot_capacity; i++) {
		if (dump->slots[i].entry)
			*find_code_index_slot(&larger, dump->slots[i].index) = dump->slots[i];
	}
	free(dump->slots);
	*dump = larger;
	return 0;
}

static int append_code_to_jitmap(struct jitdump_parser *dump, const struct jitmap_entry *entry)
{
	if (entry->code.size == 0 || entry->code.size > UINT64_MAX - entry->code.address)
		return 0;
	int error = dump->slot_count * 2 >= dump->slot_capacity ? grow_code_index_slots(dump) : 0;
	if (!error)
		error = jitmap_append_entry(dump->map, entry);
	if (error)
		return error;
	struct jitdump_code_index_slot *slot = find_code_index_slot(dump, entry->index);
	dump->slot_count += slot->entry == 0;
	*slot = (struct jitdump_code_index_slot){entry->index, dump->map->count};
	return 0;
}

static int parse_load_record(struct jitdump_parser *dump, const uint8_t *payload, size_t size,
			     uint64_t time)
{
	if (size <= LOAD_RECORD_FIXED_BYTES ||
	    !memchr(payload + LOAD_RECORD_FIXED_BYTES, 0, size - LOAD_RECORD_FIXED_BYTES))
		return 0;
	struct jitmap_entry entry = {
		.code = {.address = read_u64(payload + 16),
			 .size = read_u64(payload + 24),
			 .from_ns = time,
			 .name = (const char *)payload + LOAD_RECORD_FIXED_BYTES},
		.index = read_u64(payload + 32),
	};
	if (dump->debug_entries && dump->debug_code_address == entry.code.address) {
		entry.debug_entries = dump->debug_entries;
		entry.debug_entries_size = dump->debug_entries_size;
	}
	dump->debug_entries = NULL;
	return append_code_to_jitmap(dump, &entry);
}

/* Code with that index now is at another address; what it was called stays. */
static int parse_move_record(struct jitdump_parser *dump, const uint8_t *payload, size_t size,
			     uint64_t time)
{
	if (size < MOVE_RECORD_FIXED_BYTES || dump->slot_capacity == 0)
		return 0;
	uint64_t from = read_u64(payload + 16), to = read_u64(payload + 24);
	const struct jitdump_code_index_slot *slot =
		find_code_index_slot(dump, read_u64(payload + 40));
	if (!slot->entry || dump->map->entries[slot->entry - 1].code.address != from)
		return 0;
	struct jitmap_entry entry = dump->map->entries[slot->entry - 1];
	entry.code.address = to;
	entry.code.size = read_u64(payload + 32);
	entry.code.from_ns = time;
	entry.moved += to - from;
	return append_code_to_jitmap(dump, &entry);
}

/* Bytes of the debug entries that are whole. */
static size_t count_whole_debug_entry_bytes(const uint8_t *lines, size_t size, uint64_t count)
{
	size_t at = 0;
	for (uint64_t i = 0; i < count && size - at > DEBUG_ENTRY_FIXED_BYTES; i++) {
		const uint8_t *name = lines + at + DEBUG_ENTRY_FIXED_BYTES;
		const uint8_t *end = memchr(name, 0, size - at - DEBUG_ENTRY_FIXED_BYTES);
		if (!end)
			break;
		at = (size_t)(end - lines) + 1;
	}
	return at;
}

static void parse_debug_record(struct jitdump_parser *dump, const uint8_t *payload, size_t size)
{
	dump->debug_entries = NULL;
	if (size < DEBUG_RECORD_FIXED_BYTES)
		return;
	dump->debug_code_address = read_u64(payload);
	dump->debug_entries = payload + DEBUG_RECORD_FIXED_BYTES;
	dump->debug_entries_size = count_whole_debug_entry_bytes(
		dump->debug_entries, size - DEBUG_RECORD_FIXED_BYTES, read_u64(payload + 8));
}

static int parse_dump_record(struct jitdump_parser *dump, const uint8_t *record, size_t size)
{
	const uint8_t *payload = record + JITDUMP_RECORD_HEADER_BYTES;
	uint64_t time = dump->has_clock_timestamps ? read_u64(record + 8) : 0;
	switch (read_u32(record)) {
	case JITDUMP_CODE_LOAD:
		return parse_load_record(dump, payload, size - JITDUMP_RECORD_HEADER_BYTES, time);
	case JITDUMP_CODE_MOVE:
		return parse_move_record(dump, payload, size - JITDUMP_RECORD_HEADER_BYTES, time);
	case JITDUMP_CODE_DEBUG_INFO:
		parse_debug_record(dump, payload, size - JITDUMP_RECORD_HEADER_BYTES);
		return 0;
	default:
		return 0;
	}
}

static int parse_dump_records(struct jitdump_parser *dump, const uint8_t *bytes, size_t size,
			      size_t at)
{
	while (size - at >= JITDUMP_RECORD_HEADER_BYTES) {
		size_t record = read_u32(bytes + at + 4);
		if (record < JITDUMP_RECORD_HEADER_BYTES || record > size - at ||
		    read_u32(bytes + at) == JITDUMP_CODE_CLOSE)
			break;
		int error = parse_dump_record(dump, bytes + at, record);
		if (error)
			return error;
		at += record;
	}
	return 0;
}

int jitmap_parse_jitdump(struct jitmap *map, const uint8_t *bytes, size_t size)
{
	if (size < JITDUMP_HEADER_BYTES || read_u32(bytes) != JITDUMP_MAGIC ||
	    read_u32(bytes + 4) != JITDUMP_VERSION)
		return -EINVAL;
	struct jitdump_parser dump = {
		.map = map,
		.has_clock_timestamps = !(read_u64(bytes + 32) & JITDUMP_FLAG_ARCH_TIMESTAMP)};
	size_t at = read_u32(bytes + 8);
	if (at < JITDUMP_HEADER_BYTES || at > size)
		return -EINVAL;
	int error = parse_dump_records(&dump, bytes, size, at);
	free(dump.slots);
	return error;
}

void jitmap_find_line(const struct jitmap_code *code, uint64_t address, const char **ret_file,
		      uint32_t *ret_line)
{
	const struct jitmap_entry *entry = (const struct jitmap_entry *)code; /* first member */
	const char *file = NULL;
	*ret_file = NULL;
	*ret_line = 0;
	address -= entry->moved;
	for (size_t at = 0; at < entry->debug_entries_size;) {
		const uint8_t *line = entry->debug_entries + at;
		const char *name = (const char *)line + DEBUG_ENTRY_FIXED_BYTES;
		if (strcmp(name, "\xff") != 0) /* which means: the same file */
			file = name;
		if (read_u64(line) > address)
			break;
		*ret_file = file;
		*ret_line = read_u32(line + 8);
		at += DEBUG_ENTRY_FIXED_BYTES + strlen(name) + 1;
	}
}
