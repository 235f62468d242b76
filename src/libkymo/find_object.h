/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Unwinders of the program are told about arenas.
 */
#ifndef KYMO_LIBKYMO_FIND_OBJECT_H
#define KYMO_LIBKYMO_FIND_OBJECT_H

/* In the constructor: what is needed later, in signal handlers too. */
void find_object_start(void);

#endif
