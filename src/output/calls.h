/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Instrumented functions beyond their recorded calls, which are regions: what was counted, demoted,
 * and instrumented at all.
 */
#ifndef KYMO_OUTPUT_CALLS_H
#define KYMO_OUTPUT_CALLS_H

#include "analysis/regions/calls.h"
#include "output/json_writer.h"
#include "output/output.h"

/* What a region id of model_counted_function or model_demoted_function is called; never NULL. */
const char *calls_get_function_name(const struct session *session, uint32_t region);

/* The section of the text profile. */
void calls_write_untimed_functions_text(const struct session *session,
					const struct output_options *options, FILE *stream);
/* "counted_functions" and "demoted_functions" of profile.json, nothing where there are none. */
void calls_put_json_untimed_functions(struct json_writer *json, const struct session *session);
/* "instrumentation" of metadata.json. */
void calls_put_json_instrumentation(struct json_writer *json, const struct session *session);

#endif
