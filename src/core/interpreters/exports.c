/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See exports.h. The hash table is DT_GNU_HASH: header of four words (buckets, first symbol, words
 * of the Bloom filter, its shift), the filter, the buckets, and a word of hash for each symbol,
 * whose lowest bit ends a chain.
 */
#include "core/interpreters/exports.h"

#include <elf.h>
#include <string.h>

#include "common/symbol_hash.h"
#include "common/syscalls.h"

#define PROGRAM_HEADERS_MAX 32u
#define DYNAMIC_ENTRIES_MAX 64u
#define CHAIN_LENGTH_MAX    4096u
#define SYMBOL_NAME_MAX     64u

static bool read_file_at(int fd, uint64_t offset, void *to, size_t size)
{
	return sys_pread(fd, to, size, offset) == (long)size;
}

static bool find_offset_of_address(const struct elf_exports *exports, uint64_t address,
				   uint64_t *ret)
{
	for (uint32_t i = 0; i < exports->segment_count; i++) {
		if (address >= exports->segments[i].address &&
		    address - exports->segments[i].address < exports->segments[i].size) {
			*ret = exports->segments[i].offset +
			       (address - exports->segments[i].address);
			return true;
		}
	}
	return false;
}

static void add_segment(struct elf_exports *exports, const Elf64_Phdr *program)
{
	if (exports->segment_count == EXPORTS_SEGMENTS_MAX)
		return;
	if (program->p_flags & PF_X && !exports->has_code) {
		exports->code_bias = program->p_vaddr - program->p_offset;
		exports->has_code = true;
	}
	exports->segments[exports->segment_count].address = program->p_vaddr;
	exports->segments[exports->segment_count].offset = program->p_offset;
	exports->segments[exports->segment_count].size = program->p_filesz;
	exports->segment_count++;
}

static bool read_segments(struct elf_exports *exports, Elf64_Phdr *ret_dynamic)
{
	struct {
		Elf64_Ehdr elf;
		Elf64_Phdr programs[PROGRAM_HEADERS_MAX];
	} head;
	long size = sys_pread(exports->fd, &head, sizeof(head), 0);
	bool has_dynamic = false;

	if (size < (long)sizeof(head.elf) || memcmp(head.elf.e_ident, ELFMAG, SELFMAG) ||
	    head.elf.e_ident[EI_CLASS] != ELFCLASS64 || head.elf.e_machine != EM_X86_64 ||
	    head.elf.e_phentsize != sizeof(Elf64_Phdr) || head.elf.e_phoff != sizeof(head.elf))
		return false;
	for (unsigned i = 0; i < head.elf.e_phnum && i < PROGRAM_HEADERS_MAX; i++) {
		const Elf64_Phdr *program = &head.programs[i];

		if ((long)((i + 1) * sizeof(*program) + sizeof(head.elf)) > size)
			return false;
		if (program->p_type == PT_DYNAMIC) {
			*ret_dynamic = *program;
			has_dynamic = true;
		} else if (program->p_type == PT_LOAD) {
			add_segment(exports, program);
		}
	}
	return has_dynamic && exports->has_code;
}

struct dynamic_tables {
	uint64_t hash, symbols, strings;
};

static struct dynamic_tables read_dynamic_tables(const struct elf_exports *exports,
						 const Elf64_Phdr *dynamic)
{
	Elf64_Dyn entries[DYNAMIC_ENTRIES_MAX];
	struct dynamic_tables tables = {0};
	uint64_t wanted = dynamic->p_filesz < sizeof(entries) ? dynamic->p_filesz : sizeof(entries);
	long size = sys_pread(exports->fd, entries, wanted, dynamic->p_offset);

	for (long i = 0; i < size / (long)sizeof(*entries) && entries[i].d_tag != DT_NULL; i++) {
		if (entries[i].d_tag == DT_GNU_HASH)
			tables.hash = entries[i].d_un.d_ptr;
		else if (entries[i].d_tag == DT_SYMTAB)
			tables.symbols = entries[i].d_un.d_ptr;
		else if (entries[i].d_tag == DT_STRTAB)
			tables.strings = entries[i].d_un.d_ptr;
	}
	return tables;
}

bool elf_exports_open(struct elf_exports *exports, int fd)
{
	struct dynamic_tables tables;
	Elf64_Phdr dynamic;
	uint32_t head[4];

	*exports = (struct elf_exports){.fd = fd};
	if (!read_segments(exports, &dynamic))
		return false;
	tables = read_dynamic_tables(exports, &dynamic);
	if (!find_offset_of_address(exports, tables.hash, &exports->hash_offset) ||
	    !find_offset_of_address(exports, tables.symbols, &exports->symbols_offset) ||
	    !find_offset_of_address(exports, tables.strings, &exports->strings_offset) ||
	    !read_file_at(fd, exports->hash_offset, head, sizeof(head)))
		return false;
	exports->bucket_count = head[0];
	exports->first_symbol = head[1];
	exports->bloom_words = head[2];
	exports->bloom_shift = head[3] & 31;
	return exports->bucket_count && exports->bloom_words;
}

static bool bloom_filter_may_have(const struct elf_exports *exports, uint32_t hash)
{
	uint64_t word,
		at = exports->hash_offset + 16 + (uint64_t)(hash / 64 % exports->bloom_words) * 8;

	return read_file_at(exports->fd, at, &word, sizeof(word)) && word >> (hash % 64) & 1 &&
	       word >> ((hash >> exports->bloom_shift) % 64) & 1;
}

static bool symbol_is(const struct elf_exports *exports, uint32_t index, const char *name,
		      Elf64_Sym *ret)
{
	char found[SYMBOL_NAME_MAX];
	size_t size = strlen(name) + 1;

	return size <= sizeof(found) &&
	       read_file_at(exports->fd, exports->symbols_offset + (uint64_t)index * sizeof(*ret),
			    ret, sizeof(*ret)) &&
	       ret->st_shndx != SHN_UNDEF &&
	       read_file_at(exports->fd, exports->strings_offset + ret->st_name, found, size) &&
	       !memcmp(found, name, size);
}

bool elf_exports_find(const struct elf_exports *exports, const char *name, uint64_t *ret_address,
		      uint64_t *ret_size)
{
	uint64_t buckets = exports->hash_offset + 16 + (uint64_t)exports->bloom_words * 8;
	uint64_t chains = buckets + (uint64_t)exports->bucket_count * 4;
	uint32_t hash = symbol_hash_compute_gnu_hash(name), index, word;

	if (!bloom_filter_may_have(exports, hash) ||
	    !read_file_at(exports->fd, buckets + (uint64_t)(hash % exports->bucket_count) * 4,
			  &index, sizeof(index)) ||
	    index < exports->first_symbol)
		return false;
	for (uint32_t i = 0; i < CHAIN_LENGTH_MAX; i++, index++) {
		Elf64_Sym symbol;

		if (!read_file_at(exports->fd,
				  chains + (uint64_t)(index - exports->first_symbol) * 4, &word,
				  sizeof(word)))
			return false;
		if ((word | 1) == (hash | 1) && symbol_is(exports, index, name, &symbol)) {
			*ret_address = symbol.st_value;
			*ret_size = symbol.st_size;
			return true;
		}
		if (word & 1)
			return false;
	}
	return false;
}

bool elf_exports_read_address(const struct elf_exports *exports, uint64_t address, void *to,
			      size_t size)
{
	uint64_t offset;

	return find_offset_of_address(exports, address, &offset) &&
	       read_file_at(exports->fd, offset, to, size);
}
