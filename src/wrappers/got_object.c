/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See got_object.h.
 */
#include "wrappers/got_object.h"

#include <string.h>

#define PAGE 4096u

#define VERSION_HIDDEN 0x8000u
#define VERSION_INDEX  0x7fffu

/* glibc has added the load address to the pointers in memory (elf/get-dynamic-info.h); the vDSO and
 * other loaders have not. */
static const void *pointer(const struct got_object *object, uint64_t value)
{
	return (const void *)(value < object->base ? object->base + value : value);
}

static void read_entry(struct got_object *object, const Elf64_Dyn *entry)
{
	uint64_t value = entry->d_un.d_val;

	switch (entry->d_tag) {
	case DT_SYMTAB:
		object->symbols = pointer(object, value);
		break;
	case DT_STRTAB:
		object->strings = pointer(object, value);
		break;
	case DT_VERSYM:
		object->versions = pointer(object, value);
		break;
	case DT_VERNEED:
		object->needs = pointer(object, value);
		break;
	case DT_VERDEF:
		object->definitions = pointer(object, value);
		break;
	case DT_GNU_HASH:
		object->gnu_hash = pointer(object, value);
		break;
	case DT_HASH:
		object->sysv_hash = pointer(object, value);
		break;
	case DT_JMPREL:
		object->plt = pointer(object, value);
		break;
	case DT_PLTRELSZ:
		object->plt_count = value / sizeof(Elf64_Rela);
		break;
	case DT_RELA:
		object->rela = pointer(object, value);
		break;
	case DT_RELASZ:
		object->rela_count = value / sizeof(Elf64_Rela);
		break;
	case DT_RELACOUNT:
		object->relative_count = value;
		break;
	case DT_SYMBOLIC:
		object->symbolic = true;
		break;
	case DT_FLAGS:
		object->symbolic |= value & DF_SYMBOLIC;
		break;
	case DT_RPATH:
		object->has_rpath = object->has_search_path = true;
		break;
	case DT_RUNPATH:
		object->has_search_path = true;
		break;
	default:
		break;
	}
}

static void read_header(struct got_object *object, const Elf64_Phdr *header)
{
	uint64_t start = object->base + header->p_vaddr, end = start + header->p_memsz;

	switch (header->p_type) {
	case PT_DYNAMIC:
		object->dynamic = start;
		break;
	case PT_LOAD:
		if (start < object->low)
			object->low = start;
		if (end > object->high)
			object->high = end;
		break;
	case PT_GNU_RELRO: /* whole pages only (glibc, elf/dl-reloc.c, _dl_protect_relro) */
		object->relro_low = start & ~(uint64_t)(PAGE - 1);
		object->relro_high = end & ~(uint64_t)(PAGE - 1);
		break;
	default:
		break;
	}
}

bool got_object_read(struct got_object *ret, const struct dl_phdr_info *info)
{
	memset(ret, 0, sizeof(*ret));
	ret->name = info->dlpi_name ? info->dlpi_name : "";
	ret->base = info->dlpi_addr;
	ret->headers = info->dlpi_phdr;
	ret->header_count = info->dlpi_phnum;
	ret->low = UINT64_MAX;
	for (size_t i = 0; i < ret->header_count; i++)
		read_header(ret, &ret->headers[i]);
	if (!ret->dynamic)
		return false;
	for (const Elf64_Dyn *entry = (const Elf64_Dyn *)ret->dynamic; entry->d_tag != DT_NULL;
	     entry++)
		read_entry(ret, entry);
	if (!ret->plt)
		ret->plt_count = 0;
	if (!ret->rela)
		ret->rela_count = 0;
	if (ret->relative_count > ret->rela_count)
		ret->relative_count = ret->rela_count;
	return ret->symbols && ret->strings;
}

const char *got_object_file(const struct got_object *object)
{
	const char *file = object->name;

	for (const char *c = object->name; *c; c++) {
		if (*c == '/')
			file = c + 1;
	}
	return file;
}

uint32_t got_hash(const char *name)
{
	uint32_t hash = 5381;

	for (; *name; name++)
		hash = hash * 33 + (uint8_t)*name;
	return hash;
}

