/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See got_slots.h.
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
#include "wrappers/got_slots.h"

#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>

#include "common/syscalls.h"

enum protection { UNKNOWN, WRITABLE, UNLOCKED, REFUSED, UNFINISHED };

struct rewriting {
	const struct got_object *object;
	const struct got_names *names;
	enum protection relro;
	bool settled, restore;
	/* Wrapped names by symbol, for symbols below `undefined`. Definitions above it matter only
	 * in objects that define a wrapped name. */
	const struct got_name **by_symbol;
	size_t undefined;
	bool defines;
};

/* Large libraries have a hundred thousand relocations of a few thousand symbols: each undefined
 * symbol is looked up once. */
static const struct got_name **scratch(size_t count)
{
	static const struct got_name **memory;
	static size_t size;

	if (count > size) {
		memory = got_allocate(count * 2 * sizeof(void *));
		size = memory ? count * 2 : 0;
	}
	return memory;
}

static bool look_up_symbols(struct rewriting *rewriting)
{
	const struct got_object *object = rewriting->object;

	rewriting->undefined = got_object_undefined(object);
	rewriting->by_symbol = scratch(rewriting->undefined);
	if (!rewriting->by_symbol && rewriting->undefined)
		return false;
	for (size_t i = 0; i < rewriting->undefined; i++)
		rewriting->by_symbol[i] =
			i ? got_names_find(rewriting->names,
					   object->strings + object->symbols[i].st_name)
			  : NULL;
	rewriting->defines = got_names_any_in(rewriting->names, object);
	return true;
}

static const struct got_name *name_of(const struct rewriting *rewriting, size_t symbol)
{
	const struct got_object *object = rewriting->object;

	if (symbol < rewriting->undefined)
		return rewriting->by_symbol[symbol];
	if (!rewriting->defines && object->symbols[symbol].st_shndx != SHN_UNDEF)
		return NULL;
	return got_names_find(rewriting->names, object->strings + object->symbols[symbol].st_name);
}

/* An atomic "or 0" that the kernel does for us: changes nothing, and fails instead of faulting
 * where we may not write (futex(2), FUTEX_WAKE_OP). */
static bool is_writable(uint64_t address)
{
	static uint32_t nobody_waits_here;
	long result =
		sys_call6(SYS_futex, (long)&nobody_waits_here, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG,
			  0, 0, (long)address, FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_LT, 0));

	return result >= 0;
}

static long protect_relro(const struct got_object *object, int protection)
{
	return sys_call3(SYS_mprotect, (long)object->relro_low,
			 (long)(object->relro_high - object->relro_low), protection);
}

static enum protection unlock_relro(const struct rewriting *rewriting, uint64_t slot)
{
	if (is_writable(slot))
		return rewriting->settled ? WRITABLE : UNFINISHED;
	return protect_relro(rewriting->object, PROT_READ | PROT_WRITE) ? REFUSED : UNLOCKED;
}

static bool may_store(struct rewriting *rewriting, uint64_t slot)
{
	const struct got_object *object = rewriting->object;

	if (slot % sizeof(void *) || !got_object_is_data(object, slot))
		return false;
	if (slot < object->relro_low || slot >= object->relro_high)
		return true;
	if (rewriting->relro == UNKNOWN)
		rewriting->relro = unlock_relro(rewriting, slot);
	return rewriting->relro == WRITABLE || rewriting->relro == UNLOCKED;
}

static void store(struct rewriting *rewriting, uint64_t slot, void *value)
{
	if (may_store(rewriting, slot))
		atomic_store_explicit((_Atomic(void *) *)slot, value, memory_order_release);
}

/* x86-64 psABI, 5.2: an unbound entry leads to "push index" behind the jump, with -z ibt behind an
 * endbr64. */
