/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Settings that are right alone and wrong together.
 */
#ifndef KYMO_RUNS_CONFLICTS_H
#define KYMO_RUNS_CONFLICTS_H

#include "settings/effective.h"

/* 0 or -EINVAL; warns of what is most likely a mistake. For commands that profile. */
int conflicts_check_settings(const struct effective_settings *settings, struct problem *problem);

#endif
