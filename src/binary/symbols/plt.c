/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Names for the entries of procedure linkage tables (x86-64).
 *
 * Linkers lay PLTs out in many ways (.plt, .plt.sec for CET, .plt.got for eagerly bound ones, lld's
 * own order), but every entry that calls out ends in a jump through its GOT word, and the word's
 * relocation names the target. So decode that jump rather than count entries. The first stage of a
 * CET pair has no such jump; it pushes the number of its relocation.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "binary/symbols/private.h"
#include "common/array.h"

#define PLT_SLOT_BYTES_DEFAULT 16u

struct plt_target {
	uint64_t got_slot_address;       /* address of the GOT word */
	const char *name;                /* NULL: IFUNC of this file */
	uint64_t ifunc_resolver_address; /* where name is NULL */
};

struct plt_targets {
	struct plt_target *sorted; /* by got */
	size_t count;
	uint64_t *got_slots_by_relocation; /* GOT word of the n-th relocation of .rela.plt */
	size_t relocation_count;
};

static int compare_target_by_got(const void *left, const void *right)
{
	const struct plt_target *a = left, *b = right;
	return a->got_slot_address < b->got_slot_address
		       ? -1
		       : a->got_slot_address > b->got_slot_address;
}

static bool relocation_to_plt_target(const Elf64_Rela *relocation,
				     const struct elf_section_data *table,
				     const struct elf_section_data *names, struct plt_target *ret)
{
	uint64_t type = ELF64_R_TYPE(relocation->r_info);
	uint64_t index = ELF64_R_SYM(relocation->r_info);
	*ret = (struct plt_target){.got_slot_address = relocation->r_offset};
	if (type == R_X86_64_IRELATIVE) {
		ret->ifunc_resolver_address = (uint64_t)relocation->r_addend;
		return true;
	}
	if ((type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) ||
	    index >= table->size / sizeof(Elf64_Sym))
		return false;
	Elf64_Sym symbol;
	memcpy(&symbol, table->bytes + index * sizeof(symbol), sizeof(symbol));
	if (symbol.st_name == 0 || symbol.st_name >= names->size)
		return false;
	ret->name = (const char *)names->bytes + symbol.st_name;
	return true;
}

/* Adds the relocations of one section to `targets`; `numbered` for .rela.plt. */
static int add_plt_targets_of_relocations(struct plt_targets *targets,
					  const struct elf_section_data *relocations,
					  const struct elf_section_data *table,
					  const struct elf_section_data *names, bool numbered)
{
	size_t count = relocations->size / sizeof(Elf64_Rela);
	if (count == 0)
		return 0;
	struct plt_target *sorted =
		realloc(targets->sorted, (targets->count + count) * sizeof(*sorted));
	if (!sorted)
		return -ENOMEM;
	targets->sorted = sorted;
	if (numbered) {
		targets->got_slots_by_relocation =
			calloc(count, sizeof(*targets->got_slots_by_relocation));
		if (!targets->got_slots_by_relocation)
			return -ENOMEM;
		targets->relocation_count = count;
	}
	for (size_t i = 0; i < count; i++) {
		Elf64_Rela relocation;
		memcpy(&relocation, relocations->bytes + i * sizeof(relocation),
		       sizeof(relocation));
		if (numbered)
			targets->got_slots_by_relocation[i] = relocation.r_offset;
		if (relocation_to_plt_target(&relocation, table, names, &sorted[targets->count]))
			targets->count++;
	}
	return 0;
}

static int read_plt_targets_of_relocations(struct symbol_table *symbols,
					   const struct elf_file *file, const char *name,
					   bool numbered, struct plt_targets *targets)
{
	const struct elf_section *section = elf_section_find(file, name);
	if (!section || section->type != SHT_RELA || section->link >= file->section_count)
		return 0;
	const struct elf_section *dynsym = &file->sections[section->link];
	struct elf_section_data relocations = {0}, table = {0}, names = {0};
	int error = elf_section_read(file, section, &relocations);
	/* Static programs have IRELATIVE relocations only, and no .dynsym. */
	if (!error && dynsym->type == SHT_DYNSYM && dynsym->link < file->section_count) {
		error = elf_section_read(file, dynsym, &table);
		if (!error)
			error = elf_section_read(file, &file->sections[dynsym->link], &names);
	}
	if (!error)
		error = add_plt_targets_of_relocations(targets, &relocations, &table, &names,
						       numbered);
	elf_section_data_deinit(&relocations);
	elf_section_data_deinit(&table);
	if (names.bytes) {
		int kept = symbols_adopt_name_buffer(symbols, names.bytes);
		error = kept ? kept : error;
	}
	return error == -ENOMEM ? error : 0;
}

static const struct plt_target *find_plt_target_by_got(const struct plt_targets *targets,
						       uint64_t got)
{
	if (targets->count == 0)
		return NULL;
	struct plt_target key = {.got_slot_address = got};
	return bsearch(&key, targets->sorted, targets->count, sizeof(key), compare_target_by_got);
}

