/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The dynamic section of the new file: it needs one library more. GNU ld leaves a few empty entries
 * at its end, which are used; where there is none the section moves. The strings always move,
 * because they grow.
 */
#include "binary/rewrite_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Entries that are added: DT_NEEDED, DT_RUNPATH; and the empty one at the end. */
#define ENTRIES_ADDED 2u

static Elf64_Dyn entry_get(const struct rewrite *rewrite, size_t index)
{
	Elf64_Dyn entry;

	memcpy(&entry, rewrite->bytes + rewrite->dynamic_offset + index * sizeof(entry),
	       sizeof(entry));
	return entry;
}

static bool value_get(const struct rewrite *rewrite, int64_t tag, uint64_t *ret)
{
	for (size_t i = 0; i < rewrite->dynamic_count; i++) {
		Elf64_Dyn entry = entry_get(rewrite, i);

		if (entry.d_tag == tag) {
			*ret = entry.d_un.d_val;
			return true;
		}
	}
	return false;
}

/* A string of the dynamic section that ends inside, or "". */
static const char *string_get(const struct rewrite *rewrite, uint64_t at)
{
	if (at >= rewrite->strings_size ||
	    !memchr(rewrite->bytes + rewrite->strings_offset + at, 0, rewrite->strings_size - at))
		return "";
	return (const char *)rewrite->bytes + rewrite->strings_offset + at;
}

static int check_name(struct rewrite *rewrite)
{
	static const char *const refused[] = {"ld-linux", "ld-musl", "libc.so", "libc.musl",
					      "libkymo"};
	uint64_t at;
	const char *name = value_get(rewrite, DT_SONAME, &at) ? string_get(rewrite, at) : "";

	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
		if (strncmp(name, refused[i], strlen(refused[i])) == 0)
			return problem_set(rewrite->problem, -ENOTSUP,
					   "%s is what kymo itself needs to work (%s): "
					   "it cannot be rewritten",
					   rewrite->name, name);
	}
	return 0;
}

static int check_flags(struct rewrite *rewrite)
{
	uint64_t value = 0;
	bool relocated = value_get(rewrite, DT_TEXTREL, &value);

	if (value_get(rewrite, DT_FLAGS, &value))
		relocated |= value & DF_TEXTREL;
	if (relocated)
		return problem_set(rewrite->problem, -ENOTSUP,
				   "%s: its code is changed by the loader (text relocations); "
				   "build it with -fPIC",
				   rewrite->name);
	if (!rewrite->interpreter && rewrite->header.e_type == ET_DYN &&
	    value_get(rewrite, DT_FLAGS_1, &value) && value & DF_1_PIE)
		return problem_set(rewrite->problem, -ENOTSUP,
				   "%s is statically linked: nothing would load kymo's library "
				   "into it; link it dynamically",
				   rewrite->name);
	return 0;
}

int rewrite_dynamic_read(struct rewrite *rewrite)
{
	rewrite->dynamic_room = rewrite->dynamic_segment->p_filesz / sizeof(Elf64_Dyn);
	while (rewrite->dynamic_count < rewrite->dynamic_room &&
	       entry_get(rewrite, rewrite->dynamic_count).d_tag != DT_NULL)
		rewrite->dynamic_count++;
	if (rewrite->dynamic_count == rewrite->dynamic_room ||
	    !value_get(rewrite, DT_STRTAB, &rewrite->strings_vaddr) ||
	    !value_get(rewrite, DT_STRSZ, &rewrite->strings_size) ||
	    !rewrite_offset(rewrite, rewrite->strings_vaddr, rewrite->strings_size,
			    &rewrite->strings_offset))
		return problem_set(rewrite->problem, -EBADMSG, "%s: its dynamic section is damaged",
				   rewrite->name);
	int error = check_name(rewrite);

	return error ? error : check_flags(rewrite);
}

static bool is_needed_already(const struct rewrite *rewrite)
{
	for (size_t i = 0; i < rewrite->dynamic_count; i++) {
		Elf64_Dyn entry = entry_get(rewrite, i);

		if (entry.d_tag == DT_NEEDED &&
		    strcmp(string_get(rewrite, entry.d_un.d_val), rewrite->options->needed) == 0)
			return true;
	}
	return false;
}

/* Whether `count` entries more fit, with an empty one behind them. What follows the last entry
 * must be empty, for some linkers put something else there. */
static bool has_room(const struct rewrite *rewrite, size_t count)
{
	if (rewrite->dynamic_count + count + 1 > rewrite->dynamic_room)
		return false;
	for (size_t i = 0; i <= count; i++) {
		Elf64_Dyn entry = entry_get(rewrite, rewrite->dynamic_count + i);

		if (entry.d_tag != DT_NULL || entry.d_un.d_val != 0)
			return false;
	}
	return true;
}

static struct rewrite_piece *piece_at(struct rewrite *rewrite, uint64_t vaddr, uint64_t offset,
				      uint64_t old_size, uint64_t size)
{
	size_t section = rewrite_section_at(rewrite, vaddr);
	struct rewrite_piece *piece = rewrite_piece_add(rewrite, section, size);

	if (!piece)
		return NULL;
	piece->old_vaddr = vaddr;
	piece->old_offset = offset;
	piece->old_size = old_size;
	piece->bytes = calloc(1, (size_t)size);
	if (!piece->bytes)
		return NULL;
	memcpy(piece->bytes, rewrite->bytes + offset, (size_t)old_size);
	return piece;
}

/* The path that replaces an old DT_RUNPATH or DT_RPATH, or NULL. */
static const char *path_before(const struct rewrite *rewrite)
{
	uint64_t at;

	if (value_get(rewrite, DT_RUNPATH, &at) || value_get(rewrite, DT_RPATH, &at))
		return string_get(rewrite, at);
	return NULL;
}