/* DT_GNU_HASH has definitions only, which are sorted to the end of the table; DT_HASH has the size
 * of the table. */
size_t got_object_undefined(const struct got_object *object)
{
	if (object->gnu_hash)
		return object->gnu_hash[1];
	return object->sysv_hash ? object->sysv_hash[1] : 0;
}

static bool is_hidden(const struct got_object *object, size_t index)
{
	return object->versions && (object->versions[index] & VERSION_HIDDEN);
}

/* Does the loader bind a reference by this name to this symbol? */
static bool is_definition(const struct got_object *object, size_t index, const char *name)
{
	const Elf64_Sym *symbol = &object->symbols[index];
	unsigned type = ELF64_ST_TYPE(symbol->st_info), bind = ELF64_ST_BIND(symbol->st_info);
	unsigned visibility = ELF64_ST_VISIBILITY(symbol->st_other);

	if (symbol->st_shndx == SHN_UNDEF || !symbol->st_value ||
	    (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE) ||
	    (bind != STB_GLOBAL && bind != STB_WEAK && bind != STB_GNU_UNIQUE) ||
	    visibility == STV_HIDDEN || visibility == STV_INTERNAL || is_hidden(object, index))
		return false;
	return !strcmp(object->strings + symbol->st_name, name);
}

static const Elf64_Sym *find_gnu(const struct got_object *object, const char *name, uint32_t hash)
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
		if ((entry | 1) == (hash | 1) && is_definition(object, index, name))
			return &object->symbols[index];
		if (entry & 1)
			return NULL;
	}
}

static uint32_t hash_sysv(const char *name)
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

static const Elf64_Sym *find_sysv(const struct got_object *object, const char *name)
{
	const uint32_t *table = object->sysv_hash;
	uint32_t buckets = table[0];
	const uint32_t *bucket = table + 2, *chain = bucket + buckets;

	for (uint32_t index = buckets ? bucket[hash_sysv(name) % buckets] : 0; index;
	     index = chain[index]) {
		if (is_definition(object, index, name))
			return &object->symbols[index];
	}
	return NULL;
}

const Elf64_Sym *got_object_find(const struct got_object *object, const char *name, uint32_t hash)
{
	if (object->gnu_hash)
		return find_gnu(object, name, hash);
	return object->sysv_hash ? find_sysv(object, name) : NULL;
}

static const char *defined_version(const struct got_object *object, unsigned wanted)
{
	const uint8_t *at = object->definitions;

	while (at) {
		const Elf64_Verdef *entry = (const Elf64_Verdef *)at;
		const Elf64_Verdaux *names = (const Elf64_Verdaux *)(at + entry->vd_aux);
		if (entry->vd_ndx == wanted)
			return object->strings + names->vda_name;
		at = entry->vd_next ? at + entry->vd_next : NULL;
	}
	return NULL;
}

static const char *needed_version(const struct got_object *object, unsigned wanted)
{
	const uint8_t *at = object->needs;

	while (at) {
		const Elf64_Verneed *entry = (const Elf64_Verneed *)at;
		const uint8_t *name = at + entry->vn_aux;
		for (unsigned i = 0; i < entry->vn_cnt; i++) {
			const Elf64_Vernaux *need = (const Elf64_Vernaux *)name;
			if (need->vna_other == wanted)
				return object->strings + need->vna_name;
			name += need->vna_next;
		}
		at = entry->vn_next ? at + entry->vn_next : NULL;
	}
	return NULL;
}

const char *got_object_version(const struct got_object *object, size_t index)
{
	unsigned version = object->versions ? object->versions[index] & VERSION_INDEX : 0;

	if (version <= VER_NDX_GLOBAL) /* local, or the object's base version */
		return NULL;
	return object->symbols[index].st_shndx == SHN_UNDEF ? needed_version(object, version)
							    : defined_version(object, version);
}

bool got_object_is_data(const struct got_object *object, uint64_t address)
{
	for (size_t i = 0; i < object->header_count; i++) {
		const Elf64_Phdr *header = &object->headers[i];
		if (header->p_type == PT_LOAD && (header->p_flags & PF_W) &&
		    address - (object->base + header->p_vaddr) < header->p_memsz)
			return true;
	}
	return false;
}
