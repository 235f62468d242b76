/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Dynamic symbols of a loaded object, from the memory of the process; see process.h. glibc writes
 * absolute addresses into the dynamic section of objects that it loads (but not into those of the
 * vDSO), so both absolute and relative values are taken.
 */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "inject/process.h"

#define PROGRAM_HEADERS_MAX    64u
#define DYNAMIC_ENTRIES_MAX    512u
#define SYMBOLS_MAX            (1u << 20)
#define SYMBOL_NAMES_BYTES_MAX (64u << 20)

struct process_symbol_table_addresses {
	uint64_t bias, symbols, names, names_size, hash, gnu_hash;
};

static int find_process_symbol_table_addresses(int memory, uint64_t base,
					       struct process_symbol_table_addresses *ret)
{
	Elf64_Ehdr header;
	Elf64_Phdr segments[PROGRAM_HEADERS_MAX];
	Elf64_Dyn dynamic[DYNAMIC_ENTRIES_MAX] = {0};
	uint64_t first = UINT64_MAX, address = 0, size = 0;

	memset(ret, 0, sizeof(*ret));
	if (!process_read_memory(memory, base, &header, sizeof(header)) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) || header.e_ident[EI_CLASS] != ELFCLASS64 ||
	    header.e_phentsize != sizeof(segments[0]) || header.e_phnum > PROGRAM_HEADERS_MAX ||
	    !process_read_memory(memory, base + header.e_phoff, segments,
				 header.e_phnum * sizeof(segments[0])))
		return -ENOEXEC;
	for (unsigned i = 0; i < header.e_phnum; i++) {
		if (segments[i].p_type == PT_LOAD && segments[i].p_vaddr < first)
			first = segments[i].p_vaddr;
		if (segments[i].p_type == PT_DYNAMIC) {
			address = segments[i].p_vaddr;
			size = segments[i].p_memsz;
		}
	}
	ret->bias = base - (first & ~4095ull);
	if (size > sizeof(dynamic))
		size = sizeof(dynamic);
	if (!size || !process_read_memory(memory, ret->bias + address, dynamic, size))
		return -ENOEXEC;
	for (unsigned i = 0; i < DYNAMIC_ENTRIES_MAX && dynamic[i].d_tag != DT_NULL; i++) {
		uint64_t value = dynamic[i].d_un.d_val;
		uint64_t absolute = value < ret->bias ? value + ret->bias : value;

		switch (dynamic[i].d_tag) {
		case DT_SYMTAB:
			ret->symbols = absolute;
			break;
		case DT_STRTAB:
			ret->names = absolute;
			break;
		case DT_STRSZ:
			ret->names_size = value;
			break;
		case DT_HASH:
			ret->hash = absolute;
			break;
		case DT_GNU_HASH:
			ret->gnu_hash = absolute;
			break;
		default:
			break;
		}
	}
	return ret->symbols && ret->names && ret->names_size &&
			       ret->names_size <= SYMBOL_NAMES_BYTES_MAX
		       ? 0
		       : -ENOEXEC;
}

/* The number of symbols stands only in the hash tables: in DT_HASH as the number of chains, in
 * DT_GNU_HASH as the end of the chain of the highest bucket. */
static uint32_t count_hashed_symbols(int memory,
				     const struct process_symbol_table_addresses *tables)
{
	uint32_t head[4], highest = 0, word;
	uint64_t buckets, chains;

	if (tables->hash && process_read_memory(memory, tables->hash, head, 8))
		return head[1];
	if (!tables->gnu_hash ||
	    !process_read_memory(memory, tables->gnu_hash, head, sizeof(head)) ||
	    head[0] > SYMBOLS_MAX || head[2] > SYMBOLS_MAX)
		return 0;
	buckets = tables->gnu_hash + sizeof(head) + head[2] * 8ull;
	chains = buckets + head[0] * 4ull;
	for (uint32_t i = 0; i < head[0]; i++) {
		if (!process_read_memory(memory, buckets + i * 4ull, &word, sizeof(word)))
			return 0;
		if (word > highest)
			highest = word;
	}
	while (highest >= head[1] && highest < SYMBOLS_MAX) {
		if (!process_read_memory(memory, chains + (highest - head[1]) * 4ull, &word,
					 sizeof(word)))
			return 0;
		highest++;
		if (word & 1)
			break;
	}
	return highest;
}

