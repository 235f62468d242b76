/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See names.h. The table is open addressing over ids; entries and slots lie in reserved address
 * space, so that nothing ever moves. Entries are complete before their slot is stored (release).
 */
#include "regions/names.h"

#include <string.h>
#include <sys/mman.h>

#include "common/leb128.h"
#include "common/settings_value.h"
#include "common/syscalls.h"
#include "core/notices.h"
#include "core/spool/chunk_wait.h"
#include "core/threads.h"
#include "regions/stream.h"

#define NAME_HASH_SLOTS      (2 * NAMES_MAX)
#define NAME_LENGTH_MAX      4096u
#define STRING_BLOCK_SIZE    65536u
#define NAME_RECORD_SIZE_MAX (NAME_LENGTH_MAX + 512)
#define FNV_BASE             14695981039346656037ull
#define FNV_PRIME            1099511628211ull
#define PAGE_BYTES           NAMES_PAGE_SIZE

struct interned_name {
	const char *category, *text; /* text NULL: a function */
	uint64_t address, hash;
	uint32_t flags;       /* REGION_IS_* */
	uint32_t function_id; /* of an instrumented function; 0: none */
	_Atomic uint32_t is_throttled;
	_Atomic uint64_t calls, ticks;
};

static struct {
	struct interned_name *names; /* by number - 1 */
	_Atomic uint32_t *slots;     /* number; 0: free */
	_Atomic uint32_t count;
	_Atomic uint32_t lock;
	char *string_block; /* strings go here */
	uint32_t string_block_used_bytes;
	struct spool_chunk *chunk;            /* of definitions; under the lock */
	const void *background_writer_thread; /* the thread that makes chunks itself, while it
						 writes here */
	bool is_category_off[REGION_CATEGORY_COUNT];
	const struct region_options *options;
} name_table;

