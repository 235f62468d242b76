/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Names for all addresses of the tree: gathers them by file over all processes, asks the symbolizer
 * (symbolize.h) once a file, and keeps the answers as chains of places. A place is a function at a
 * source line, independent of the process; places and functions are unique.
 */
#ifndef KYMO_ANALYSIS_RESOLVE_H
#define KYMO_ANALYSIS_RESOLVE_H

#include "analysis/session_private.h"

struct place {
	const char *function, *linkage_name, *file; /* interned */
	uint64_t address;                           /* of unresolved code only */
	uint32_t line, function_line, function_id;
	enum model_frame_kind kind;
};

/* Innermost first: chain_places[first …]. */
struct place_chain {
	uint64_t relative_pc;
	uint32_t first, count;
};

struct resolution {
	struct session *session;
	struct place *places;
	struct place_chain *chains;
	uint32_t *chain_places; /* indexes into places */
	uint32_t *chain_of;     /* by tree node, then by region, then by address of an allocation
				   site; MODEL_NONE where there is none */
	uint32_t *process_of;   /* by tree node */
	size_t place_count, place_capacity, chain_count, chain_capacity;
	size_t chain_place_count, chain_place_capacity;
	struct id_map place_index, function_index;
	uint32_t function_count;
};

int resolution_init(struct resolution *resolution, struct session *session,
		    struct problem *problem);
/* Gives regions that are functions their names and places. 0 or -ENOMEM. */
int resolution_name_regions(const struct resolution *resolution);
/* Gives allocation sites their frames. 0 or -ENOMEM. */
int resolution_name_sites(const struct resolution *resolution);
void resolution_deinit(struct resolution *resolution);

/* The index of a place, made if it is new; MODEL_NONE when out of memory. `scope` tells apart
 * functions of one name: the module's path, or NULL. function_id is filled in here. */
uint32_t resolution_place(struct resolution *resolution, struct place place, const char *scope);

#endif
