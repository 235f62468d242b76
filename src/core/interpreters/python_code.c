/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Code objects of CPython: which they are, and their description in the spool when they are met
 * first. An address counts as a code object once its type has been checked by the kernel's reading;
 * what it points to is compared each time.
 */
#include "core/interpreters/python.h"

#include <string.h>

#include "common/fold_hash.h"
#include "common/leb128.h"

#define OBJECT_TYPE_OFFSET       8
#define OBJECT_SIZE_OFFSET       16
#define BYTES_DATA_OFFSET        32
#define TYPE_NAME_OFFSET         24
#define STRING_LENGTH_OFFSET     16
#define STRING_STATE_OFFSET      32
#define STRING_HEADER_BYTES      40
#define STRING_STATE_KIND(state) ((state) >> 2 & 7)
#define STRING_STATE_COMPACT     0x20u
#define STRING_STATE_ASCII       0x40u

#define NAME_BYTES_MAX        1000u
#define FILE_BYTES_MAX        3000u
#define RAW_CHARACTERS_OFFSET 8192u /* in the scratch: characters before they become UTF-8 */
#define RAW_CHARACTERS_BYTES  (INTERPRETED_SCRATCH_SIZE - RAW_CHARACTERS_OFFSET)
#define LINES_PART_BYTES      4096u
#define LINE_TABLE_BYTES_MAX  (1u << 20)

#define NAME_HASH_FACTOR 0xd6e8feb86659fd93ull

static _Atomic uint32_t named_count;
static _Atomic uint32_t named_maximum;

static uint32_t get_word32(const uint8_t *bytes, uint32_t offset)
{
	uint32_t word;

	__builtin_memcpy(&word, bytes + offset, sizeof(word));
	return word;
}

static uint64_t get_word64(const uint8_t *bytes, uint32_t offset)
{
	uint64_t word;

	__builtin_memcpy(&word, bytes + offset, sizeof(word));
	return word;
}

/* ---- text ---- */

/* The number of bytes written: 0 where there is no room. */
static uint32_t write_character_as_utf8(uint8_t *to, uint32_t room, uint32_t character)
{
	if (character >= 0xd800 && character < 0xe000)
		character = 0xfffd; /* half of a pair is no character (PEP 383 has them in names) */
	if (character < 0x80 && room >= 1) {
		to[0] = (uint8_t)character;
		return 1;
	}
	if (character >= 0x80 && character < 0x800 && room >= 2) {
		to[0] = (uint8_t)(0xc0 | character >> 6);
		to[1] = (uint8_t)(0x80 | (character & 63));
		return 2;
	}
	if (character >= 0x800 && character < 0x10000 && room >= 3) {
		to[0] = (uint8_t)(0xe0 | character >> 12);
		to[1] = (uint8_t)(0x80 | (character >> 6 & 63));
		to[2] = (uint8_t)(0x80 | (character & 63));
		return 3;
	}
	if (character >= 0x10000 && character < 0x110000 && room >= 4) {
		to[0] = (uint8_t)(0xf0 | character >> 18);
		to[1] = (uint8_t)(0x80 | (character >> 12 & 63));
		to[2] = (uint8_t)(0x80 | (character >> 6 & 63));
		to[3] = (uint8_t)(0x80 | (character & 63));
		return 4;
	}
	return 0;
}

static uint32_t get_character(const uint8_t *characters, uint32_t width, uint32_t index)
{
	if (width == 1)
		return characters[index];
	if (width == 2)
		return (uint32_t)characters[2 * index] | (uint32_t)characters[2 * index + 1] << 8;
	return get_word32(characters, 4 * index);
}