static void *reserve_name_memory(size_t size)
{
	void *memory;

	if (is_calling_thread_in_own_filter())
		return NULL;
	memory = sys_mmap(NULL, size, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return sys_mmap_failed(memory) ? NULL : memory;
}

static bool category_is_off(const char *category)
{
	const struct region_options *options = name_table.options;

	if (options->enabled_categories && *options->enabled_categories)
		return !region_list_has_word(options->enabled_categories, category);
	return region_list_has_word(options->disabled_categories, category);
}

int names_init(const struct region_options *options)
{
	name_table.options = options;
	for (int i = 0; i < REGION_CATEGORY_COUNT; i++)
		name_table.is_category_off[i] = category_is_off(region_categories[i].name);
	if (name_table.names)
		return 0;
	name_table.slots = reserve_name_memory(NAME_HASH_SLOTS * sizeof(*name_table.slots));
	name_table.names = reserve_name_memory(NAMES_MAX * sizeof(*name_table.names));
	return name_table.slots && name_table.names ? 0 : -12 /* ENOMEM */;
}

uint32_t names_get_disabled_category_bits(void)
{
	uint32_t off = 0;

	for (int i = 0; i < REGION_CATEGORY_COUNT; i++)
		off |= (uint32_t)name_table.is_category_off[i] << i;
	return off;
}

/* ---- definitions in the spool ---- */

static bool ensure_names_chunk_room(uint32_t size)
{
	struct spool_writer *spool = kymo_regions.spool;
	struct spool_chunk *chunk = name_table.chunk;

	if (chunk && spool_chunk_get_capacity(chunk) - chunk->header->committed >= size)
		return true;
	if (chunk)
		spool_chunk_retire(spool, chunk);
	name_table.chunk = spool_chunk_take(spool, SPOOL_CHUNK_CLASS_SMALL);
	if (!name_table.chunk && name_table.background_writer_thread == &kymo_region_own)
		name_table.chunk = chunk_refill_and_take(spool);
	else if (!name_table.chunk)
		name_table.chunk =
			spool_wait_for_chunk(spool, SPOOL_CHUNK_CLASS_SMALL, CHUNK_WAIT_IN_CALL);
	if (!name_table.chunk)
		return false;
	spool_chunk_exclude_from_ring(name_table.chunk);
	return spool_chunk_get_capacity(name_table.chunk) >= size;
}

static bool write_record_in_name_chunk(enum spool_record kind, const uint8_t *payload,
				       uint32_t size)
{
	uint8_t *at;

	if (!kymo_regions.spool->header || !ensure_names_chunk_room(size + 1 + LEB128_BYTES_MAX)) {
		if (kymo_regions.spool->header)
			spool_count_missing_chunk_loss(kymo_regions.spool);
		return false;
	}
	at = spool_chunk_get_data(name_table.chunk) + name_table.chunk->header->committed;
	*at++ = (uint8_t)kind;
	at = leb128_write(at, size);
	memcpy(at, payload, size);
	at += size;
	atomic_store_explicit((_Atomic uint32_t *)&name_table.chunk->header->committed,
			      (uint32_t)(at - spool_chunk_get_data(name_table.chunk)),
			      memory_order_release);
	return true;
}

static uint8_t *encode_text_with_length(uint8_t *at, const char *text)
{
	size_t length = strlen(text);

	at = leb128_write(at, length);
	memcpy(at, text, length);
	return at + length;
}

static bool write_name_definition(uint32_t number)
{
	const struct interned_name *name = &name_table.names[number - 1];
	uint8_t record[NAME_RECORD_SIZE_MAX], *at = leb128_write(record, number);

	at = leb128_write(at, name->text ? SPOOL_REGION_NAMED : SPOOL_REGION_FUNCTION);
	at = encode_text_with_length(at, name->category);
	at = name->text ? encode_text_with_length(at, name->text)
			: write_fixed64_little_endian(at, name->address);
	if (name->function_id)
		at = leb128_write(at, name->function_id);
	return write_record_in_name_chunk(SPOOL_RECORD_REGION, record, (uint32_t)(at - record));
}

bool names_write_record_in_name_chunk(enum spool_record kind, const uint8_t *payload, uint32_t size)
{
	bool written;

	if (!region_acquire_lock_if_not_holder(&name_table.lock))
		return false;
	written = write_record_in_name_chunk(kind, payload, size);
	region_release_lock(&name_table.lock);
	return written;
}

void names_write_all_definitions(void)
{
	if (!region_acquire_lock_if_not_holder(&name_table.lock))
		return;
	for (uint32_t i = 1; i <= name_table.count; i++)
		write_name_definition(i);
	region_release_lock(&name_table.lock);
}

void names_set_background_is_writing(bool on_background)
{
	name_table.background_writer_thread = on_background ? &kymo_region_own : NULL;
}

void names_forget_chunk_and_free_lock(void)
{
	name_table.chunk = NULL;
	name_table.lock = 0;
}

/* ---- interning ---- */

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size)
{
	const uint8_t *at = bytes;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ at[i]) * FNV_PRIME;
	return hash;
}

static size_t bounded_text_length(const char *text, size_t most)
{
	size_t length = 0;

	while (length < most && text[length])
		length++;
	return length;
}

static const char *copy_text_to_block(const char *text, size_t length)
{
	char *copy;

	if (!name_table.string_block ||
	    name_table.string_block_used_bytes + length + 1 + 8 > STRING_BLOCK_SIZE) {
		name_table.string_block = reserve_name_memory(STRING_BLOCK_SIZE);
		name_table.string_block_used_bytes = 0;
	}
	if (!name_table.string_block)
		return NULL;
	copy = name_table.string_block + name_table.string_block_used_bytes;
	memcpy(copy, text, length);
	copy[length] = 0;
	name_table.string_block_used_bytes += (uint32_t)length + 1;
	return copy;
}

struct name_key {
	const char *category, *text;
	size_t category_length, text_length;
	uint64_t address, hash;
	uint32_t function_id;
};

static bool text_equals_interned(const char *kept, const char *text, size_t length)
{
	return !strncmp(kept, text, length) && !kept[length];
}

static bool name_matches_key(const struct interned_name *name, const struct name_key *key)
{
	if (name->hash != key->hash ||
	    !text_equals_interned(name->category, key->category, key->category_length))
		return false;
	if (!name->text || !key->text)
		return !name->text && !key->text && name->address == key->address &&
		       name->function_id == key->function_id;
	return text_equals_interned(name->text, key->text, key->text_length);
}

