/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The functions behind our wrappers: the next definition in the search order (dlsym(3), RTLD_NEXT),
 * found once.
 */
#ifndef KYMO_LIBKYMO_REAL_H
#define KYMO_LIBKYMO_REAL_H

/* Address of the real function of this name; never NULL for functions that libc has. */
void *real_find(_Atomic(void *) *slot, const char *name);

/* REAL(name): the real function, with the type of the declared one. */
#define REAL(name)                                                                                 \
	({                                                                                         \
		static _Atomic(void *) slot_;                                                      \
		(__typeof__(&(name)))real_find(&slot_, #name);                                     \
	})

#define EXPORTED __attribute__((visibility("default")))

#endif