bool python_copy_text(const struct python_layout *layout, uint64_t object, uint8_t *scratch,
		      uint8_t *to, uint32_t most, uint32_t *ret_size)
{
	uint8_t head[STRING_HEADER_BYTES], *characters = scratch + RAW_CHARACTERS_OFFSET;
	uint32_t state, width, size = 0;
	uint64_t length;

	if (!memory_is_plausible_pointer(object) ||
	    !memory_read_checked(object, head, sizeof(head)))
		return false;
	length = get_word64(head, STRING_LENGTH_OFFSET);
	state = get_word32(head, STRING_STATE_OFFSET);
	width = STRING_STATE_KIND(state);
	if (!(state & STRING_STATE_COMPACT) || (width != 1 && width != 2 && width != 4) ||
	    length >> 40)
		return false;
	if (length > most)
		length = most;
	if (length > RAW_CHARACTERS_BYTES / width)
		length = RAW_CHARACTERS_BYTES / width;
	object += state & STRING_STATE_ASCII ? layout->string_ascii : layout->string_compact;
	if (length && !memory_read_checked(object, characters, length * width))
		return false;
	for (uint32_t i = 0; i < length; i++) {
		uint32_t written = write_character_as_utf8(to + size, most - size,
							   get_character(characters, width, i));

		if (!written)
			break;
		size += written;
	}
	*ret_size = size;
	return true;
}

/* ---- description ---- */

static bool write_record(const struct interpreted_walk *walk, enum spool_record kind,
			 const uint8_t *end)
{
	const struct interpreted_code_sink *sink = &walk->merge->sink;
	const uint8_t *payload = walk->merge->scratch;

	return sink->write_record(sink->context, kind, payload, (size_t)(end - payload));
}

/* In parts, since a chunk may have little room. */
static bool write_line_table(const struct interpreted_walk *walk, uint32_t id, uint64_t table,
			     uint32_t size)
{
	for (uint32_t at = 0; at < size;) {
		uint32_t part = size - at < LINES_PART_BYTES ? size - at : LINES_PART_BYTES;
		uint8_t *to = walk->merge->scratch;

		to = leb128_write(to, id);
		to = leb128_write(to, at);
		to = leb128_write(to, part);
		if (!memory_read_checked(table + BYTES_DATA_OFFSET + at, to, part) ||
		    !write_record(walk, SPOOL_RECORD_INTERPRETED_LINES, to + part))
			return false;
		at += part;
	}
	return true;
}

/* A length in two bytes of LEB128, so that what is counted can be written first. */
static uint8_t *write_string_behind_length(const struct interpreted_walk *walk, uint64_t object,
					   uint8_t *to, uint32_t most)
{
	uint32_t size;

	if (!python_copy_text(walk->interpreter->layout, object, walk->merge->scratch, to + 2, most,
			      &size))
		return NULL;
	to[0] = (uint8_t)(0x80 | (size & 127));
	to[1] = (uint8_t)(size >> 7);
	return to + 2 + size;
}

static uint32_t get_line_table_size(uint64_t table)
{
	uint64_t size;

	if (!memory_is_plausible_pointer(table) ||
	    !memory_read_checked(table + OBJECT_SIZE_OFFSET, &size, sizeof(size)) ||
	    size > LINE_TABLE_BYTES_MAX)
		return 0;
	return (uint32_t)size;
}

/* Code that the interpreter made for itself is in no file: 3.13 has such frames between those of
 * the program. */
static bool is_code_without_file(uint64_t file)
{
	uint64_t length;

	return memory_read_checked(file + STRING_LENGTH_OFFSET, &length, sizeof(length)) && !length;
}

static bool describe_code(const struct interpreted_walk *walk, const struct code_identity *code,
			  uint32_t id)
{
	const struct python_layout *layout = walk->interpreter->layout;
	uint8_t *to = walk->merge->scratch;
	uint32_t table_size = get_line_table_size(code->line_table);

	to = leb128_write(to, id);
	to = leb128_write(to, SPOOL_INTERPRETER_CPYTHON);
	to = leb128_write(to, table_size ? layout->line_table_kind : SPOOL_LINES_NONE);
	to = leb128_write(to, code->first_line);
	to = leb128_write(to, table_size);
	to = write_string_behind_length(walk, code->name, to, NAME_BYTES_MAX);
	if (to)
		to = write_string_behind_length(walk, code->file, to, FILE_BYTES_MAX);
	return to && write_record(walk, SPOOL_RECORD_INTERPRETED_CODE, to) &&
	       write_line_table(walk, id, code->line_table, table_size);
}

/* ---- identity ---- */

static void get_code_identity(const struct python_layout *layout, const uint8_t *bytes,
			      uint64_t address, struct code_identity *ret)
{
	ret->address = address;
	ret->name = get_word64(bytes, layout->code_name);
	ret->file = get_word64(bytes, layout->code_file);
	ret->line_table = get_word64(bytes, layout->code_line_table);
	ret->first_line = get_word32(bytes, layout->code_first_line);
}

