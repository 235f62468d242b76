/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See names.h.
 */
#include "wrappers/got/names.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "common/syscalls.h"

#define PERMANENT_BLOCK_BYTES 65536u
/* More than all groups of wrappers have together: names are looked up without the lock while a
 * group comes late (MPI opened by dlopen), and must not move then. */
#define NAMES_CAPACITY_INITIAL 16384u

void *got_allocate_permanent(size_t size)
{
	static uint8_t *block;
	static size_t left;
	void *result;

	size = (size + 15) & ~(size_t)15;
	if (size > left) {
		size_t fresh = size > PERMANENT_BLOCK_BYTES ? size : PERMANENT_BLOCK_BYTES;
		void *memory = sys_mmap(NULL, fresh, PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (sys_mmap_failed(memory))
			return NULL;
		block = memory;
		left = fresh;
	}
	result = block;
	block += size;
	left -= size;
	return result;
}

static uint32_t *find_name_slot(const struct got_name_table *names, const char *symbol,
				uint32_t hash)
{
	uint32_t at = hash & names->slot_mask;

	while (names->slot[at]) {
		const struct got_wrapped_name *name = &names->name[names->slot[at] - 1];
		if (name->hash == hash && !strcmp(name->symbol, symbol))
			break;
		at = (at + 1) & names->slot_mask;
	}
	return &names->slot[at];
}

static int grow_names(struct got_name_table *names)
{
	uint32_t capacity = names->capacity ? names->capacity * 2 : NAMES_CAPACITY_INITIAL;
	struct got_wrapped_name *name = got_allocate_permanent(capacity * sizeof(*name));
	uint32_t *slot = got_allocate_permanent(capacity * 2 * sizeof(*slot));

	if (!name || !slot)
		return -ENOMEM;
	if (names->count)
		memcpy(name, names->name, names->count * sizeof(*name));
	names->name = name;
	names->slot = slot;
	names->capacity = capacity;
	names->slot_mask = capacity * 2 - 1;
	for (uint32_t i = 0; i < names->count; i++)
		*find_name_slot(names, name[i].symbol, name[i].hash) = i + 1;
	return 0;
}

static struct got_wrapped_name *find_or_add_name(struct got_name_table *names, const char *symbol)
{
	uint32_t hash = got_hash_name(symbol), *slot;
	struct got_wrapped_name *name;

	if (names->count == names->capacity && grow_names(names))
		return NULL;
	slot = find_name_slot(names, symbol, hash);
	if (*slot)
		return &names->name[*slot - 1];
	name = &names->name[names->count++];
	name->symbol = symbol;
	name->hash = hash;
	*slot = names->count;
	return name;
}

int got_names_add_wrapper(struct got_name_table *names, struct got_wrapper *wrapper)
{
	struct got_wrapped_name *name = find_or_add_name(names, wrapper->symbol);
	struct got_chained_wrapper *hook = got_allocate_permanent(sizeof(*hook)), **end;

	if (!name || !hook)
		return -ENOMEM;
	hook->wrapper = wrapper;
	name->is_wrapped_within_libc |= wrapper->is_wrapped_within_libc;
	for (end = &name->wrapper_chain; *end; end = &(*end)->next)
		;
	*end = hook;
	names->wrapper_count++;
	return 0;
}

struct got_wrapped_name *got_names_find(const struct got_name_table *names, const char *symbol)
{
	uint32_t slot = names->count ? *find_name_slot(names, symbol, got_hash_name(symbol)) : 0;

	return slot ? &names->name[slot - 1] : NULL;
}

/* An indirect function is what its resolver returns (the loader asks it as well, and the answer is
 * always the same). */
static void *resolve_definition_address(const struct got_object *object, const Elf64_Sym *symbol)
{
	void *address = (void *)(object->base + symbol->st_value);

	if (ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC)
		return ((void *(*)(void))address)();
	return address;
}

static bool library_matches_wrapper(const struct got_wrapper *wrapper, const char *file)
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
static void link_wrapper_chain(struct got_wrapped_name *name, const char *file)
{
	void *original = name->address, *target = NULL;

	for (struct got_chained_wrapper *hook = name->wrapper_chain; hook; hook = hook->next) {
		struct got_wrapper *wrapper = hook->wrapper;
		hook->is_in_wanted_library = library_matches_wrapper(wrapper, file);
		if (!hook->is_in_wanted_library)
			continue;
		/* release: a caller that sees the replacement in a slot sees the original */
		atomic_store_explicit(wrapper->original, original, memory_order_release);
		if (wrapper->replacement)
			original = target = wrapper->replacement;
	}
	name->target = target;
}

static bool set_name_definition(struct got_wrapped_name *name, const struct got_object *object,
				bool start)
{
	const Elf64_Sym *symbol = got_object_find_definition(object, name->symbol, name->hash);
	void *before = name->target;

	if (!symbol)
		return false;
	if (name->address && (name->base != object->base ||
			      name->dynamic_section_address != object->dynamic_section_address)) {
		name->has_other_definition |= !name->start;
		name->is_interposer |= !name->is_in_libc;
		return false;
	}
	name->address = resolve_definition_address(object, symbol);
	name->base = object->base;
	name->dynamic_section_address = object->dynamic_section_address;
	name->version = got_object_get_symbol_version(object, (size_t)(symbol - object->symbols));
	name->start = start;
	name->is_in_libc = got_file_is_libc_or_loader(got_object_get_file_name(object));
	name->is_interposer = false;
	link_wrapper_chain(name, got_object_get_file_name(object));
	return name->target != before;
}

bool got_names_update_definitions(struct got_name_table *names, const struct got_object *object,
				  bool start)
{
	bool changed = false;

	for (uint32_t i = 0; i < names->count; i++)
		changed |= set_name_definition(&names->name[i], object, start);
	return changed;
}

bool got_names_any_defined_in(const struct got_name_table *names, const struct got_object *object)
{
	for (uint32_t i = 0; i < names->count; i++) {
		if (got_object_find_definition(object, names->name[i].symbol, names->name[i].hash))
			return true;
	}
	return false;
}

bool got_names_forget_gone_object(struct got_name_table *names, uint64_t base, uint64_t dynamic)
{
	bool any = false;

	for (uint32_t i = 0; i < names->count; i++) {
		struct got_wrapped_name *name = &names->name[i];
		if (!name->address || name->base != base ||
		    name->dynamic_section_address != dynamic)
			continue;
		any = true;
		name->address = name->target = NULL;
		name->has_other_definition = name->is_interposer = false;
		for (struct got_chained_wrapper *hook = name->wrapper_chain; hook;
		     hook = hook->next)
			hook->is_in_wanted_library = false;
	}
	return any;
}

bool got_function_is_of_name_or_wrapper(const struct got_wrapped_name *name, const void *value)
{
	if (value == name->address)
		return true;
	for (const struct got_chained_wrapper *hook = name->wrapper_chain; hook;
	     hook = hook->next) {
		if (hook->is_in_wanted_library && value == hook->wrapper->replacement)
			return true;
	}
	return false;
}
