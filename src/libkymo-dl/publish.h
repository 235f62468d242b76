/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Who has to know that libkymo was found: the entry points of instrumented programs and the bound
 * copies of libkymo-user.
 */
#ifndef KYMO_LIBKYMO_DL_PUBLISH_H
#define KYMO_LIBKYMO_DL_PUBLISH_H

#include "libkymo/api.h"

/* Once, before dl_runtime_get_api() gives the table away. */
void publish_fill_user_calls_table(const struct runtime_api *api);
/* Once, after it. */
void publish_set_api_of_entries_and_users(const struct runtime_api *api);

/* entries.c */
void entries_set_runtime_api(const struct runtime_api *api);

#endif
