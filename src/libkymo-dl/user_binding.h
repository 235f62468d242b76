/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The copies of libkymo-user in this process; see kymo/binding.h.
 */
#ifndef KYMO_LIBKYMO_DL_USER_BINDING_H
#define KYMO_LIBKYMO_DL_USER_BINDING_H

/* Looks for copies that were loaded before this library and binds them. */
void user_binding_find_and_attach_all(void);
/* libkymo has been found: binds all copies to it. */
void user_binding_bind_all_to_libkymo(void);

#endif
