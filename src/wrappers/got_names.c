/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See got_names.h.
 */
#include "wrappers/got_names.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "common/syscalls.h"

#define BLOCK 65536u
/* More than all groups of wrappers have together: names are looked up without the lock while a
 * group comes late (MPI opened by dlopen), and must not move then. */
#define NAMES_FIRST 16384u

void *got_allocate(size_t size)
{
	static uint8_t *block;
	static size_t left;
	void *result;

	size = (size + 15) & ~(size_t)15;
	if (size > left) {
		size_t fresh = size > BLOCK ? size : BLOCK;
		void *memory = sys_mmap(NULL, fresh, PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (sys_failed(memory))
			return NULL;
		block = memory;
		left = fresh;
	}
	result = block;
	block += size;
	left -= size;
	return result;
}

static uint32_t *find_slot(const struct got_names *names, const char *symbol, uint32_t hash)
{
	uint32_t at = hash & names->slot_mask;

	while (names->slot[at]) {
		const struct got_name *name = &names->name[names->slot[at] - 1];
		if (name->hash == hash && !strcmp(name->symbol, symbol))
			break;
		at = (at + 1) & names->slot_mask;
	}
	return &names->slot[at];
}

static int grow(struct got_names *names)
{
	uint32_t capacity = names->capacity ? names->capacity * 2 : NAMES_FIRST;
	struct got_name *name = got_allocate(capacity * sizeof(*name));
	uint32_t *slot = got_allocate(capacity * 2 * sizeof(*slot));

	if (!name || !slot)
		return -ENOMEM;
	if (names->count)
		memcpy(name, names->name, names->count * sizeof(*name));
	names->name = name;
	names->slot = slot;
	names->capacity = capacity;
	names->slot_mask = capacity * 2 - 1;
	for (uint32_t i = 0; i < names->count; i++)
		*find_slot(names, name[i].symbol, name[i].hash) = i + 1;
	return 0;
}

static struct got_name *name_of(struct got_names *names, const char *symbol)
{
	uint32_t hash = got_hash(symbol), *slot;
	struct got_name *name;

	if (names->count == names->capacity && grow(names))
		return NULL;
	slot = find_slot(names, symbol, hash);
	if (*slot)
		return &names->name[*slot - 1];
	name = &names->name[names->count++];
	name->symbol = symbol;
	name->hash = hash;
	*slot = names->count;
	return name;
}

int got_names_add(struct got_names *names, struct got_wrapper *wrapper)
{
	struct got_name *name = name_of(names, wrapper->symbol);
	struct got_hook *hook = got_allocate(sizeof(*hook)), **end;

	if (!name || !hook)
		return -ENOMEM;
	hook->wrapper = wrapper;
	for (end = &name->hooks; *end; end = &(*end)->next)
		;
	*end = hook;
	names->hooks++;
	return 0;
}

struct got_name *got_names_find(const struct got_names *names, const char *symbol)
{
	uint32_t slot = names->count ? *find_slot(names, symbol, got_hash(symbol)) : 0;

	return slot ? &names->name[slot - 1] : NULL;
}

/* An indirect function is what its resolver returns (the loader asks it as well, and the answer is
 * always the same). */
static void *address_of(const struct got_object *object, const Elf64_Sym *symbol)
{
	void *address = (void *)(object->base + symbol->st_value);

	if (ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC)
		return ((void *(*)(void))address)();
	return address;
}

static bool is_wanted_library(const struct got_wrapper *wrapper, const char *file)
{
	const char *prefix = wrapper->library;

	if (!prefix)
		return true;
	for (size_t length; *prefix; prefix += length + (prefix[length] == '|')) {
		length = strcspn(prefix, "|");
		if (!strncmp(file, prefix, length))
			return true;
	}
	return false;
}

/* Links the chain of wrappers: each calls the one before it. */
static void link_hooks(struct got_name *name, const char *file)
{
	void *original = name->address, *target = NULL;

	for (struct got_hook *hook = name->hooks; hook; hook = hook->next) {
		struct got_wrapper *wrapper = hook->wrapper;
		hook->active = is_wanted_library(wrapper, file);
		if (!hook->active)
			continue;
		/* release: a caller that sees the replacement in a slot sees the original */
		atomic_store_explicit(wrapper->original, original, memory_order_release);
		if (wrapper->replacement)
			original = target = wrapper->replacement;
	}
	name->target = target;
}

static bool define(struct got_name *name, const struct got_object *object, bool start)
{
	const Elf64_Sym *symbol = got_object_find(object, name->symbol, name->hash);
	void *before = name->target;

	if (!symbol)
		return false;
	if (name->address && (name->base != object->base || name->dynamic != object->dynamic)) {
		name->several |= !name->start;
		return false;
	}
	name->address = address_of(object, symbol);
	name->base = object->base;
	name->dynamic = object->dynamic;
	name->version = got_object_version(object, (size_t)(symbol - object->symbols));
	name->start = start;
	link_hooks(name, got_object_file(object));
	return name->target != before;
}

bool got_names_define(struct got_names *names, const struct got_object *object, bool start)
{
	bool changed = false;

	for (uint32_t i = 0; i < names->count; i++)
		changed |= define(&names->name[i], object, start);
	return changed;
}

bool got_names_any_in(const struct got_names *names, const struct got_object *object)
{
	for (uint32_t i = 0; i < names->count; i++) {
		if (got_object_find(object, names->name[i].symbol, names->name[i].hash))
			return true;
	}
	return false;
}

bool got_names_forget(struct got_names *names, uint64_t base, uint64_t dynamic)
{
	bool any = false;

	for (uint32_t i = 0; i < names->count; i++) {
		struct got_name *name = &names->name[i];
		if (!name->address || name->base != base || name->dynamic != dynamic)
			continue;
		any = true;
		name->address = name->target = NULL;
		name->several = false;
		for (struct got_hook *hook = name->hooks; hook; hook = hook->next)
			hook->active = false;
	}
	return any;
}

bool got_name_is(const struct got_name *name, const void *value)
{
	if (value == name->address)
		return true;
	for (const struct got_hook *hook = name->hooks; hook; hook = hook->next) {
		if (hook->active && value == hook->wrapper->replacement)
			return true;
	}
	return false;
}