/* The GOT word that the entry's code jumps through, or whose number it pushes. */
static bool decode_got_address_of_slot(const struct plt_targets *targets, const uint8_t *code,
				       size_t size, uint64_t address, uint64_t *ret)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	size_t at = 0;
	if (size >= sizeof(endbr64) && memcmp(code, endbr64, sizeof(endbr64)) == 0)
		at = sizeof(endbr64);
	if (at < size && code[at] == 0xf2) /* bnd */
		at++;
	if (size - at >= 6 && code[at] == 0xff && code[at + 1] == 0x25) { /* jmp *x(%rip) */
		int32_t displacement;
		memcpy(&displacement, code + at + 2, sizeof(displacement));
		*ret = address + at + 6 + (uint64_t)(int64_t)displacement;
		return true;
	}
	if (size - at >= 5 && code[at] == 0x68) { /* push $n */
		uint32_t index;
		memcpy(&index, code + at + 1, sizeof(index));
		if (index < targets->relocation_count) {
			*ret = targets->got_slots_by_relocation[index];
			return true;
		}
	}
	return false;
}

const char *symbols_create_plt_name(struct symbol_table *symbols, const char *target)
{
	size_t length = strcspn(target, "@");
	char *name = malloc(length + sizeof("@plt"));
	if (!name)
		return NULL;
	memcpy(name, target, length);
	memcpy(name + length, "@plt", sizeof("@plt"));
	return symbols_adopt_name_buffer(symbols, (uint8_t *)name) ? NULL : name;
}

static int defer_ifunc_slot(struct symbol_table *symbols, const struct symbol_ifunc_slot *slot)
{
	if (symbols->slot_count == symbols->slot_capacity) {
		size_t capacity = symbols->slot_capacity ? symbols->slot_capacity * 2 : 64;
		struct symbol_ifunc_slot *slots =
			realloc(symbols->slots, capacity * sizeof(*slots));
		if (!slots)
			return -ENOMEM;
		symbols->slots = slots;
		symbols->slot_capacity = capacity;
	}
	symbols->slots[symbols->slot_count++] = *slot;
	return 0;
}

static int append_plt_slot_symbol(struct symbol_table *symbols, const char *target,
				  uint64_t address, uint64_t size, uint64_t limit)
{
	const char *name = symbols_create_plt_name(symbols, target);
	if (!name)
		return -ENOMEM;
	return symbols_append_candidate(
		symbols,
		&(struct symbol_candidate){.symbol = {address, size, name}, .limit = limit});
}

static int add_or_defer_plt_slot(struct symbol_table *symbols, const struct plt_target *target,
				 uint64_t address, uint64_t size, uint64_t limit)
{
	if (!target->name)
		return defer_ifunc_slot(
			symbols, &(struct symbol_ifunc_slot){address, size, limit,
							     target->ifunc_resolver_address});
	return append_plt_slot_symbol(symbols, target->name, address, size, limit);
}

static int add_plt_slots_of_section(struct symbol_table *symbols, const struct elf_file *file,
				    const char *name, const struct plt_targets *targets)
{
	const struct elf_section *section = elf_section_find(file, name);
	struct elf_section_data code;
	if (!section || section->size > UINT64_MAX - section->address)
		return 0;
	int error = elf_section_read(file, section, &code);
	if (error)
		return error == -ENOMEM ? error : 0;
	size_t slot = section->entry_size == 8 || section->entry_size == 16
			      ? (size_t)section->entry_size
			      : PLT_SLOT_BYTES_DEFAULT;
	for (size_t at = 0; !error && code.size - at >= slot; at += slot) {
		uint64_t got;
		const struct plt_target *target = NULL;
		if (decode_got_address_of_slot(targets, code.bytes + at, slot,
					       section->address + at, &got))
			target = find_plt_target_by_got(targets, got);
		if (target)
			error = add_or_defer_plt_slot(symbols, target, section->address + at, slot,
						      section->address + code.size);
	}
	elf_section_data_deinit(&code);
	return error;
}

int symbols_add_plt_entries(struct symbol_table *symbols, const struct elf_file *file)
{
	static const char *const sections[] = {".plt", ".plt.sec", ".plt.got", ".iplt"};
	if (file->machine != EM_X86_64)
		return 0;
	struct plt_targets targets = {0};
	int error = read_plt_targets_of_relocations(symbols, file, ".rela.plt", true, &targets);
	/* .rela.dyn is large (megabytes) and names targets of .plt.got only. */
	if (!error && elf_section_find(file, ".plt.got"))
		error = read_plt_targets_of_relocations(symbols, file, ".rela.dyn", false,
							&targets);
	if (targets.count > 0)
		qsort(targets.sorted, targets.count, sizeof(*targets.sorted),
		      compare_target_by_got);
	for (size_t i = 0; !error && targets.count && i < ARRAY_SIZE(sections); i++)
		error = add_plt_slots_of_section(symbols, file, sections[i], &targets);
	free(targets.sorted);
	free(targets.got_slots_by_relocation);
	return error;
}

/* Called with the candidates sorted: the best name of an address comes first. */
static const char *find_candidate_name_at(const struct symbol_table *symbols, size_t count,
					  uint64_t address)
{
	size_t low = 0, high = count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (symbols->candidates[middle].symbol.address < address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == count || symbols->candidates[low].symbol.address != address)
		return NULL;
	return symbols->candidates[low].symbol.name;
}

int symbols_add_ifunc_slots(struct symbol_table *symbols)
{
	size_t count = symbols->count;
	for (size_t i = 0; i < symbols->slot_count; i++) {
		const struct symbol_ifunc_slot *slot = &symbols->slots[i];
		const char *name = find_candidate_name_at(symbols, count, slot->resolver);
		int error = append_plt_slot_symbol(symbols, name ? name : "[ifunc]", slot->address,
						   slot->size, slot->limit);
		if (error)
			return error;
	}
	return 0;
}
