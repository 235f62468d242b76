/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * profile.pb.gz, shared by the pprof*.c files: field numbers, strings, locations.
 *
 * A location of pprof is one code address with its inlined functions, innermost first: in our tree
 * a run of FRAME_INLINE nodes and the node outside them. Addresses are those of the file on disk
 * (link time), so mappings begin at 0.
 *
 * Field numbers: https://github.com/google/pprof/blob/main/proto/profile.proto
 */
#ifndef KYMO_OUTPUT_PPROF_PPROF_H
#define KYMO_OUTPUT_PPROF_PPROF_H

#include "analysis/session.h"
#include "output/protobuf.h"
#include "output/strings.h"

enum {
	PROFILE_FIELD_SAMPLE_TYPE = 1,
	PROFILE_FIELD_SAMPLE = 2,
	PROFILE_FIELD_MAPPING = 3,
	PROFILE_FIELD_LOCATION = 4,
	PROFILE_FIELD_FUNCTION = 5,
	PROFILE_FIELD_STRING = 6,
	PROFILE_FIELD_TIME_NS = 9,
	PROFILE_FIELD_DURATION_NS = 10,
	PROFILE_FIELD_PERIOD_TYPE = 11,
	PROFILE_FIELD_PERIOD = 12,
	PROFILE_FIELD_COMMENT = 13,
	PROFILE_FIELD_DEFAULT_SAMPLE_TYPE = 14,
};

struct pprof_profile {
	const struct session *session;
	struct protobuf_writer writer;
	struct string_table strings; /* number 0 is "", as the format demands */

	/* locations.c */
	uint32_t *location_id_of_node; /* by the innermost node of a location; 0: not known yet */
	uint32_t *slots; /* hash table of innermost nodes, one for each location; + 1 */
	uint64_t slot_mask;
	uint32_t location_count;
	bool *is_function_written, *is_module_written;
	char (*build_ids)[2 * sizeof(((struct model_module *)0)->build_id) +
			  1]; /* hex, by module */
};

/* Errors stick in the writer. */
uint64_t pprof_intern_string(struct pprof_profile *profile, const char *text);

int pprof_locations_init(struct pprof_profile *profile); /* 0 or -ENOMEM */
void pprof_locations_deinit(struct pprof_profile *profile);
/* The id of the location whose innermost frame is `node`, written before its first use. *ret_caller
 * is the innermost node of the calling location, or MODEL_ENTRY_INDEX_NONE. No message may be open.
 */
uint32_t pprof_find_or_write_location(struct pprof_profile *profile, uint32_t node,
				      uint32_t *ret_caller);

#endif
