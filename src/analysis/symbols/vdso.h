/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The vDSO: a module without a file. The kernel maps the same one into every process, so that of
 * this process will do if its build-id is the recorded one.
 */
#ifndef KYMO_ANALYSIS_SYMBOLS_VDSO_H
#define KYMO_ANALYSIS_SYMBOLS_VDSO_H

#include "binary/elf.h"

/* -ENOENT: this process has none. */
int vdso_elf_open(struct elf_file **ret);

#endif
