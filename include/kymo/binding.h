/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * How libkymo-user and libkymo-dl find each other, whichever is loaded first. Not installed.
 *
 * Each puts an ELF note of the name "kymo" into its object, whose contents is the distance to a
 * struct; the other one finds it with dl_iterate_phdr(3). Unlike symbols that works for libraries
 * that were opened RTLD_LOCAL and for a libkymo-user.a in the program itself. The structs are an
 * ABI, because static copies of any version exist: append only.
 */
#ifndef KYMO_BINDING_H
#define KYMO_BINDING_H

#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <string.h>

#include "kymo/kymo.h"

/* Types of notes. */
#define KYMO_NOTE_USER 1 /* struct kymo_user_binding */
#define KYMO_NOTE_DL   2 /* struct kymo_dl_binding */

/* One copy of libkymo-user. */
struct kymo_user_binding {
	uint32_t size;
	/* From now on call these (NULL: nothing). Members beyond their size count as NULL. */
	void (*bind)(const struct kymo_callbacks *callbacks);
	struct kymo_user_binding *next; /* libkymo-dl's */
};

/* libkymo-dl. */
struct kymo_dl_binding {
	uint32_t size;
	void (*attach)(struct kymo_user_binding *user); /* again: does nothing */
	void (*detach)(struct kymo_user_binding *user); /* the copy is about to be unloaded */
};

/* The note of an object: `type` is a number in a macro, `object` a hidden symbol. */
#define KYMO_NOTE(type, object) KYMO_NOTE_(type, object)
#define KYMO_NOTE_(type, object)                                                                   \
	__asm__(".pushsection .note.kymo, \"a\", @note\n"                                          \
		".balign 4\n"                                                                      \
		".long 5, 4, " #type "\n"                                                          \
		".asciz \"kymo\"\n"                                                                \
		".balign 4\n"                                                                      \
		".long " #object " - .\n"                                                          \
		".popsection\n")

struct kymo_note_search {
	uint32_t type;
	void (*found)(void *object, void *context);
	void *context;
	const struct dl_phdr_info *info;
};

/* Tools that rewrite programs may have moved the note away from what it tells of (patchelf). */
static inline int kymo_note_leads_to_data(const struct dl_phdr_info *info, uintptr_t object)
{
	uintptr_t at = object - info->dlpi_addr;

	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];

		if (segment->p_type == PT_LOAD && segment->p_flags & PF_W &&
		    at >= segment->p_vaddr &&
		    at + 2 * sizeof(void *) <= segment->p_vaddr + segment->p_filesz)
			return object % sizeof(void *) == 0;
	}
	return 0;
}

/* Calls found() for each note of this type in one segment of notes. */
static inline void kymo_note_scan(const struct kymo_note_search *search, const char *notes,
				  uint64_t size)
{
	while (size >= sizeof(ElfW(Nhdr))) {
		ElfW(Nhdr) note;
		uint64_t name_size, whole;
		const char *name = notes + sizeof(note);

		memcpy(&note, notes, sizeof(note));
		name_size = ((uint64_t)note.n_namesz + 3) & ~3ull;
		whole = sizeof(note) + name_size + (((uint64_t)note.n_descsz + 3) & ~3ull);
		if (whole > size)
			return;
		if (note.n_type == search->type && note.n_namesz == 5 && note.n_descsz == 4 &&
		    !memcmp(name, "kymo", 5)) {
			int32_t distance;
			uintptr_t object;

			memcpy(&distance, name + name_size, sizeof(distance));
			object = (uintptr_t)(name + name_size) + (uintptr_t)(intptr_t)distance;
			if (kymo_note_leads_to_data(search->info, object))
				search->found((void *)object, search->context);
		}
		notes += whole;
		size -= whole;
	}
}

static inline int kymo_note_visit(struct dl_phdr_info *info, size_t size, void *context)
{
	(void)size;
	((struct kymo_note_search *)context)->info = info;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		if (segment->p_type == PT_NOTE && segment->p_align <= 4)
			kymo_note_scan(
				(const struct kymo_note_search *)context,
				(const char *)(uintptr_t)(info->dlpi_addr + segment->p_vaddr),
				segment->p_memsz);
	}
	return 0;
}

/* Calls found() for every object in the process that carries the note. The loader's list is locked
 * meanwhile (dl_iterate_phdr), so found() only looks and remembers. */
static inline void kymo_note_find(uint32_t type, void (*found)(void *object, void *context),
				  void *context)
{
	struct kymo_note_search search;

	search.type = type;
	search.found = found;
	search.context = context;
	dl_iterate_phdr(kymo_note_visit, &search);
}

#endif