/* The type whose name is "code" is asked for by name once, and known by its address after that. */
static bool is_code_type(struct interpreter *interpreter, uint64_t type)
{
	uint64_t known = atomic_load_explicit(&interpreter->code_type, memory_order_relaxed), name;
	char text[5];

	if (known)
		return type == known;
	if (!memory_is_plausible_pointer(type) ||
	    !memory_read_checked(type + TYPE_NAME_OFFSET, &name, sizeof(name)) ||
	    !memory_read_checked(name, text, sizeof(text)) || memcmp(text, "code", sizeof(text)))
		return false;
	atomic_store_explicit(&interpreter->code_type, type, memory_order_relaxed);
	return true;
}

static bool read_code_identity_checked(struct interpreted_walk *walk, uint64_t address,
				       struct code_identity *ret)
{
	const struct python_layout *layout = walk->interpreter->layout;
	uint8_t bytes[PYTHON_CODE_SIZE_MAX];
	uint32_t size = layout->code_line_table + 8u;

	if (!memory_is_plausible_pointer(address) ||
	    !interpreted_walk_read_checked(walk, address, bytes, size) ||
	    !is_code_type(walk->interpreter, get_word64(bytes, OBJECT_TYPE_OFFSET)))
		return false;
	get_code_identity(layout, bytes, address, ret);
	return true;
}

/* The hot path: of an object that is there, where a code object has been. What it points to tells
 * it from others that had its address. */
INTERPRETED_UNSANITIZED
static struct code_slot *find_slot_directly(const struct interpreter *interpreter, uint64_t address)
{
	const struct python_layout *layout = interpreter->layout;
	struct code_slot *slots = atomic_load_explicit(&code_table_slots, memory_order_acquire);
	const uint8_t *code = (const uint8_t *)(uintptr_t)address;
	uint32_t at = code_table_hash(address);

	for (uint32_t i = 0; slots && i < CODE_TABLE_PROBES; i++) {
		struct code_slot *slot = &slots[(at + i) & (CODE_TABLE_SLOTS - 1)];
		uint64_t known = atomic_load_explicit(&slot->address, memory_order_acquire);

		if (!known)
			return NULL;
		if (known == address &&
		    *(const uint64_t *)(const void *)(code + OBJECT_TYPE_OFFSET) ==
			    atomic_load_explicit(&interpreter->code_type, memory_order_relaxed) &&
		    slot->name == *(const uint64_t *)(const void *)(code + layout->code_name) &&
		    slot->file == *(const uint64_t *)(const void *)(code + layout->code_file) &&
		    slot->line_table ==
			    *(const uint64_t *)(const void *)(code + layout->code_line_table) &&
		    slot->first_line ==
			    *(const uint32_t *)(const void *)(code + layout->code_first_line))
			return slot;
	}
	return NULL;
}

static bool is_described(const struct code_slot *slot)
{
	return atomic_load_explicit(&slot->described_in_run, memory_order_relaxed) ==
	       atomic_load_explicit(&code_table_run, memory_order_relaxed);
}

static bool describe_name(const struct interpreted_walk *walk, uint32_t id, const uint8_t *name,
			  uint32_t size)
{
	uint8_t *to = walk->merge->scratch;

	to = leb128_write(to, id);
	to = leb128_write(to, SPOOL_INTERPRETER_CPYTHON);
	to = leb128_write(to, SPOOL_LINES_NONE);
	to = leb128_write(to, 0); /* line, bytes of the line table */
	to = leb128_write(to, 0);
	to = leb128_write(to, size);
	memmove(to, name, size);
	to = leb128_write(to + size, 0); /* no file */
	return write_record(walk, SPOOL_RECORD_INTERPRETED_CODE, to);
}

static uint32_t describe_slot_once(struct interpreted_walk *walk, const struct code_identity *code,
				   struct code_slot *slot)
{
	uint32_t id = code_slot_get_id(code_table_slots, slot);

