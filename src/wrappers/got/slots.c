/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See slots.h.
 *
 * A slot is rewritten only when it holds, or is sure to get, the function that was asked for: a
 * slot that is bound is compared; one that is not bound yet still leads into the object's own
 * procedure linkage table, and is judged by the rules that the loader will bind it by.
 *
 * Read-only relocated data is made writable for the time of the change. Data that should be
 * read-only but is still writable means that the loader is not done with the object (another
 * thread's dlopen): touching its protection would pull the rug from under the loader, so such
 * objects are left for the next scan.
 */
#include "wrappers/got/slots.h"

#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>

#include "common/syscalls.h"

enum relro_writability_kind {
	RELRO_UNKNOWN,
	RELRO_WRITABLE,
	RELRO_UNLOCKED,
	RELRO_REFUSED,
	RELRO_LOADER_BUSY
};

struct object_rewrite_state {
	const struct got_object *object;
	const struct got_name_table *names;
	enum relro_writability_kind relro_writability;
	bool settled, restores_originals;
	bool is_libc; /* whose calls are left alone but for those that a wrapper wants */
	/* Wrapped names by symbol, for symbols below `undefined`. Definitions above it matter only
	 * in objects that define a wrapped name. */
	const struct got_wrapped_name **wrapped_name_of_symbol;
	size_t undefined;
	bool defines_wrapped_names;
};

/* Large libraries have a hundred thousand relocations of a few thousand symbols: each undefined
 * symbol is looked up once. */
static const struct got_wrapped_name **ensure_symbol_scratch_room(size_t count)
{
	static const struct got_wrapped_name **memory;
	static size_t size;

	if (count > size) {
		memory = got_allocate_permanent(count * 2 * sizeof(void *));
		size = memory ? count * 2 : 0;
	}
	return memory;
}

static bool look_up_undefined_symbols(struct object_rewrite_state *rewriting)
{
	const struct got_object *object = rewriting->object;

	rewriting->undefined = got_object_get_first_defined_index(object);
	rewriting->wrapped_name_of_symbol = ensure_symbol_scratch_room(rewriting->undefined);
	if (!rewriting->wrapped_name_of_symbol && rewriting->undefined)
		return false;
	for (size_t i = 0; i < rewriting->undefined; i++)
		rewriting->wrapped_name_of_symbol[i] =
			i ? got_names_find(rewriting->names,
					   object->strings + object->symbols[i].st_name)
			  : NULL;
	rewriting->defines_wrapped_names = got_names_any_defined_in(rewriting->names, object);
	return true;
}

static const struct got_wrapped_name *
find_wrapped_name_of_symbol(const struct object_rewrite_state *rewriting, size_t symbol)
{
	const struct got_object *object = rewriting->object;

	if (symbol < rewriting->undefined)
		return rewriting->wrapped_name_of_symbol[symbol];
	if (!rewriting->defines_wrapped_names && object->symbols[symbol].st_shndx != SHN_UNDEF)
		return NULL;
	return got_names_find(rewriting->names, object->strings + object->symbols[symbol].st_name);
}

/* An atomic "or 0" that the kernel does for us: changes nothing, and fails instead of faulting
 * where we may not write (futex(2), FUTEX_WAKE_OP). */
static bool address_is_writable(uint64_t address)
{
	static uint32_t nobody_waits_here;
	long result =
		sys_call6(SYS_futex, (long)&nobody_waits_here, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG,
			  0, 0, (long)address, FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_LT, 0));

	return result >= 0;
}

static long set_relro_protection(const struct got_object *object, int protection)
{
	return sys_call3(SYS_mprotect, (long)object->relro_low,
			 (long)(object->relro_high - object->relro_low), protection);
}

static enum relro_writability_kind make_relro_writable(const struct object_rewrite_state *rewriting,
						       uint64_t slot)
{
	if (address_is_writable(slot))
		return rewriting->settled ? RELRO_WRITABLE : RELRO_LOADER_BUSY;
	return set_relro_protection(rewriting->object, PROT_READ | PROT_WRITE) ? RELRO_REFUSED
									       : RELRO_UNLOCKED;
}

