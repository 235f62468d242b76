/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See object.h.
 */
#include "wrappers/got/object.h"

#include <string.h>

#include "common/array.h"
#include "common/symbol_hash.h"

#define PAGE_BYTES 4096u

#define VERSION_INDEX_MASK 0x7fffu

/* glibc has added the load address to the pointers in memory (elf/get-dynamic-info.h); the vDSO and
 * other loaders have not. */
static const void *dynamic_value_to_pointer(const struct got_object *object, uint64_t value)
{
	return (const void *)(value < object->base ? object->base + value : value);
}

static void read_dynamic_entry(struct got_object *object, const Elf64_Dyn *entry)
{
	uint64_t value = entry->d_un.d_val;

	switch (entry->d_tag) {
	case DT_SYMTAB:
		object->symbols = dynamic_value_to_pointer(object, value);
		break;
	case DT_STRTAB:
		object->strings = dynamic_value_to_pointer(object, value);
		break;
	case DT_VERSYM:
		object->symbol_versions = dynamic_value_to_pointer(object, value);
		break;
	case DT_VERNEED:
		object->version_needs = dynamic_value_to_pointer(object, value);
		break;
	case DT_VERDEF:
		object->version_definitions = dynamic_value_to_pointer(object, value);
		break;
	case DT_GNU_HASH:
		object->gnu_hash_table = dynamic_value_to_pointer(object, value);
		break;
	case DT_HASH:
		object->sysv_hash_table = dynamic_value_to_pointer(object, value);
		break;
	case DT_JMPREL:
		object->plt_relocations = dynamic_value_to_pointer(object, value);
		break;
	case DT_PLTRELSZ:
		object->plt_relocation_count = value / sizeof(Elf64_Rela);
		break;
	case DT_RELA:
		object->relocations = dynamic_value_to_pointer(object, value);
		break;
	case DT_RELASZ:
		object->relocation_count = value / sizeof(Elf64_Rela);
		break;
	case DT_RELACOUNT:
		object->relative_relocation_count = value;
		break;
	case DT_SYMBOLIC:
		object->is_symbolic = true;
		break;
	case DT_FLAGS:
		object->is_symbolic |= value & DF_SYMBOLIC;
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

static void read_program_header(struct got_object *object, const Elf64_Phdr *header)
{
	uint64_t start = object->base + header->p_vaddr, end = start + header->p_memsz;

	switch (header->p_type) {
	case PT_DYNAMIC:
		object->dynamic_section_address = start;
		break;
	case PT_LOAD:
		if (start < object->low)
			object->low = start;
		if (end > object->high)
			object->high = end;
		break;
	case PT_GNU_RELRO: /* whole pages only (glibc, elf/dl-reloc.c, _dl_protect_relro) */
		object->relro_low = start & ~(uint64_t)(PAGE_BYTES - 1);
		object->relro_high = end & ~(uint64_t)(PAGE_BYTES - 1);
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
	ret->program_headers = info->dlpi_phdr;
	ret->program_header_count = info->dlpi_phnum;
	ret->low = UINT64_MAX;
	for (size_t i = 0; i < ret->program_header_count; i++)
		read_program_header(ret, &ret->program_headers[i]);
	if (!ret->dynamic_section_address)
		return false;
	for (const Elf64_Dyn *entry = (const Elf64_Dyn *)ret->dynamic_section_address;
	     entry->d_tag != DT_NULL; entry++)
		read_dynamic_entry(ret, entry);
	if (!ret->plt_relocations)
		ret->plt_relocation_count = 0;
	if (!ret->relocations)
		ret->relocation_count = 0;
	if (ret->relative_relocation_count > ret->relocation_count)
		ret->relative_relocation_count = ret->relocation_count;
	return ret->symbols && ret->strings;
}

const char *got_object_get_file_name(const struct got_object *object)
{
	const char *file = object->name;

	for (const char *c = object->name; *c; c++) {
		if (*c == '/')
			file = c + 1;
	}
	return file;
}

bool got_file_name_has_any_prefix(const char *file, const char *const *prefixes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!strncmp(file, prefixes[i], strlen(prefixes[i])))
			return true;
	}
	return false;
}

bool got_file_is_libc_or_loader(const char *file)
{
	static const char *const names[] = {"libc.so",  "libc-2.", "libdl.so", "libdl-2.",
					    "ld-linux", "ld-2.",   "ld-musl"};

	return got_file_name_has_any_prefix(file, names, ARRAY_SIZE(names));
}

bool got_file_is_libc(const char *file)
{
	static const char *const names[] = {"libc.so", "libc-2."};

	return got_file_name_has_any_prefix(file, names, ARRAY_SIZE(names));
}

uint32_t got_hash_name(const char *name)
{
	return symbol_hash_compute_gnu_hash(name);
}

/* DT_GNU_HASH has definitions only, which are sorted to the end of the table; DT_HASH has the size
 * of the table. */
size_t got_object_get_first_defined_index(const struct got_object *object)
{
	if (object->gnu_hash_table)
		return object->gnu_hash_table[1];
	return object->sysv_hash_table ? object->sysv_hash_table[1] : 0;
}

const Elf64_Sym *got_object_find_definition(const struct got_object *object, const char *name,
					    uint32_t hash)
{
	struct symbol_hash_tables table = {object->symbols, object->strings,
					   object->symbol_versions, object->gnu_hash_table,
					   object->sysv_hash_table};

	return symbol_hash_find_symbol(&table, SYMBOL_HASH_FUNCTIONS, name, hash);
}

static const char *find_defined_version_name(const struct got_object *object, unsigned wanted)
{
	const uint8_t *at = object->version_definitions;

	while (at) {
		const Elf64_Verdef *entry = (const Elf64_Verdef *)at;
		const Elf64_Verdaux *names = (const Elf64_Verdaux *)(at + entry->vd_aux);
		if (entry->vd_ndx == wanted)
			return object->strings + names->vda_name;
		at = entry->vd_next ? at + entry->vd_next : NULL;
	}
	return NULL;
}

static const char *find_needed_version_name(const struct got_object *object, unsigned wanted)
{
	const uint8_t *at = object->version_needs;

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

const char *got_object_get_symbol_version(const struct got_object *object, size_t index)
{
	unsigned version =
		object->symbol_versions ? object->symbol_versions[index] & VERSION_INDEX_MASK : 0;

	if (version <= VER_NDX_GLOBAL) /* local, or the object's base version */
		return NULL;
	return object->symbols[index].st_shndx == SHN_UNDEF
		       ? find_needed_version_name(object, version)
		       : find_defined_version_name(object, version);
}

bool got_object_is_writable_at(const struct got_object *object, uint64_t address)
{
	for (size_t i = 0; i < object->program_header_count; i++) {
		const Elf64_Phdr *header = &object->program_headers[i];
		if (header->p_type == PT_LOAD && (header->p_flags & PF_W) &&
		    address - (object->base + header->p_vaddr) < header->p_memsz)
			return true;
	}
	return false;
}