/* The number of the key, or 0 with the free slot where it belongs. */
static uint32_t find_name_number_or_free_slot(const struct name_key *key, uint32_t *ret_slot)
{
	uint32_t slot = (uint32_t)(key->hash ^ key->hash >> 32) & (NAME_HASH_SLOTS - 1), number;

	for (;; slot = (slot + 1) & (NAME_HASH_SLOTS - 1)) {
		number = atomic_load_explicit(&name_table.slots[slot], memory_order_acquire);
		if (!number || name_matches_key(&name_table.names[number - 1], key))
			break;
	}
	*ret_slot = slot;
	return number;
}

static uint32_t find_or_add_name(const struct name_key *key, uint32_t flags)
{
	uint32_t slot, number = find_name_number_or_free_slot(key, &slot);
	struct interned_name *name;

	if (number || name_table.count == NAMES_MAX)
		return number;
	name = &name_table.names[name_table.count];
	name->category = copy_text_to_block(key->category, key->category_length);
	name->text = key->text ? copy_text_to_block(key->text, key->text_length) : NULL;
	name->address = key->address;
	name->function_id = key->function_id;
	name->hash = key->hash;
	name->flags = flags;
	if (!name->category || (key->text && !name->text))
		return 0;
	number = name_table.count + 1;
	/* Without a file (a child that has just been forked) it is defined with all others. */
	if (kymo_regions.spool->header && !write_name_definition(number))
		return 0; /* no room now; perhaps later */
	name_table.count = number;
	atomic_store_explicit(&name_table.slots[slot], number, memory_order_release);
	return number;
}

static region_id intern_name_by_key(const struct name_key *key, uint32_t flags)
{
	uint32_t slot, number;

	if (!name_table.names)
		return 0;
	number = find_name_number_or_free_slot(key, &slot);
	if (!number && region_acquire_lock_if_not_holder(&name_table.lock)) {
		number = find_or_add_name(key, flags);
		region_release_lock(&name_table.lock);
	}
	if (!number) {
		spool_count_loss(kymo_regions.spool, SPOOL_LOSS_REGION_NAMES);
		return 0;
	}
	return number | name_table.names[number - 1].flags;
}

static region_id intern_category_and_text(const char *category, const char *text, uint32_t flags)
{
	struct name_key key = {.category = category, .text = text};

	key.category_length = bounded_text_length(category, 255);
	key.text_length = bounded_text_length(text, NAME_LENGTH_MAX);
	key.hash = hash_bytes(FNV_BASE, category, key.category_length);
	key.hash = hash_bytes(key.hash * FNV_PRIME, text, key.text_length);
	if (region_list_has_word(name_table.options->selected, text))
		flags |= REGION_ID_IS_THREAD_SELECTOR_BIT;
	return intern_name_by_key(&key, flags);
}

region_id region_find_or_add_name(enum region_category category, const char *name)
{
	if (!name_table.names || name_table.is_category_off[category] || !name)
		return 0;
	return intern_category_and_text(region_categories[category].name, name,
					category == REGION_USER ? REGION_ID_USER_REGION_BIT : 0);
}

region_id region_find_or_add_name_in(const char *category, const char *name)
{
	if (!category || !*category || !strcmp(category, region_categories[REGION_USER].name))
		return region_find_or_add_name(REGION_USER, name);
	if (!name_table.names || category_is_off(category) || !name)
		return 0;
	return intern_category_and_text(category, name, REGION_ID_USER_REGION_BIT);
}

bool names_are_locked_by_this_thread(void)
{
	return region_lock_is_held_by_this_thread(&name_table.lock);
}

region_id names_find_or_add_if_unlocked(const char *category, const char *name)
{
	return names_are_locked_by_this_thread() ? 0 : region_find_or_add_name_in(category, name);
}

