/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Settings that libkymo-dl needs before libkymo has read its own: OpenMP and Kokkos may start
 * before any constructor of ours has run.
 */
#ifndef KYMO_LIBKYMO_DL_ENVIRONMENT_H
#define KYMO_LIBKYMO_DL_ENVIRONMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/settings.h"

/* The value that counts: in the environment (KYMO_NAME, then the aliases), else the default. */
const char *environment_get_setting_text(enum setting_id id);
bool environment_setting_is_on(enum setting_id id);
uint64_t environment_get_setting_natural(enum setting_id id);

#endif
