/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A kind of data that a session holds beside samples: regions, calls, allocations, ... The session
 * and its scan know kinds only as tables of functions; analysis/open/kinds.c lists them. Whoever
 * wants a kind's data asks that kind (session_get_regions() in analysis/regions/regions.h and its
 * like), which finds it in the session by the kind's name.
 *
 * To add a kind: a room of its own with a struct session_data_kind_operations, and a row in
 * analysis/open/kinds.c.
 *
 * Order of the calls, each of which may be missing; all but free() return 0 or a negative errno:
 *
 *   process by process   record() and events() in the order of the file, end_chunk(), end_records()
 *                        when the last record was read, end_process() when clocks, threads and
 *                        modules are known as well
 *   scanned()            after the last process, before samples are read
 *   open()               after the samples were read
 *   addresses(), name()  while code addresses get their names (analysis/symbols/resolve.h)
 *   free()               in any case, after any of these failed as well
 */
#ifndef KYMO_ANALYSIS_SESSION_KIND_H
#define KYMO_ANALYSIS_SESSION_KIND_H

#include "analysis/session.h"

struct spool_chunk_record_cursor;
struct spool_record_payload_cursor;
struct address_references;
struct symbol_resolution;

/* Where in a process's file a record stands. */
struct spool_record_position {
	struct session *session;
	uint32_t process;
	uint32_t chunk;
	const uint8_t *records; /* the chunk's first one */
	const uint8_t *record;  /* this one */
};

struct session_data_kind_operations {
	const char *name;
	size_t session_data_bytes; /* of the kind's data in a session, zeroed; 0: open() sets it */
	size_t process_data_bytes; /* of its data of one process, zeroed; 0: none */
	const uint8_t *wanted_record_kinds; /* kinds of records for record(); ends with 0 */
	const uint8_t
		*run_record_kinds; /* those that come in long runs, for events(); ends with 0 */

	/* A record of `wants`, not read yet. -EBADMSG: it cannot be decoded, and is left out. */
	int (*record)(const struct spool_record_position *place,
		      struct spool_record_payload_cursor *payload);
	/* The records of `runs` that stand at the cursor one after the other. */
	int (*events)(const struct spool_record_position *place,
		      struct spool_chunk_record_cursor *cursor);
	/* place->record: the end of the chunk's last record. */
	void (*end_chunk)(const struct spool_record_position *place);
	/* Raises *last_tick to the latest time that its records tell. */
	int (*end_records)(struct session *session, uint32_t process, uint64_t *last_tick);
	int (*end_process)(struct session *session, uint32_t process);
	void (*after_scan)(struct session *session);
	int (*open)(struct session *session, struct problem *problem);

	/* How many code addresses of its own it wants named, at most; hands each to
	 * address_references_add_address(), `first` being the number of the first one; takes the
	 * names. */
	size_t (*address_count)(const struct session *session);
	void (*gather_addresses)(struct address_references *references, struct session *session,
				 uint32_t first);
	int (*take_symbol_names)(const struct symbol_resolution *resolution, uint32_t first);

	void (*free)(struct session *session);
};

#endif
