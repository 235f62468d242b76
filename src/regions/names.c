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
#include "core/chunk_wait.h"
#include "core/notices.h"
#include "regions/stream.h"

#define NAMES_MAX  (1u << 20)
#define SLOTS      (2 * NAMES_MAX)
#define NAME_MAX   4096u
#define BLOCK_SIZE 65536u
#define RECORD_MAX (NAME_MAX + 512)
#define FNV_BASE   14695981039346656037ull
#define FNV_PRIME  1099511628211ull
#define PAGE       NAMES_PAGE

struct name {
	const char *category, *text; /* text NULL: a function */
	uint64_t address, hash;
	uint32_t flags; /* REGION_IS_* */
	_Atomic uint32_t throttled;
	_Atomic uint64_t calls, ticks;
};

static struct {
	struct name *names;      /* by number - 1 */
	_Atomic uint32_t *slots; /* number; 0: free */
	_Atomic uint32_t count;
	_Atomic uint32_t lock;
	char *block; /* strings go here */
	uint32_t block_used;
	struct spool_chunk *chunk; /* of definitions; under the lock */
	const void *background;    /* the thread that makes chunks itself, while it writes here */
	bool category_off[REGION_CATEGORY_COUNT];
	const struct options_regions *options;
} table;

static void *reserve(size_t size)
{
	void *memory = sys_mmap(NULL, size, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return sys_failed(memory) ? NULL : memory;
}

static bool category_is_off(const char *category)
{
	const struct options_regions *options = table.options;

	if (options->enable_categories && *options->enable_categories)
		return !region_list_has(options->enable_categories, category);
	return region_list_has(options->disable_categories, category);
}

int names_init(const struct options_regions *options)
{
	table.options = options;
	for (int i = 0; i < REGION_CATEGORY_COUNT; i++)
		table.category_off[i] = category_is_off(region_categories[i].name);
	if (table.names)
		return 0;
	table.slots = reserve(SLOTS * sizeof(*table.slots));
	table.names = reserve(NAMES_MAX * sizeof(*table.names));
	return table.slots && table.names ? 0 : -12 /* ENOMEM */;
}

uint32_t names_categories_off(void)
{
	uint32_t off = 0;

	for (int i = 0; i < REGION_CATEGORY_COUNT; i++)
		off |= (uint32_t)table.category_off[i] << i;
	return off;
}

/* ---- definitions in the spool ---- */

static bool make_room(uint32_t size)
{
	struct spool_writer *spool = &kymo_runtime.spool;
	struct spool_chunk *chunk = table.chunk;

	if (chunk && spool_chunk_capacity(chunk) - chunk->header->committed >= size)
		return true;
	if (chunk)
		spool_chunk_retire(spool, chunk);
	table.chunk = spool_chunk_take(spool, SPOOL_SMALL);
	if (!table.chunk && table.background == &kymo_region_own)
		table.chunk = chunk_make(spool);
	else if (!table.chunk)
		table.chunk = chunk_wait(SPOOL_SMALL, CHUNK_IN_CALL);
	if (!table.chunk)
		return false;
	spool_chunk_keep(table.chunk);
	return spool_chunk_capacity(table.chunk) >= size;
}

static bool write_record(enum spool_record kind, const uint8_t *payload, uint32_t size)
{
	uint8_t *at;

	if (!kymo_runtime.spool.header || !make_room(size + 1 + LEB128_MAX)) {
		if (kymo_runtime.spool.header)
			spool_count_no_chunk(&kymo_runtime.spool);
		return false;
	}
	at = spool_chunk_data(table.chunk) + table.chunk->header->committed;
	*at++ = (uint8_t)kind;
	at = leb128_put(at, size);
	memcpy(at, payload, size);
	at += size;
	atomic_store_explicit((_Atomic uint32_t *)&table.chunk->header->committed,
			      (uint32_t)(at - spool_chunk_data(table.chunk)), memory_order_release);
	return true;
}

static uint8_t *put_text(uint8_t *at, const char *text)
{
	size_t length = strlen(text);

	at = leb128_put(at, length);
	memcpy(at, text, length);
	return at + length;
}

static bool define(uint32_t number)
{
	const struct name *name = &table.names[number - 1];
	uint8_t record[RECORD_MAX], *at = leb128_put(record, number);

	at = leb128_put(at, name->text ? SPOOL_REGION_NAMED : SPOOL_REGION_FUNCTION);
	at = put_text(at, name->category);
	at = name->text ? put_text(at, name->text) : leb128_put_fixed(at, name->address);
	return write_record(SPOOL_RECORD_REGION, record, (uint32_t)(at - record));
}

bool names_write(enum spool_record kind, const uint8_t *payload, uint32_t size)
{
	bool written;

	if (!region_lock(&table.lock))
		return false;
	written = write_record(kind, payload, size);
	region_unlock(&table.lock);
	return written;
}

void names_define_all(void)
{
	if (!region_lock(&table.lock))
		return;
	for (uint32_t i = 1; i <= table.count; i++)
		define(i);
	region_unlock(&table.lock);
}

void names_set_background(bool on_background)
{
	table.background = on_background ? &kymo_region_own : NULL;
}

void names_forget_chunk(void)
{
	table.chunk = NULL;
	table.lock = 0;
}

/* ---- interning ---- */

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size)
{
	const uint8_t *at = bytes;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ at[i]) * FNV_PRIME;
	return hash;
}