static int compare_symbols_by_address(const void *left, const void *right)
{
	const struct process_symbol *a = left, *b = right;

	return a->start < b->start ? -1 : a->start > b->start;
}

/* From the front functions, from the back what is of each thread. */
static void
fill_function_and_thread_local_symbols(const struct process_symbol_table_addresses *tables,
				       const Elf64_Sym *symbols, uint32_t count,
				       struct process_symbols *ret)
{
	ret->thread_local_symbols = ret->list + count;
	for (uint32_t i = 0; i < count; i++) {
		unsigned type = ELF64_ST_TYPE(symbols[i].st_info);

		if (type == STT_TLS && symbols[i].st_shndx != SHN_UNDEF &&
		    symbols[i].st_name < tables->names_size) {
			*--ret->thread_local_symbols = (struct process_symbol){
				.start = symbols[i].st_value,
				.name = ret->names + symbols[i].st_name,
			};
			ret->thread_local_symbol_count++;
		}
		if ((type != STT_FUNC && type != STT_GNU_IFUNC) ||
		    symbols[i].st_shndx == SHN_UNDEF || symbols[i].st_name >= tables->names_size)
			continue;
		ret->list[ret->count++] = (struct process_symbol){
			.start = tables->bias + symbols[i].st_value,
			.end = tables->bias + symbols[i].st_value + symbols[i].st_size,
			.name = ret->names + symbols[i].st_name,
		};
	}
	qsort(ret->list, ret->count, sizeof(*ret->list), compare_symbols_by_address);
}

int process_symbols_read(int memory, uint64_t base, struct process_symbols *ret)
{
	struct process_symbol_table_addresses tables;
	Elf64_Sym *symbols = NULL;
	uint32_t count;
	int error = find_process_symbol_table_addresses(memory, base, &tables);

	memset(ret, 0, sizeof(*ret));
	if (error)
		return error;
	count = count_hashed_symbols(memory, &tables);
	if (!count || count > SYMBOLS_MAX)
		return -ENOEXEC;
	symbols = calloc(count, sizeof(*symbols));
	ret->list = calloc(count, sizeof(*ret->list));
	ret->names = calloc(1, tables.names_size + 1);
	if (!symbols || !ret->list || !ret->names)
		error = -ENOMEM;
	else if (!process_read_memory(memory, tables.symbols, symbols, count * sizeof(*symbols)) ||
		 !process_read_memory(memory, tables.names, ret->names, tables.names_size))
		error = -EIO;
	else
		fill_function_and_thread_local_symbols(&tables, symbols, count, ret);
	free(symbols);
	if (error)
		process_symbols_free(ret);
	return error;
}

void process_symbols_free(struct process_symbols *symbols)
{
	free(symbols->list);
	free(symbols->names);
	memset(symbols, 0, sizeof(*symbols));
}

uint64_t process_symbols_find_address(const struct process_symbols *symbols, const char *name)
{
	for (size_t i = 0; i < symbols->count; i++) {
		if (!strcmp(symbols->list[i].name, name))
			return symbols->list[i].start;
	}
	return 0;
}

static const struct process_symbol *find_thread_local_symbol(const struct process_symbols *symbols,
							     const char *name)
{
	for (size_t i = 0; i < symbols->thread_local_symbol_count; i++) {
		if (!strcmp(symbols->thread_local_symbols[i].name, name))
			return &symbols->thread_local_symbols[i];
	}
	return NULL;
}

int64_t process_symbols_find_tls_pair_distance(const struct process_symbols *symbols,
					       const char *from, const char *name)
{
	const struct process_symbol *first = find_thread_local_symbol(symbols, from);
	const struct process_symbol *second = find_thread_local_symbol(symbols, name);

	return first && second ? (int64_t)(second->start - first->start) : 0;
}
