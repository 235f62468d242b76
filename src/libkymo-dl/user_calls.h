/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What copies of libkymo-user are bound to.
 */
#ifndef KYMO_LIBKYMO_DL_USER_CALLS_H
#define KYMO_LIBKYMO_DL_USER_CALLS_H

#include "kymo/kymo.h"
#include "libkymo/api.h"

/* To libkymo; valid once dl_runtime_get_api() gives its table. */
extern struct kymo_callbacks user_calls_direct_table;
/* Each opens libkymo on its first call. */
extern const struct kymo_callbacks user_calls_first_call_table;

void user_calls_fill_direct_table(const struct runtime_api *api);

#endif