static size_t text_length(const char *text, size_t most)
{
	size_t length = 0;

	while (length < most && text[length])
		length++;
	return length;
}

static const char *keep_text(const char *text, size_t length)
{
	char *copy;

	if (!table.block || table.block_used + length + 1 + 8 > BLOCK_SIZE) {
		table.block = reserve(BLOCK_SIZE);
		table.block_used = 0;
	}
	if (!table.block)
		return NULL;
	copy = table.block + table.block_used;
	memcpy(copy, text, length);
	copy[length] = 0;
	table.block_used += (uint32_t)length + 1;
	return copy;
}

struct key {
	const char *category, *text;
	size_t category_length, text_length;
	uint64_t address, hash;
};

static bool same_text(const char *kept, const char *text, size_t length)
{
	return !strncmp(kept, text, length) && !kept[length];
}

static bool is_it(const struct name *name, const struct key *key)
{
	if (name->hash != key->hash ||
	    !same_text(name->category, key->category, key->category_length))
		return false;
	if (!name->text || !key->text)
		return !name->text && !key->text && name->address == key->address;
	return same_text(name->text, key->text, key->text_length);
}

/* The number of the key, or 0 with the free slot where it belongs. */
static uint32_t look_up(const struct key *key, uint32_t *ret_slot)
{
	uint32_t slot = (uint32_t)(key->hash ^ key->hash >> 32) & (SLOTS - 1), number;

	for (;; slot = (slot + 1) & (SLOTS - 1)) {
		number = atomic_load_explicit(&table.slots[slot], memory_order_acquire);
		if (!number || is_it(&table.names[number - 1], key))
			break;
	}
	*ret_slot = slot;
	return number;
}

static uint32_t add(const struct key *key, uint32_t flags)
{
	uint32_t slot, number = look_up(key, &slot);
	struct name *name;

	if (number || table.count == NAMES_MAX)
		return number;
	name = &table.names[table.count];
	name->category = keep_text(key->category, key->category_length);
	name->text = key->text ? keep_text(key->text, key->text_length) : NULL;
	name->address = key->address;
	name->hash = key->hash;
	name->flags = flags;
	if (!name->category || (key->text && !name->text))
		return 0;
	number = table.count + 1;
	/* Without a file (a child that has just been forked) it is defined with all others. */
	if (kymo_runtime.spool.header && !define(number))
		return 0; /* no room now; perhaps later */
	table.count = number;
	atomic_store_explicit(&table.slots[slot], number, memory_order_release);
	return number;
}

static region_id intern(const struct key *key, uint32_t flags)
{
	uint32_t slot, number;

	if (!table.names)
		return 0;
	number = look_up(key, &slot);
	if (!number && region_lock(&table.lock)) {
		number = add(key, flags);
		region_unlock(&table.lock);
	}
	if (!number) {
		spool_count_loss(&kymo_runtime.spool, SPOOL_LOSS_REGION_NAMES);
		return 0;
	}
	return number | table.names[number - 1].flags;
}