static bool make_slot_writable(struct object_rewrite_state *rewriting, uint64_t slot)
{
	const struct got_object *object = rewriting->object;

	if (slot % sizeof(void *) || !got_object_is_writable_at(object, slot))
		return false;
	if (slot < object->relro_low || slot >= object->relro_high)
		return true;
	if (rewriting->relro_writability == RELRO_UNKNOWN)
		rewriting->relro_writability = make_relro_writable(rewriting, slot);
	return rewriting->relro_writability == RELRO_WRITABLE ||
	       rewriting->relro_writability == RELRO_UNLOCKED;
}

static void store_slot_if_writable(struct object_rewrite_state *rewriting, uint64_t slot,
				   void *value)
{
	if (make_slot_writable(rewriting, slot))
		atomic_store_explicit((_Atomic(void *) *)slot, value, memory_order_release);
}

/* x86-64 psABI, 5.2: an unbound entry leads to "push index" behind the jump, with -z ibt behind an
 * endbr64. */
static bool is_push_of_index(uint64_t code, uint64_t index)
{
	static const uint8_t endbr64[4] = {0xf3, 0x0f, 0x1e, 0xfa};
	const uint8_t *byte = (const uint8_t *)code;
	uint32_t pushed;

	if (!memcmp(byte, endbr64, sizeof(endbr64)))
		byte += sizeof(endbr64);
	memcpy(&pushed, byte + 1, sizeof(pushed));
	return byte[0] == 0x68 && pushed == index;
}

/* Linkers differ in their tables, so for a symbol that the object does not define any address
 * inside it will do. */
static bool slot_is_unbound(const struct got_object *object, const Elf64_Rela *entry, size_t symbol,
			    uint64_t value)
{
	if (value < object->low || value >= object->high)
		return false;
	return object->symbols[symbol].st_shndx == SHN_UNDEF ||
	       is_push_of_index(value, (uint64_t)(entry - object->plt_relocations));
}

/* Will the loader bind this reference to the definition that we know? */
static bool reference_will_bind_to_name(const struct got_object *object,
					const struct got_wrapped_name *name, size_t symbol)
{
	const char *version = got_object_get_symbol_version(object, symbol);

	if (object->symbols[symbol].st_shndx != SHN_UNDEF && object->is_symbolic)
		return false;
	if (name->has_other_definition && !name->start)
		return false;
	return !version || !name->version || !strcmp(version, name->version);
}

/* An object that stands before libc's function (LD_PRELOAD) and calls its own by name means that
 * one: Nsight Compute's library keeps CUDA from its target when its dlopen is another function. */
static bool object_interposes_name(const struct got_object *object,
				   const struct got_wrapped_name *name)
{
	return name->is_interposer && name->base == object->base &&
	       name->dynamic_section_address == object->dynamic_section_address;
}

static void add_to_rewritten_slot_counts(const struct got_wrapped_name *name)
{
	for (struct got_chained_wrapper *hook = name->wrapper_chain; hook; hook = hook->next)
		hook->wrapper->rewritten_slot_count +=
			hook->is_in_wanted_library && hook->wrapper->replacement;
}

static void set_slot_to_replacement_if_of_name(struct object_rewrite_state *rewriting,
					       const struct got_wrapped_name *name,
					       const Elf64_Rela *entry, bool lazy)
{
	const struct got_object *object = rewriting->object;
	uint64_t slot = object->base + entry->r_offset;
	size_t symbol = ELF64_R_SYM(entry->r_info);
	void *value;

	if (!got_object_is_writable_at(object, slot) || slot % sizeof(void *) ||
	    object_interposes_name(object, name))
		return;
	value = *(void *volatile *)slot;
	if (value == name->target)
		return;
	if (!got_function_is_of_name_or_wrapper(name, value) &&
	    !(lazy && slot_is_unbound(object, entry, symbol, (uint64_t)value) &&
	      reference_will_bind_to_name(object, name, symbol)))
		return;
	store_slot_if_writable(rewriting, slot, name->target);
	add_to_rewritten_slot_counts(name);
}

