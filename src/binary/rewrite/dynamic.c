/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The dynamic section of the new file: it needs one library more. GNU ld leaves a few empty entries
 * at its end, which are used; where there is none the section moves. The strings always move,
 * because they grow.
 */
#include "binary/rewrite/private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"

/* Entries that are added: DT_NEEDED, DT_RUNPATH; and the empty one at the end. */
#define DYNAMIC_ENTRIES_ADDED_MAX 2u

static Elf64_Dyn read_dynamic_entry_at(const struct rewrite_job *rewrite, size_t index)
{
	Elf64_Dyn entry;

	memcpy(&entry, rewrite->bytes + rewrite->dynamic_offset + index * sizeof(entry),
	       sizeof(entry));
	return entry;
}

static bool find_dynamic_value(const struct rewrite_job *rewrite, int64_t tag, uint64_t *ret)
{
	for (size_t i = 0; i < rewrite->dynamic_entry_count; i++) {
		Elf64_Dyn entry = read_dynamic_entry_at(rewrite, i);

		if (entry.d_tag == tag) {
			*ret = entry.d_un.d_val;
			return true;
		}
	}
	return false;
}

/* A string of the dynamic section that ends inside, or "". */
static const char *get_dynamic_string(const struct rewrite_job *rewrite, uint64_t at)
{
	if (at >= rewrite->dynstr_size ||
	    !memchr(rewrite->bytes + rewrite->dynstr_offset + at, 0, rewrite->dynstr_size - at))
		return "";
	return (const char *)rewrite->bytes + rewrite->dynstr_offset + at;
}

static int refuse_library_that_kymo_needs(struct rewrite_job *rewrite)
{
	static const char *const refused[] = {"ld-linux", "ld-musl", "libc.so", "libc.musl",
					      "libkymo"};
	uint64_t at;
	const char *name =
		find_dynamic_value(rewrite, DT_SONAME, &at) ? get_dynamic_string(rewrite, at) : "";

	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		if (strncmp(name, refused[i], strlen(refused[i])) == 0)
			return problem_set(rewrite->problem, -ENOTSUP,
					   "kymo needs %s to work (%s): it cannot be rewritten",
					   rewrite->name, name);
	}
	return 0;
}

static int refuse_by_dynamic_flags(struct rewrite_job *rewrite)
{
	uint64_t value = 0;
	bool relocated = find_dynamic_value(rewrite, DT_TEXTREL, &value);

	if (find_dynamic_value(rewrite, DT_FLAGS, &value))
		relocated |= value & DF_TEXTREL;
	if (relocated)
		return problem_set(
			rewrite->problem, -ENOTSUP,
			"%s: the loader changes its code (text relocations); build it with -fPIC",
			rewrite->name);
	if (!rewrite->interpreter_segment && rewrite->header.e_type == ET_DYN &&
	    find_dynamic_value(rewrite, DT_FLAGS_1, &value) && value & DF_1_PIE)
		return problem_set(rewrite->problem, -ENOTSUP,
				   "%s is statically linked: nothing would load kymo's library "
				   "into it; link it dynamically",
				   rewrite->name);
	return 0;
}

int rewrite_read_dynamic_section(struct rewrite_job *rewrite)
{
	rewrite->dynamic_entry_capacity = rewrite->dynamic_segment->p_filesz / sizeof(Elf64_Dyn);
	while (rewrite->dynamic_entry_count < rewrite->dynamic_entry_capacity &&
	       read_dynamic_entry_at(rewrite, rewrite->dynamic_entry_count).d_tag != DT_NULL)
		rewrite->dynamic_entry_count++;
	if (rewrite->dynamic_entry_count == rewrite->dynamic_entry_capacity ||
	    !find_dynamic_value(rewrite, DT_STRTAB, &rewrite->dynstr_vaddr) ||
	    !find_dynamic_value(rewrite, DT_STRSZ, &rewrite->dynstr_size) ||
	    !rewrite_vaddr_to_offset(rewrite, rewrite->dynstr_vaddr, rewrite->dynstr_size,
				     &rewrite->dynstr_offset))
		return problem_set(rewrite->problem, -EBADMSG, "%s: its dynamic section is damaged",
				   rewrite->name);
	int error = refuse_library_that_kymo_needs(rewrite);

	return error ? error : refuse_by_dynamic_flags(rewrite);
}

