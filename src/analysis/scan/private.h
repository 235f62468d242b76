/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The scan of one process, inside this room.
 */
#ifndef KYMO_ANALYSIS_SCAN_PRIVATE_H
#define KYMO_ANALYSIS_SCAN_PRIVATE_H

#include "analysis/scan/modules.h"
#include "analysis/session_kind.h"
#include "analysis/session_private.h"

struct spool_scan_state {
	struct session *session;
	struct session_private *private;
	struct process_private *process;
	struct model_process *model;
	uint32_t index; /* of the process */
	size_t metric_capacity, notice_capacity;
	uint64_t last_tick;
	struct module_scan_state modules;
	/* By kind of record: who wants it, and who wants runs of it; NULL: nobody. */
	const struct session_data_kind_operations *data_kind_by_record_kind[256],
		*data_kind_by_run_record_kind[256];
};

static inline const char *scan_read_string_copy(struct spool_scan_state *scan,
						struct spool_record_payload_cursor *payload)
{
	size_t size;
	const uint8_t *bytes = spool_read_length_prefixed_bytes(payload, &size);

	return arena_copy_bytes(&scan->private->arena, bytes, size);
}

static inline uint64_t scan_read_ticks_and_raise_last(struct spool_scan_state *scan,
						      struct spool_record_payload_cursor *payload)
{
	uint64_t ticks = spool_read_fixed_u64(payload);

	if (!payload->bad && ticks > scan->last_tick && ticks < UINT64_MAX)
		scan->last_tick = ticks;
	return ticks;
}

/* threads.c. Records: 0, -EBADMSG or -ENOMEM. */
int scan_thread_start_record(struct spool_scan_state *scan,
			     struct spool_record_payload_cursor *payload);
int scan_thread_in_sample_span_record(struct spool_scan_state *scan,
				      struct spool_record_payload_cursor *payload);
int scan_thread_name_record(struct spool_scan_state *scan,
			    struct spool_record_payload_cursor *payload);
int scan_thread_end_record(struct spool_scan_state *scan,
			   struct spool_record_payload_cursor *payload);
/* Gives threads their names, times and parents once all of them are known. 0 or -ENOMEM. */
int scan_finish_threads(struct spool_scan_state *scan);

#endif
