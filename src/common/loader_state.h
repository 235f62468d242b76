/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Calls of the loader on a thread of the program's, which finds nothing changed afterwards: neither
 * in what dlerror(3) answers nor in errno.
 */
#ifndef KYMO_COMMON_LOADER_STATE_H
#define KYMO_COMMON_LOADER_STATE_H

/* dlopen(3) and dlclose(3). */
void *loader_dlopen_keeping_dlerror(const char *path, int flags);
void loader_dlclose_keeping_dlerror(void *handle);

/* Puts aside what the loader keeps for dlerror(3) in this thread, for calls in between that may
 * leave something there; and errno. */
struct loader_dlerror_state {
	void **place; /* NULL: a libc that does not tell where it is */
	void *kept;
	int error;
};

void loader_save_dlerror_state(struct loader_dlerror_state *state);
void loader_restore_dlerror_state(const struct loader_dlerror_state *state);

#endif
