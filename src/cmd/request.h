/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Settings that are right alone and wrong together.
 */
#ifndef KYMO_CMD_REQUEST_H
#define KYMO_CMD_REQUEST_H

#include "cmd/resolved.h"

/* 0 or -EINVAL; warns of what is most likely a mistake. For commands that profile. */
int request_check(const struct resolved *settings, struct problem *problem);

#endif