static region_id find_or_add_function(enum region_category category, uint64_t address,
				      uint32_t function_id)
{
	const char *name = region_categories[category].name;
	struct name_key key = {.category = name,
			       .category_length = bounded_text_length(name, 255),
			       .address = address,
			       .function_id = function_id};

	if (!name_table.names || name_table.is_category_off[category])
		return 0;
	key.hash = hash_bytes(FNV_BASE, &address, sizeof(address));
	key.hash = hash_bytes(key.hash, &function_id, sizeof(function_id));
	return intern_name_by_key(&key, 0);
}

region_id region_find_or_add_function(enum region_category category, uint64_t address)
{
	return find_or_add_function(category, address, 0);
}

region_id region_find_or_add_instrumented_function(uint64_t address, uint32_t function_id)
{
	return find_or_add_function(REGION_INSTRUMENTED, address, function_id);
}

/* Both hold the same bytes up to and with the zero. Words are compared where reading past the end
 * of `text` stays in its page. */
__attribute__((no_sanitize("address"))) bool
name_copy_equals_text(const char *copy, const char *text, uint32_t length)
{
	uint64_t a, b;
	uint32_t i = 0;

	if (((uintptr_t)text & (PAGE_BYTES - 1)) + length + 8 > PAGE_BYTES)
		return !strcmp(copy, text);
	for (; i + 8 <= length; i += 8) {
		__builtin_memcpy(&a, copy + i, 8);
		__builtin_memcpy(&b, text + i, 8);
		if (a != b)
			return false;
	}
	__builtin_memcpy(&a, copy + i, 8); /* kept texts have room behind them */
	__builtin_memcpy(&b, text + i, 8);
	return !((a ^ b) & ~(UINT64_MAX << 8 * (length - i)));
}

/* The first words, and which bytes of them belong to the name. Kept texts have a word of room
 * behind them. */
static void fill_first_words_of_cached_name(struct region_cached_name *cached)
{
	for (uint32_t i = 0; i < 2; i++) {
		uint32_t length = cached->length > 8 * i ? cached->length - 8 * i : 0;

		cached->head[i] = 0;
		if (length)
			__builtin_memcpy(&cached->head[i], cached->copy + 8 * i, 8);
		cached->mask[i] = length < 8 ? ~(UINT64_MAX << 8 * length) : UINT64_MAX;
	}
}

region_id names_find_or_add_and_cache(struct region_cached_name *cached, const char *category,
				      const char *name)
{
	region_id region = region_find_or_add_name_in(category, name);

	cached->passed_name = NULL;
	if (region) {
		cached->copy = name_table.names[(region & REGION_NUMBER_MASK) - 1].text;
		cached->length = (uint32_t)bounded_text_length(cached->copy, NAME_LENGTH_MAX) + 1;
		cached->passed_category = category;
		cached->region = region;
		fill_first_words_of_cached_name(cached);
		if (cached->length <= NAME_LENGTH_MAX) /* a cut name never equals its origin */
			cached->passed_name = name;
	}
	return region;
}

/* ---- throttling ---- */

void names_count_call_and_throttle(region_id region, uint64_t ticks)
{
	struct interned_name *name = &name_table.names[(region & REGION_NUMBER_MASK) - 1];
	uint64_t calls = atomic_load_explicit(&name->calls, memory_order_relaxed) + 1;
	uint64_t sum = atomic_load_explicit(&name->ticks, memory_order_relaxed) + ticks;

	atomic_store_explicit(&name->calls, calls, memory_order_relaxed);
	atomic_store_explicit(&name->ticks, sum, memory_order_relaxed);
	if (calls >= kymo_regions.throttle_call_count &&
	    sum / calls < kymo_regions.throttle_mean_ticks &&
	    !atomic_exchange_explicit(&name->is_throttled, 1, memory_order_relaxed))
		notices_post(kymo_regions.background, SPOOL_NOTICE_DISABLED, calls,
			     "a region has many short calls and is no longer recorded "
			     "(THROTTLE_COUNT): ",
			     name->text ? name->text : "(function)");
}

bool names_region_is_throttled(region_id region)
{
	return atomic_load_explicit(
		&name_table.names[(region & REGION_NUMBER_MASK) - 1].is_throttled,
		memory_order_relaxed);
}
