/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The tables of results.db about NCCL: docs/reference/nccl.md describes them. Names of columns are
 * the keys of nccl/operations.jsonl, collectives.jsonl and summary.json. NULL is "not known".
 */
#ifndef KYMO_OUTPUT_NCCL_SCHEMA_H
#define KYMO_OUTPUT_NCCL_SCHEMA_H

static const char nccl_schema_sql[] =
	"CREATE TABLE nccl_metadata(tag TEXT PRIMARY KEY, value);"
	"CREATE TABLE nccl_operations(id INTEGER PRIMARY KEY, host TEXT, pid INTEGER, tid INTEGER, "
	"world_rank INTEGER, communicator TEXT, communicator_hash TEXT, communicator_occurrence "
	"INTEGER, rank INTEGER, ranks INTEGER, kind TEXT, function TEXT, sequence INTEGER, ordinal "
	"INTEGER, root INTEGER, peer INTEGER, data_type TEXT, algorithm TEXT, protocol TEXT, count "
	"INTEGER, bytes INTEGER, size_bytes INTEGER, state TEXT, enqueue_ns INTEGER, enqueued_ns "
	"INTEGER, begin_ns INTEGER, end_ns INTEGER, time_error_ns INTEGER, gpu_start INTEGER, "
	"gpu_stop INTEGER, duration_ns INTEGER, stamped_ns INTEGER, timing TEXT, algbw_gbs REAL, "
	"busbw_gbs REAL, "
	"channels_started TEXT, channels_open TEXT, channels_expected INTEGER, network_kib "
	"INTEGER, user_tag INTEGER, marks TEXT);"
	"CREATE TABLE nccl_collectives(id INTEGER PRIMARY KEY, communicator TEXT, "
	"communicator_hash TEXT, communicator_occurrence INTEGER, function TEXT, sequence INTEGER, "
	"bytes INTEGER, size_bytes INTEGER, ranks INTEGER, ranks_with_records INTEGER, ranks_seen "
	"INTEGER, ranks_in_flight INTEGER, ranks_timed INTEGER, ranks_shared_times INTEGER, "
	"first_begin_ns INTEGER, last_begin_ns INTEGER, last_end_ns INTEGER, time_error_ns "
	"INTEGER, late_rank INTEGER, "
	"late_by TEXT, transfer_ns INTEGER, longest_ns INTEGER, waiting_sum_ns INTEGER, mismatch "
	"INTEGER);"
	/* communicator NULL: over all of them */
	"CREATE TABLE nccl_functions(id INTEGER PRIMARY KEY, communicator TEXT, communicator_hash "
	"TEXT, communicator_occurrence INTEGER, function TEXT, operations INTEGER, size_bytes "
	"INTEGER, timed INTEGER, timed_by_network INTEGER, time_ns INTEGER, shortest_ns INTEGER, "
	"median_ns INTEGER, p99_ns INTEGER, longest_ns INTEGER, algbw_gbs REAL, busbw_gbs REAL, "
	"batched INTEGER, aliased INTEGER, enqueue_only INTEGER, incomplete INTEGER, in_flight "
	"INTEGER);"
	"CREATE TABLE nccl_losses(host TEXT, pid INTEGER, reason TEXT, count INTEGER);";

static const char nccl_indexes_sql[] =
	"CREATE INDEX nccl_operations_by_call ON nccl_operations(communicator_hash, "
	"communicator_occurrence, function, sequence);";

#endif