	if (is_described(slot))
		return slot->is_hidden ? PYTHON_CODE_HIDDEN : id;
	slot->is_hidden = is_code_without_file(code->file);
	if (slot->is_hidden || (!walk->cannot_describe && describe_code(walk, code, id))) {
		atomic_store_explicit(&slot->described_in_run,
				      atomic_load_explicit(&code_table_run, memory_order_relaxed),
				      memory_order_relaxed);
	} else {
		walk->cannot_describe = true;
		walk->merge->lost_code++;
	}
	return slot->is_hidden ? PYTHON_CODE_HIDDEN : id;
}

/* Of code that is not known by its address, or not described in this run. */
static __attribute__((noinline)) uint32_t find_id_checked(struct interpreted_walk *walk,
							  uint64_t address)
{
	struct code_identity code;
	struct code_slot *slot;

	if (!read_code_identity_checked(walk, address, &code))
		return 0;
	slot = code_table_find_or_add(&code);
	if (!slot) {
		walk->merge->lost_code++;
		return CODE_TABLE_SLOTS + 1; /* a frame of code that is not described */
	}
	return describe_slot_once(walk, &code, slot);
}

uint32_t python_code_find_id(struct interpreted_walk *walk, uint64_t address)
{
	struct code_slot *slot = NULL;

	if (walk->trusts_memory && memory_is_plausible_pointer(address))
		slot = find_slot_directly(walk->interpreter, address);
	else if (!walk->trusts_memory && !walk->stack->tid && !walk->stack->is_not_walked)
		slot = code_table_find_address(address); /* what has been there last */
	if (!slot || !is_described(slot))
		return find_id_checked(walk, address);
	return slot->is_hidden ? PYTHON_CODE_HIDDEN : code_slot_get_id(code_table_slots, slot);
}

/* ---- names without code ---- */

/* Two hashes of the text stand for it. The first is in the place of an address, and odd, so that it
 * is none. */
static void get_name_identity(const uint8_t *name, uint32_t size, struct code_identity *ret)
{
	uint64_t first = size, second = ~(uint64_t)size;

	for (uint32_t at = 0; at < size; at += 8) {
		uint64_t word = 0;

		memcpy(&word, name + at, size - at < 8 ? size - at : 8);
		first = fold_hash_add(first, word);
		second = fold_hash_multiply(second ^ word, NAME_HASH_FACTOR);
	}
	*ret = (struct code_identity){.address = first | 3, .name = second};
}

/* Many tasks have names of their own: they must not fill the table. */
static struct code_slot *find_or_add_name(const struct code_identity *identity)
{
	struct code_slot *slot = code_table_find_address(identity->address);

	if (slot && code_slot_is(slot, identity))
		return slot;
	if (atomic_fetch_add_explicit(&named_count, 1, memory_order_relaxed) >=
	    atomic_load_explicit(&named_maximum, memory_order_relaxed)) {
		atomic_fetch_sub_explicit(&named_count, 1, memory_order_relaxed);
		return NULL;
	}
	return code_table_find_or_add(identity);
}

uint32_t python_code_find_named_id(struct interpreted_walk *walk, const uint8_t *name,
				   uint32_t size)
{
	static const char more[] = "[tasks beyond SAMPLING_TASK_NAMES]";
	struct code_identity identity;
	struct code_slot *slot;

	if (!atomic_load_explicit(&named_maximum, memory_order_relaxed))
		return 0;
	get_name_identity(name, size, &identity);
	slot = find_or_add_name(&identity);
	if (!slot) {
		name = (const uint8_t *)more;
		size = sizeof(more) - 1;
		get_name_identity(name, size, &identity);
		slot = code_table_find_or_add(&identity);
	}
	if (!slot)
		return 0;
	if (!is_described(slot)) {
		if (walk->cannot_describe ||
		    !describe_name(walk, code_slot_get_id(code_table_slots, slot), name, size))
			return 0;
		atomic_store_explicit(&slot->described_in_run,
				      atomic_load_explicit(&code_table_run, memory_order_relaxed),
				      memory_order_relaxed);
	}
	return code_slot_get_id(code_table_slots, slot);
}

void python_code_reset_named(void)
{
	atomic_store_explicit(&named_count, 0, memory_order_relaxed);
}

void interpreters_set_task_name_maximum(uint32_t maximum)
{
	atomic_store_explicit(&named_maximum, maximum, memory_order_relaxed);
}
