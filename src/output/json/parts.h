/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What profile.json and metadata.json say alike.
 */
#ifndef KYMO_OUTPUT_JSON_PARTS_H
#define KYMO_OUTPUT_JSON_PARTS_H

#include "analysis/session.h"
#include "output/json_writer.h"

/* The run: "command", "host", times, "launched". */
void json_put_run(struct json_writer *json, const struct session *session);
/* "processes", with their losses. */
/* What kymo cost, and the CPU time of all processes with it. */
void json_put_own_cost(struct json_writer *json, const struct session *session);
void json_put_session_processes(struct json_writer *json, const struct session *session);
/* model_thread.how: "main", "created", "found_running", "kymo". */
const char *json_get_thread_origin_name(int how);

#endif
