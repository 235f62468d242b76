/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Who this process is among all whose metrics one machine collects: labels that no two processes
 * share. Process numbers alone do not do: each container has a process 1.
 */
#ifndef KYMO_NCCL_IDENTITY_H
#define KYMO_NCCL_IDENTITY_H

#include <stddef.h>

/* `name="value",` of all labels that are known, escaped: job, host, world_rank, pid, container,
 * pid_namespace. Reads files of /proc. */
void identity_format_labels(char *ret, size_t size);

/* A character of a label's value: one or two. Backslash, quote and newline are escaped; other
 * control characters and bytes that are no ASCII, which need not be UTF-8, become question marks.
 */
static inline unsigned identity_escape_label_character(char character, char ret[2])
{
	ret[0] = '\\';
	if (character == '\\' || character == '"' || character == '\n') {
		ret[1] = character == '\n' ? 'n' : character;
		return 2;
	}
	ret[0] = character;
	if ((unsigned char)character < ' ' || (unsigned char)character >= 0x7f)
		ret[0] = '?';
	return 1;
}

#endif
