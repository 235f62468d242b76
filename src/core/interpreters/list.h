/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The interpreters that were found, for the files of this room.
 */
#ifndef KYMO_CORE_INTERPRETERS_LIST_H
#define KYMO_CORE_INTERPRETERS_LIST_H

#include "core/interpreters/kind.h"

#define INTERPRETERS_MAX 4u

extern struct interpreter interpreter_list[INTERPRETERS_MAX];
extern _Atomic uint32_t interpreter_list_count;

#endif