int rewrite_dynamic_grow(struct rewrite *rewrite)
{
	const struct rewrite_options *options = rewrite->options;

	if (!options->needed || is_needed_already(rewrite))
		return 0;
	const char *before = options->runpath ? path_before(rewrite) : NULL;
	uint64_t more = strlen(options->needed) + 1;

	if (options->runpath)
		more += strlen(options->runpath) + 1 + (before ? strlen(before) + 1 : 0);
	rewrite->strings = piece_at(rewrite, rewrite->strings_vaddr, rewrite->strings_offset,
				    rewrite->strings_size, rewrite->strings_size + more);
	if (!rewrite->strings)
		return -ENOMEM;
	if (has_room(rewrite, options->runpath && !before ? 2 : 1))
		return 0;
	uint64_t old = rewrite->dynamic_count * sizeof(Elf64_Dyn);

	rewrite->dynamic =
		piece_at(rewrite, rewrite->dynamic_segment->p_vaddr, rewrite->dynamic_offset, old,
			 old + (ENTRIES_ADDED + 1) * sizeof(Elf64_Dyn));
	if (!rewrite->dynamic)
		return -ENOMEM;
	/* The section is as long as the segment said, not as what is in use. */
	rewrite->dynamic->old_size = rewrite->dynamic_segment->p_filesz;
	return 0;
}

/* ---- filling, when it is known where everything is ---- */

static bool is_address(int64_t tag)
{
	return tag == DT_HASH || tag == DT_GNU_HASH || tag == DT_STRTAB || tag == DT_SYMTAB ||
	       tag == DT_VERSYM || tag == DT_VERNEED || tag == DT_VERDEF;
}

static uint64_t moved_address(const struct rewrite *rewrite, uint64_t vaddr)
{
	for (size_t i = 0; i < rewrite->piece_count; i++) {
		const struct rewrite_piece *piece = &rewrite->pieces[i];

		if (piece->old_vaddr && piece->old_vaddr == vaddr)
			return piece->vaddr;
	}
	return vaddr;
}

/* Adds the strings; gives where they are. */
static void add_strings(struct rewrite *rewrite, uint64_t *needed, uint64_t *runpath)
{
	const struct rewrite_options *options = rewrite->options;
	struct rewrite_piece *strings = rewrite->strings;
	char *at = (char *)strings->bytes + strings->old_size;
	const char *before = path_before(rewrite);

	*needed = strings->old_size;
	at = stpcpy(at, options->needed) + 1;
	if (!options->runpath)
		return;
	*runpath = (uint64_t)(at - (char *)strings->bytes);
	if (before && *before) {
		at = stpcpy(at, before);
		*at++ = ':';
	}
	stpcpy(at, options->runpath);
}

/* How many there are then; the new library's is the one at `place`. */
static size_t fill_entries(struct rewrite *rewrite, Elf64_Dyn *entries, size_t count, size_t place)
{
	uint64_t needed = 0, runpath = 0;
	bool add_path = rewrite->strings && rewrite->options->runpath;

	if (rewrite->strings) {
		add_strings(rewrite, &needed, &runpath);
		entries[place] = (Elf64_Dyn){.d_tag = DT_NEEDED, .d_un.d_val = needed};
	}
	for (size_t i = 0; i < count; i++) {
		Elf64_Dyn *entry = &entries[i];

		if (is_address(entry->d_tag))
			entry->d_un.d_ptr = moved_address(rewrite, entry->d_un.d_ptr);
		if (entry->d_tag == DT_STRSZ && rewrite->strings)
			entry->d_un.d_val = rewrite->strings->size;
		if ((entry->d_tag == DT_RUNPATH || entry->d_tag == DT_RPATH) && runpath) {
			entry->d_un.d_val = runpath;
			add_path = false;
		}
	}
	if (add_path)
		entries[count++] = (Elf64_Dyn){.d_tag = DT_RUNPATH, .d_un.d_val = runpath};
	return count;
}

/* The new library comes first, so that it is looked at and started before others; but for the run
 * time of AddressSanitizer, which ends a program that has another library in front of it
 * (AsanCheckDynamicRTPrereqs in its asan_linux.cpp). Their names differ by compiler. Either way the
 * loader starts all libraries before the file's own constructors run. */
static size_t place_of_needed(const struct rewrite *rewrite)
{
	static const char *const runtimes[] = {"libasan.so", "libclang_rt.asan"};

	for (size_t i = 0; i < rewrite->dynamic_count; i++) {
		Elf64_Dyn entry = entry_get(rewrite, i);
		const char *name = string_get(rewrite, entry.d_un.d_val);

		if (entry.d_tag != DT_NEEDED)
			continue;
		for (size_t j = 0; j < sizeof(runtimes) / sizeof(*runtimes); j++) {
			if (strncmp(name, runtimes[j], strlen(runtimes[j])) == 0)
				return i + 1;
		}
		break;
	}
	return 0;
}

int rewrite_dynamic_fill(struct rewrite *rewrite)
{
	size_t count = rewrite->dynamic_count, place = place_of_needed(rewrite);
	size_t added = rewrite->strings ? 1 : 0;
	Elf64_Dyn *entries = calloc(count + ENTRIES_ADDED + 1, sizeof(*entries));

	if (!entries)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		entries[i + (i >= place ? added : 0)] = entry_get(rewrite, i);
	count = fill_entries(rewrite, entries, count + added, place);
	if (rewrite->dynamic)
		memcpy(rewrite->dynamic->bytes, entries, count * sizeof(*entries));
	else
		memcpy(rewrite->bytes + rewrite->dynamic_offset, entries, count * sizeof(*entries));
	free(entries);
	return 0;
}
