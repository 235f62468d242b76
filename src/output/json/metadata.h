/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * metadata.json: the run, its settings and its processes, without what was recorded of them.
 */
#ifndef KYMO_OUTPUT_JSON_METADATA_H
#define KYMO_OUTPUT_JSON_METADATA_H

#include <stdio.h>

#include "analysis/session.h"

/* 0 or negative errno with problem set. */
int output_write_metadata_json(struct session *session, FILE *stream, struct problem *problem);

#endif