static region_id intern_name(const char *category, const char *text, uint32_t flags)
{
	struct key key = {.category = category, .text = text};

	key.category_length = text_length(category, 255);
	key.text_length = text_length(text, NAME_MAX);
	key.hash = hash_bytes(FNV_BASE, category, key.category_length);
	key.hash = hash_bytes(key.hash * FNV_PRIME, text, key.text_length);
	if (region_list_has(table.options->selected, text))
		flags |= REGION_IS_SELECT;
	return intern(&key, flags);
}

region_id region_named(enum region_category category, const char *name)
{
	if (!table.names || table.category_off[category] || !name)
		return 0;
	return intern_name(region_categories[category].name, name,
			   category == REGION_USER ? REGION_IS_USER : 0);
}

region_id region_named_in(const char *category, const char *name)
{
	if (!category || !*category || !strcmp(category, region_categories[REGION_USER].name))
		return region_named(REGION_USER, name);
	if (!table.names || category_is_off(category) || !name)
		return 0;
	return intern_name(category, name, REGION_IS_USER);
}

region_id region_function(enum region_category category, uint64_t address)
{
	const char *name = region_categories[category].name;
	struct key key = {
		.category = name, .category_length = text_length(name, 255), .address = address};

	if (!table.names || table.category_off[category])
		return 0;
	key.hash = hash_bytes(FNV_BASE, &address, sizeof(address));
	return intern(&key, 0);
}

/* Both hold the same bytes up to and with the zero. Words are compared where reading past the end
 * of `text` stays in its page. */
__attribute__((no_sanitize("address"))) bool names_equal(const char *copy, const char *text,
							 uint32_t length)
{
	uint64_t a, b;
	uint32_t i = 0;

	if (((uintptr_t)text & (PAGE - 1)) + length + 8 > PAGE)
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
static void keep_head(struct region_cached_name *cached)
{
	for (uint32_t i = 0; i < 2; i++) {
		uint32_t length = cached->length > 8 * i ? cached->length - 8 * i : 0;

		cached->head[i] = 0;
		if (length)
			__builtin_memcpy(&cached->head[i], cached->copy + 8 * i, 8);
		cached->mask[i] = length < 8 ? ~(UINT64_MAX << 8 * length) : UINT64_MAX;
	}
}

region_id names_find_uncached(struct region_cached_name *cached, const char *category,
			      const char *name)
{
	region_id region = region_named_in(category, name);

	cached->pointer = NULL;
	if (region) {
		cached->copy = table.names[(region & REGION_NUMBER) - 1].text;
		cached->length = (uint32_t)text_length(cached->copy, NAME_MAX) + 1;
		cached->category = category;
		cached->region = region;
		keep_head(cached);
		if (cached->length <= NAME_MAX) /* a cut name never equals its origin */
			cached->pointer = name;
	}
	return region;
}

/* ---- throttling ---- */

void names_throttle(region_id region, uint64_t ticks)
{
	struct name *name = &table.names[(region & REGION_NUMBER) - 1];
	uint64_t calls = atomic_load_explicit(&name->calls, memory_order_relaxed) + 1;
	uint64_t sum = atomic_load_explicit(&name->ticks, memory_order_relaxed) + ticks;

	atomic_store_explicit(&name->calls, calls, memory_order_relaxed);
	atomic_store_explicit(&name->ticks, sum, memory_order_relaxed);
	if (calls >= kymo_regions.throttle_count && sum / calls < kymo_regions.throttle_ticks &&
	    !atomic_exchange_explicit(&name->throttled, 1, memory_order_relaxed))
		notices_post(&kymo_runtime.background, SPOOL_NOTICE_DISABLED, calls,
			     "calls of a region are short and many: not recorded any more: ",
			     name->text ? name->text : "(function)");
}

bool names_is_throttled(region_id region)
{
	return atomic_load_explicit(&table.names[(region & REGION_NUMBER) - 1].throttled,
				    memory_order_relaxed);
}
