/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * .gnu_debugdata: a small ELF file, compressed with xz, inside another.
 */
#ifndef KYMO_BINARY_MINIDEBUG_H
#define KYMO_BINARY_MINIDEBUG_H

#include "binary/elf.h"

/* -ENODATA: the file has none; -ENOTSUP: kymo was built without liblzma. */
int minidebug_open(const struct elf_file *file, struct elf_file **ret);

#endif
