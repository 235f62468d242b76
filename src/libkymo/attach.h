/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The entry for kymo attach (src/cmd/attach.c).
 */
#ifndef KYMO_LIBKYMO_ATTACH_H
#define KYMO_LIBKYMO_ATTACH_H

/* Starts the runtime in a process that runs, with the settings in `block`: "NAME=value" strings one
 * after the other, an empty one at the end. 0 or negative errno (core/attach.h); -EAGAIN: not on
 * this thread, or not now. */
int kymo_attach(const char *block);
/* When the runtime has left: the program's calls lead where they led before. `block` is nothing. 0
 * or negative errno. */
int kymo_detach(const char *block);
int kymo_wake(const char *block);

#endif
