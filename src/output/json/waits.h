/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * "waits" of profile.json: where threads blocked, and who woke them.
 */
#ifndef KYMO_OUTPUT_JSON_WAITS_H
#define KYMO_OUTPUT_JSON_WAITS_H

#include "analysis/session.h"
#include "output/json_writer.h"

/* Nothing where it was not recorded. */
void json_put_waits(struct json_writer *json, const struct session *session);

#endif
