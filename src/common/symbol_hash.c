/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See symbol_hash.h.
 */
#include "common/symbol_hash.h"

#include <string.h>

#define VERSYM_HIDDEN_BIT 0x8000u

uint32_t symbol_hash_compute_gnu_hash(const char *name)
{
	uint32_t hash = 5381;

	for (; *name; name++)
		hash = hash * 33 + (uint8_t)*name;
	return hash;
}

static bool symbol_version_is_hidden(const struct symbol_hash_tables *object, size_t index)
{
	return object->versions && (object->versions[index] & VERSYM_HIDDEN_BIT);
}

static bool symbol_is_of_kind(const Elf64_Sym *symbol, enum symbol_hash_symbol_kind kind)
{
	unsigned type = ELF64_ST_TYPE(symbol->st_info);

	switch (kind) {
	case SYMBOL_HASH_FUNCTIONS:
		return symbol->st_value &&
		       (type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE);
	case SYMBOL_HASH_FUNCTIONS_AND_DATA:
		return symbol->st_value && type != STT_TLS && type != STT_SECTION &&
		       type != STT_FILE;
	case SYMBOL_HASH_THREAD_DATA: /* the first variable of the block has the value 0 */
		return type == STT_TLS;
	}
	return false;
}

/* Does the loader bind a reference by this name to this symbol? */
static bool is_matching_definition(const struct symbol_hash_tables *object, size_t index,
				   enum symbol_hash_symbol_kind kind, const char *name)
{
	const Elf64_Sym *symbol = &object->symbols[index];
	unsigned bind = ELF64_ST_BIND(symbol->st_info);
	unsigned visibility = ELF64_ST_VISIBILITY(symbol->st_other);

	if (symbol->st_shndx == SHN_UNDEF || !symbol_is_of_kind(symbol, kind) ||
	    (bind != STB_GLOBAL && bind != STB_WEAK && bind != STB_GNU_UNIQUE) ||
	    visibility == STV_HIDDEN || visibility == STV_INTERNAL ||
	    symbol_version_is_hidden(object, index))
		return false;
	return !strcmp(object->strings + symbol->st_name, name);
}

static const Elf64_Sym *find_in_gnu_hash(const struct symbol_hash_tables *object,
					 enum symbol_hash_symbol_kind kind, const char *name,
					 uint32_t hash)
{
	const uint32_t *table = object->gnu_hash;
	uint32_t buckets = table[0], first = table[1], filter_size = table[2], shift = table[3];
	const uint64_t *filter = (const uint64_t *)(table + 4);
	const uint32_t *bucket = (const uint32_t *)(filter + filter_size),
		       *chain = bucket + buckets;
	uint64_t word, mask = 1ull << (hash % 64) | 1ull << ((hash >> shift) % 64);
	uint32_t index;

	if (!buckets || !filter_size)
		return NULL;
	word = filter[(hash / 64) & (filter_size - 1)];
	index = (word & mask) == mask ? bucket[hash % buckets] : 0;
	if (index < first)
		return NULL;
	for (;; index++) {
		uint32_t entry = chain[index - first];
		if ((entry | 1) == (hash | 1) && is_matching_definition(object, index, kind, name))
			return &object->symbols[index];
		if (entry & 1)
			return NULL;
	}
}

static uint32_t compute_sysv_hash(const char *name)
{
	uint32_t hash = 0, high;

	for (; *name; name++) {
		hash = (hash << 4) + (uint8_t)*name;
		high = hash & 0xf0000000u;
		hash ^= high >> 24;
		hash &= ~high;
	}
	return hash;
}

static const Elf64_Sym *find_in_sysv_hash(const struct symbol_hash_tables *object,
					  enum symbol_hash_symbol_kind kind, const char *name)
{
	const uint32_t *table = object->sysv_hash;
	uint32_t buckets = table[0];
	const uint32_t *bucket = table + 2, *chain = bucket + buckets;

	for (uint32_t index = buckets ? bucket[compute_sysv_hash(name) % buckets] : 0; index;
	     index = chain[index]) {
		if (is_matching_definition(object, index, kind, name))
			return &object->symbols[index];
	}
	return NULL;
}

const Elf64_Sym *symbol_hash_find_symbol(const struct symbol_hash_tables *object,
					 enum symbol_hash_symbol_kind kind, const char *name,
					 uint32_t hash)
{
	if (object->gnu_hash)
		return find_in_gnu_hash(object, kind, name, hash);
	return object->sysv_hash ? find_in_sysv_hash(object, kind, name) : NULL;
}

/* ---- objects ---- */

/* glibc has added the load address to the pointers in memory (elf/get-dynamic-info.h); the vDSO and
 * other loaders have not. */
static const void *resolve_dynamic_pointer(uint64_t base, uint64_t value)
{
	return (const void *)(value < base ? base + value : value);
}

bool symbol_hash_read_dynamic_section(struct symbol_hash_tables *ret, uint64_t base,
				      const Elf64_Dyn *entry)
{
	memset(ret, 0, sizeof(*ret));
	for (; entry && entry->d_tag != DT_NULL; entry++) {
		const void *value = resolve_dynamic_pointer(base, entry->d_un.d_ptr);

		switch (entry->d_tag) {
		case DT_SYMTAB:
			ret->symbols = value;
			break;
		case DT_STRTAB:
			ret->strings = value;
			break;
		case DT_VERSYM:
			ret->versions = value;
			break;
		case DT_GNU_HASH:
			ret->gnu_hash = value;
			break;
		case DT_HASH:
			ret->sysv_hash = value;
			break;
		default:
			break;
		}
	}
	return ret->symbols && ret->strings;
}

static const Elf64_Dyn *find_dynamic_section_of_object(const struct dl_phdr_info *info)
{
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			return (const Elf64_Dyn *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	}
	return NULL;
}

bool symbol_hash_read_object(struct symbol_hash_tables *ret, const struct dl_phdr_info *info)
{
	return symbol_hash_read_dynamic_section(ret, info->dlpi_addr,
						find_dynamic_section_of_object(info));
}