static bool is_library_needed_already(const struct rewrite_job *rewrite)
{
	for (size_t i = 0; i < rewrite->dynamic_entry_count; i++) {
		Elf64_Dyn entry = read_dynamic_entry_at(rewrite, i);

		if (entry.d_tag == DT_NEEDED &&
		    strcmp(get_dynamic_string(rewrite, entry.d_un.d_val),
			   rewrite->options->needed_library) == 0)
			return true;
	}
	return false;
}

/* Whether `count` entries more fit, with an empty one behind them. What follows the last entry
 * must be empty, for some linkers put something else there. */
static bool has_room_for_dynamic_entries(const struct rewrite_job *rewrite, size_t count)
{
	if (rewrite->dynamic_entry_count + count + 1 > rewrite->dynamic_entry_capacity)
		return false;
	for (size_t i = 0; i <= count; i++) {
		Elf64_Dyn entry = read_dynamic_entry_at(rewrite, rewrite->dynamic_entry_count + i);

		if (entry.d_tag != DT_NULL || entry.d_un.d_val != 0)
			return false;
	}
	return true;
}

static struct new_segment_piece *add_copied_piece(struct rewrite_job *rewrite, uint64_t vaddr,
						  uint64_t offset, uint64_t old_size, uint64_t size)
{
	size_t section = rewrite_find_section_at(rewrite, vaddr);
	struct new_segment_piece *piece = rewrite_add_piece(rewrite, section, size);

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
static const char *get_old_run_path(const struct rewrite_job *rewrite)
{
	uint64_t at;

	if (find_dynamic_value(rewrite, DT_RUNPATH, &at) ||
	    find_dynamic_value(rewrite, DT_RPATH, &at))
		return get_dynamic_string(rewrite, at);
	return NULL;
}

int rewrite_grow_dynamic_section(struct rewrite_job *rewrite)
{
	const struct rewrite_options *options = rewrite->options;

	if (!options->needed_library || is_library_needed_already(rewrite))
		return 0;
	const char *before = options->added_runpath ? get_old_run_path(rewrite) : NULL;
	uint64_t more = strlen(options->needed_library) + 1;

	if (options->added_runpath)
		more += strlen(options->added_runpath) + 1 + (before ? strlen(before) + 1 : 0);
	rewrite->dynstr = add_copied_piece(rewrite, rewrite->dynstr_vaddr, rewrite->dynstr_offset,
					   rewrite->dynstr_size, rewrite->dynstr_size + more);
	if (!rewrite->dynstr)
		return -ENOMEM;
	if (has_room_for_dynamic_entries(rewrite, options->added_runpath && !before ? 2 : 1))
		return 0;
	uint64_t old = rewrite->dynamic_entry_count * sizeof(Elf64_Dyn);

	rewrite->dynamic = add_copied_piece(
		rewrite, rewrite->dynamic_segment->p_vaddr, rewrite->dynamic_offset, old,
		old + (DYNAMIC_ENTRIES_ADDED_MAX + 1) * sizeof(Elf64_Dyn));
	if (!rewrite->dynamic)
		return -ENOMEM;
	/* The section is as long as the segment said, not as what is in use. */
	rewrite->dynamic->old_size = rewrite->dynamic_segment->p_filesz;
	return 0;
}

/* ---- filling, when it is known where everything is ---- */

static bool dynamic_tag_is_table_address(int64_t tag)
{
	return tag == DT_HASH || tag == DT_GNU_HASH || tag == DT_STRTAB || tag == DT_SYMTAB ||
	       tag == DT_VERSYM || tag == DT_VERNEED || tag == DT_VERDEF;
}

static uint64_t get_new_address_if_piece_moved(const struct rewrite_job *rewrite, uint64_t vaddr)
{
	for (size_t i = 0; i < rewrite->piece_count; i++) {
		const struct new_segment_piece *piece = &rewrite->pieces[i];

		if (piece->old_vaddr && piece->old_vaddr == vaddr)
			return piece->vaddr;
	}
	return vaddr;
}

/* Adds the strings; gives where they are. */
static void add_dynamic_strings(struct rewrite_job *rewrite, uint64_t *needed, uint64_t *runpath)
{
	const struct rewrite_options *options = rewrite->options;
	struct new_segment_piece *strings = rewrite->dynstr;
	char *at = (char *)strings->bytes + strings->old_size;
	const char *before = get_old_run_path(rewrite);

	*needed = strings->old_size;
	at = stpcpy(at, options->needed_library) + 1;
	if (!options->added_runpath)
		return;
	*runpath = (uint64_t)(at - (char *)strings->bytes);
	if (before && *before) {
		at = stpcpy(at, before);
		*at++ = ':';
	}
	stpcpy(at, options->added_runpath);
}

/* How many there are then; the new library's is the one at `place`. */
static size_t fill_dynamic_entries(struct rewrite_job *rewrite, Elf64_Dyn *entries, size_t count,
				   size_t place)
{
	uint64_t needed = 0, runpath = 0;
	bool add_path = rewrite->dynstr && rewrite->options->added_runpath;

	if (rewrite->dynstr) {
		add_dynamic_strings(rewrite, &needed, &runpath);
		entries[place] = (Elf64_Dyn){.d_tag = DT_NEEDED, .d_un.d_val = needed};
	}
	for (size_t i = 0; i < count; i++) {
		Elf64_Dyn *entry = &entries[i];

		if (dynamic_tag_is_table_address(entry->d_tag))
			entry->d_un.d_ptr =
				get_new_address_if_piece_moved(rewrite, entry->d_un.d_ptr);
		if (entry->d_tag == DT_STRSZ && rewrite->dynstr)
			entry->d_un.d_val = rewrite->dynstr->size;
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
static size_t choose_index_of_needed_entry(const struct rewrite_job *rewrite)
{
	static const char *const runtimes[] = {"libasan.so", "libclang_rt.asan"};

	for (size_t i = 0; i < rewrite->dynamic_entry_count; i++) {
		Elf64_Dyn entry = read_dynamic_entry_at(rewrite, i);
		const char *name = get_dynamic_string(rewrite, entry.d_un.d_val);

		if (entry.d_tag != DT_NEEDED)
			continue;
		for (size_t j = 0; j < ARRAY_SIZE(runtimes); j++) {
			if (strncmp(name, runtimes[j], strlen(runtimes[j])) == 0)
				return i + 1;
		}
		break;
	}
	return 0;
}

int rewrite_fill_dynamic_section(struct rewrite_job *rewrite)
{
	size_t count = rewrite->dynamic_entry_count, place = choose_index_of_needed_entry(rewrite);
	size_t added = rewrite->dynstr ? 1 : 0;
	Elf64_Dyn *entries = calloc(count + DYNAMIC_ENTRIES_ADDED_MAX + 1, sizeof(*entries));

	if (!entries)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		entries[i + (i >= place ? added : 0)] = read_dynamic_entry_at(rewrite, i);
	count = fill_dynamic_entries(rewrite, entries, count + added, place);
	if (rewrite->dynamic)
		memcpy(rewrite->dynamic->bytes, entries, count * sizeof(*entries));
	else
		memcpy(rewrite->bytes + rewrite->dynamic_offset, entries, count * sizeof(*entries));
	free(entries);
	return 0;
}
