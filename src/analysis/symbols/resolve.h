/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Names for all addresses of the tree: gathers them by file over all processes, asks the symbolizer
 * (symbols.h) once a file, and keeps the answers as chains of places. A place is a function at a
 * source line, independent of the process; places and functions are unique.
 */
#ifndef KYMO_ANALYSIS_SYMBOLS_RESOLVE_H
#define KYMO_ANALYSIS_SYMBOLS_RESOLVE_H

#include "analysis/session_private.h"

struct code_location {
	const char *function, *linkage_name, *file; /* interned */
	uint64_t address;                           /* of unresolved code only */
	uint32_t line, function_line, function_id;
	enum model_frame_kind kind;
};

/* Innermost first: chain_place_indexes[first …]. */
struct code_location_chain {
	uint64_t relative_pc;
	uint32_t first, count;
};

struct address_references;

struct symbol_resolution {
	struct session *session;
	struct code_location *places;
	struct code_location_chain *chains;
	uint32_t *chain_place_indexes;       /* indexes into places */
	uint32_t *chain_by_reference_number; /* by tree node, then by what each kind of data
			       gathered; MODEL_ENTRY_INDEX_NONE where there is none */
	uint32_t *process_by_tree_node;      /* by tree node */
	size_t place_count, place_capacity, chain_count, chain_capacity;
	size_t chain_place_count, chain_place_capacity;
	struct id_map place_index_by_hash, function_id_by_hash;
	struct id_map chain_by_interpreted_frame; /* and process */
	uint32_t function_count;
};

int resolution_resolve_session(struct symbol_resolution *resolution, struct session *session,
			       struct problem *problem);
/* For kinds that gather addresses: one of a process; `number` is what kinds find its chain by, in
 * chain_by_reference_number. */
void address_references_add_address(struct address_references *references, uint32_t process,
				    uint64_t address, uint32_t number);
/* The same for an address that code of this time had; 0: unknown. */
void address_references_add_address_at(struct address_references *references, uint32_t process,
				       uint64_t address, uint64_t time_ns, uint32_t number);
/* Lets kinds of data take the names of what they gathered. 0 or -ENOMEM. */
int resolution_pass_names_to_data_kinds(const struct symbol_resolution *resolution);
void resolution_deinit(struct symbol_resolution *resolution);

/* A new chain at the end, empty; and one more place at the end of it. 0 or -ENOMEM. */
int resolution_append_chain(struct symbol_resolution *resolution, uint64_t relative_pc);
int resolution_append_location(struct symbol_resolution *resolution, uint32_t place);

/* The chain of a frame of interpreted code, made if it is new; MODEL_ENTRY_INDEX_NONE when out of
 * memory. */
uint32_t resolution_find_or_add_interpreted_chain(struct symbol_resolution *resolution,
						  uint32_t process, uint64_t frame);

/* The index of a place, made if it is new; MODEL_ENTRY_INDEX_NONE when out of memory. `scope` tells
 * apart functions of one name: the module's path, or NULL. function_id is filled in here. */
uint32_t resolution_find_or_add_location(struct symbol_resolution *resolution,
					 struct code_location place, const char *scope);

#endif