static bool is_push_of(uint64_t code, uint64_t index)
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
static bool is_unbound(const struct got_object *object, const Elf64_Rela *entry, size_t symbol,
		       uint64_t value)
{
	if (value < object->low || value >= object->high)
		return false;
	return object->symbols[symbol].st_shndx == SHN_UNDEF ||
	       is_push_of(value, (uint64_t)(entry - object->plt));
}

/* Will the loader bind this reference to the definition that we know? */
static bool will_bind(const struct got_object *object, const struct got_name *name, size_t symbol)
{
	const char *version = got_object_version(object, symbol);

	if (object->symbols[symbol].st_shndx != SHN_UNDEF && object->symbolic)
		return false;
	if (name->several && !name->start)
		return false;
	return !version || !name->version || !strcmp(version, name->version);
}

static void count(const struct got_name *name)
{
	for (struct got_hook *hook = name->hooks; hook; hook = hook->next)
		hook->wrapper->rewritten += hook->active && hook->wrapper->replacement;
}

static void lead_to_replacement(struct rewriting *rewriting, const struct got_name *name,
				const Elf64_Rela *entry, bool lazy)
{
	const struct got_object *object = rewriting->object;
	uint64_t slot = object->base + entry->r_offset;
	size_t symbol = ELF64_R_SYM(entry->r_info);
	void *value;

	if (!got_object_is_data(object, slot) || slot % sizeof(void *))
		return;
	value = *(void *volatile *)slot;
	if (value == name->target)
		return;
	if (!got_name_is(name, value) &&
	    !(lazy && is_unbound(object, entry, symbol, (uint64_t)value) &&
	      will_bind(object, name, symbol)))
		return;
	store(rewriting, slot, name->target);
	count(name);
}

static void lead_to_original(struct rewriting *rewriting, const struct got_name *name,
			     const Elf64_Rela *entry)
{
	uint64_t slot = rewriting->object->base + entry->r_offset;
	void *value;

	if (!got_object_is_data(rewriting->object, slot) || slot % sizeof(void *))
		return;
	value = *(void *volatile *)slot;
	if (value != name->address && got_name_is(name, value))
		store(rewriting, slot, name->address);
}

static bool has_a_slot(const Elf64_Rela *entry)
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

static void go_through(struct rewriting *rewriting, const Elf64_Rela *entries, size_t entry_count,
		       bool lazy)
{
	for (size_t i = 0; i < entry_count; i++) {
		const struct got_name *name;
		if (!has_a_slot(&entries[i]))
			continue;
		name = name_of(rewriting, ELF64_R_SYM(entries[i].r_info));
		if (!name || !name->target)
			continue;
		if (rewriting->restore)
			lead_to_original(rewriting, name, &entries[i]);
		else
			lead_to_replacement(rewriting, name, &entries[i], lazy);
	}
}

static void go_through_all(struct rewriting *rewriting)
{
	const struct got_object *object = rewriting->object;

	if (!look_up_symbols(rewriting)) {
		rewriting->relro = REFUSED;
		return;
	}
	go_through(rewriting, object->plt, object->plt_count, true);
	/* The loader's relocations of the object to itself come first (DT_RELACOUNT). */
	go_through(rewriting, object->rela + object->relative_count,
		   object->rela_count - object->relative_count, false);
	if (rewriting->relro == UNLOCKED)
		protect_relro(object, PROT_READ);
}

enum got_slots_result got_slots_rewrite(const struct got_object *object,
					const struct got_names *names, bool settled)
{
	struct rewriting rewriting = {.object = object, .names = names, .settled = settled};

	go_through_all(&rewriting);
	if (rewriting.relro == UNFINISHED)
		return GOT_SLOTS_NOT_YET;
	return rewriting.relro == REFUSED ? GOT_SLOTS_REFUSED : GOT_SLOTS_DONE;
}

void got_slots_restore(const struct got_object *object, const struct got_names *names)
{
	struct rewriting rewriting = {
		.object = object, .names = names, .settled = true, .restore = true};

	go_through_all(&rewriting);
}
