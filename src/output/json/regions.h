/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What profile.json and metadata.json say of regions. Nothing where there are none.
 */
#ifndef KYMO_OUTPUT_JSON_REGIONS_H
#define KYMO_OUTPUT_JSON_REGIONS_H

#include "analysis/regions/regions.h"
#include "output/json_writer.h"

/* "components": what the profile of regions measures. */
void json_put_region_component_descriptions(struct json_writer *json,
					    const struct session *session);
/* "regions", "region_nodes" (the trees of all threads, unless `flat`) and "region_totals" (a row a
 * process and name). 0 or -ENOMEM. */
int json_put_region_profile(struct json_writer *json, const struct session *session, bool flat);
/* "regions" of metadata.json: counts of the session. */
void json_put_session_region_counts(struct json_writer *json, const struct session *session);
/* "rank" and "regions" of a process. */
void json_put_process_rank_and_regions(struct json_writer *json, const struct session *session,
				       uint32_t process);

#endif
