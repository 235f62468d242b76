/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Who has to know that libkymo was found: the entry points of instrumented programs and the bound
 * copies of libkymo-user.
 */
#ifndef KYMO_LIBKYMO_DL_PUBLISH_H
#define KYMO_LIBKYMO_DL_PUBLISH_H

#include "libkymo/api.h"

/* Once, before dl_runtime() gives the table away. */
void publish_prepare(const struct kymo_runtime_api *api);
/* Once, after it. */
void publish_runtime(const struct kymo_runtime_api *api);

/* entries.c */
void entries_connect(const struct kymo_runtime_api *api);

#endif
