/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The note that Go's linker leaves in programs, stripped ones too: name "Go", type 4, the build ID.
 * Go's runtime installs signal handlers by system calls of its own, in the place of those that
 * sampling inside a program needs, and ends the program on a signal that it does not know. No
 * state.
 */
#ifndef KYMO_COMMON_GO_NOTE_H
#define KYMO_COMMON_GO_NOTE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define GO_NOTE_SEARCH_BYTES 512u /* of a segment; the notes of a program are short */

/* True when one of the notes of a segment, of which `size` bytes are given, is Go's. */
static inline bool go_note_is_among(const void *notes, size_t size)
{
	const uint8_t *bytes = (const uint8_t *)notes;
	Elf64_Nhdr head;

	for (size_t at = 0; at < size && size - at >= sizeof(head) + 4;) {
		const uint8_t *name = bytes + at + sizeof(head);

		memcpy(&head, bytes + at, sizeof(head));
		if (head.n_namesz == 4 && head.n_type == 4 && name[0] == 'G' && name[1] == 'o' &&
		    name[2] == 0)
			return true;
		if (head.n_namesz > size || head.n_descsz > size)
			return false;
		at += sizeof(head) + ((head.n_namesz + 3u) & ~3u) + ((head.n_descsz + 3u) & ~3u);
	}
	return false;
}

#endif