static void set_slot_to_original(struct object_rewrite_state *rewriting,
				 const struct got_wrapped_name *name, const Elf64_Rela *entry)
{
	uint64_t slot = rewriting->object->base + entry->r_offset;
	void *value;

	if (!got_object_is_writable_at(rewriting->object, slot) || slot % sizeof(void *))
		return;
	value = *(void *volatile *)slot;
	if (value != name->address && got_function_is_of_name_or_wrapper(name, value))
		store_slot_if_writable(rewriting, slot, name->address);
}

static bool relocation_has_slot(const Elf64_Rela *entry)
{
	switch (ELF64_R_TYPE(entry->r_info)) {
	case R_X86_64_JUMP_SLOT:
	case R_X86_64_GLOB_DAT:
		return true;
	case R_X86_64_64:
		return !entry->r_addend;
	default:
		return false;
	}
}

static void rewrite_slots_of_relocations(struct object_rewrite_state *rewriting,
					 const Elf64_Rela *entries, size_t entry_count, bool lazy)
{
	for (size_t i = 0; i < entry_count; i++) {
		const struct got_wrapped_name *name;
		if (!relocation_has_slot(&entries[i]))
			continue;
		name = find_wrapped_name_of_symbol(rewriting, ELF64_R_SYM(entries[i].r_info));
		if (!name || !name->target || (rewriting->is_libc && !name->is_wrapped_within_libc))
			continue;
		if (rewriting->restores_originals)
			set_slot_to_original(rewriting, name, &entries[i]);
		else
			set_slot_to_replacement_if_of_name(rewriting, name, &entries[i], lazy);
	}
}

static bool any_name_is_wrapped_within_libc(const struct got_name_table *names)
{
	for (uint32_t i = 0; i < names->count; i++) {
		if (names->name[i].is_wrapped_within_libc)
			return true;
	}
	return false;
}

static void rewrite_all_slots_of_object(struct object_rewrite_state *rewriting)
{
	const struct got_object *object = rewriting->object;

	if (rewriting->is_libc && !any_name_is_wrapped_within_libc(rewriting->names))
		return;
	if (!look_up_undefined_symbols(rewriting)) {
		rewriting->relro_writability = RELRO_REFUSED;
		return;
	}
	rewrite_slots_of_relocations(rewriting, object->plt_relocations,
				     object->plt_relocation_count, true);
	/* The loader's relocations of the object to itself come first (DT_RELACOUNT). */
	rewrite_slots_of_relocations(
		rewriting, object->relocations + object->relative_relocation_count,
		object->relocation_count - object->relative_relocation_count, false);
	if (rewriting->relro_writability == RELRO_UNLOCKED)
		set_relro_protection(object, PROT_READ);
}

enum got_slots_result got_slots_rewrite(const struct got_object *object,
					const struct got_name_table *names, bool settled)
{
	struct object_rewrite_state rewriting = {
		.object = object,
		.names = names,
		.settled = settled,
		.is_libc = got_file_is_libc(got_object_get_file_name(object))};

	rewrite_all_slots_of_object(&rewriting);
	if (rewriting.relro_writability == RELRO_LOADER_BUSY)
		return GOT_SLOTS_LOADER_BUSY;
	return rewriting.relro_writability == RELRO_REFUSED ? GOT_SLOTS_WRITE_REFUSED
							    : GOT_SLOTS_REWRITTEN;
}

void got_slots_restore(const struct got_object *object, const struct got_name_table *names)
{
	struct object_rewrite_state rewriting = {
		.object = object,
		.names = names,
		.settled = true,
		.restores_originals = true,
		.is_libc = got_file_is_libc(got_object_get_file_name(object))};

	rewrite_all_slots_of_object(&rewriting);
}
