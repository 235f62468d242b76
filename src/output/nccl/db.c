/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What results.db has of NCCL: operations, collectives over ranks, sums of functions, and losses.
 * Columns are filled in the order of schema.h.
 */
#include "output/nccl/db.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "analysis/nccl/join.h"
#include "output/nccl/nccl.h"
#include "output/nccl/rows.h"
#include "output/nccl/schema.h"
#include "output/sql_text.h"

struct row_inserter {
	struct nccl_data *data;
	sqlite3 *handle;
	sqlite3_stmt *statement;
	int last_bound_column; /* the last one bound */
};

/* ---- one row ---- */

static void bind_next_text(struct row_inserter *rows, const char *text)
{
	sql_bind_text(rows->statement, ++rows->last_bound_column, text);
}

static void bind_next_integer(struct row_inserter *rows, int64_t value)
{
	sqlite3_bind_int64(rows->statement, ++rows->last_bound_column, value);
}

static void bind_next_null(struct row_inserter *rows)
{
	sqlite3_bind_null(rows->statement, ++rows->last_bound_column);
}

/* SQLite's numbers have a sign: what needs the last bit is a number nobody has. */
static void bind_next_count(struct row_inserter *rows, uint64_t value)
{
	if (value > INT64_MAX)
		bind_next_null(rows);
	else
		bind_next_integer(rows, (int64_t)value);
}

static void bind_count_if_known(struct row_inserter *rows, uint64_t value, bool known)
{
	if (known)
		bind_next_count(rows, value);
	else
		bind_next_null(rows);
}

static void bind_rate_if_known(struct row_inserter *rows, double value, bool known)
{
	if (known)
		sqlite3_bind_double(rows->statement, ++rows->last_bound_column, value);
	else
		bind_next_null(rows);
}

static void bind_next_hash(struct row_inserter *rows, uint64_t hash)
{
	char text[32];

	snprintf(text, sizeof(text), "0x%016" PRIx64, hash);
	bind_next_text(rows, text);
}

static void bind_communicator_columns(struct row_inserter *rows, uint32_t number)
{
	const struct nccl_communicator *communicator;

	if (number == NCCL_INDEX_NONE) {
		for (int i = 0; i < 3; i++)
			bind_next_null(rows);
		return;
	}
	communicator = &rows->data->communicators[number];
	bind_next_text(rows, communicator->name);
	bind_next_hash(rows, communicator->hash);
	bind_next_count(rows, communicator->same_hash_index);
}

static int insert_row_of_bound_columns(struct row_inserter *rows)
{
	int result = sqlite3_step(rows->statement);

	sqlite3_reset(rows->statement);
	rows->last_bound_column = 0;
	return result == SQLITE_DONE ? 0 : -EIO;
}

/* Until finalize_insert(). */
static int prepare_insert(struct row_inserter *rows, const char *table, const char *columns)
{
	char text[2048];

	snprintf(text, sizeof(text), "INSERT INTO %s VALUES(%s)", table, columns);
	rows->last_bound_column = 0;
	return sqlite3_prepare_v2(rows->handle, text, -1, &rows->statement, NULL) == SQLITE_OK
		       ? 0
		       : -EIO;
}

static int finalize_insert(struct row_inserter *rows, int result)
{
	sqlite3_finalize(rows->statement);
	rows->statement = NULL;
	return result;
}

/* ---- operations ---- */

static void bind_process_and_rank(struct row_inserter *rows, const struct nccl_operation_view *view)
{
	const struct nccl_communicator_rank *member = &rows->data->members[view->member];
	const struct nccl_process *process = &rows->data->processes[view->process];

	bind_next_text(rows, process->file.header.host);
	bind_next_count(rows, process->file.header.pid);
	bind_next_count(rows, view->record->thread);
	bind_next_integer(rows, member->job_rank);
	bind_next_text(rows, member->name);
	bind_next_hash(rows, member->record.hash);
	bind_next_count(rows, rows->data->communicators[member->communicator].same_hash_index);
	bind_next_integer(rows, member->rank);
	bind_next_count(rows, member->rank_count);
}

static void bind_operation_kind_and_size(struct row_inserter *rows,
					 const struct nccl_operation_view *view)
{
	const struct nccl_operation *record = view->record;
	bool p2p = record->kind == NCCL_KIND_P2P;

	bind_next_text(rows, nccl_get_event_kind_name(record->kind));
	bind_next_text(rows, rows->data->functions[view->function].name);
	bind_next_count(rows, record->sequence);
	bind_next_count(rows, record->ordinal);
	bind_count_if_known(rows, (uint64_t)record->root, !p2p && record->root >= 0);
	bind_count_if_known(rows, (uint64_t)record->peer, p2p);
	bind_next_text(rows, nccl_get_interned_name(rows->data, view->process, record->data_type));
	bind_next_text(rows, nccl_get_interned_name(rows->data, view->process, record->algorithm));
	bind_next_text(rows, nccl_get_interned_name(rows->data, view->process, record->protocol));
	bind_next_count(rows, record->count);
	bind_next_count(rows, record->bytes);
	bind_count_if_known(rows, view->size_bytes, view->is_size_known);
	bind_next_text(rows, nccl_get_operation_state_name(view->state));
}

static void bind_operation_times(struct row_inserter *rows, const struct nccl_operation_view *view)
{
	const struct nccl_operation *record = view->record;
	bool error_known = view->begin_error_ns != UINT64_MAX;

	bind_next_count(rows, view->enqueue_begin_ns);
	bind_count_if_known(rows, view->enqueue_end_ns, view->enqueue_end_ns);
	bind_count_if_known(rows, view->begin_ns, view->is_begin_known);
	bind_count_if_known(rows, view->end_ns, view->end_ns);
	bind_count_if_known(rows, view->begin_error_ns, error_known);
	bind_count_if_known(rows, record->gpu_start, record->gpu_start);
	bind_count_if_known(rows, record->gpu_stop, record->gpu_start);
	bind_count_if_known(rows, view->duration_ns, view->duration_ns);
	bind_count_if_known(rows, view->channel_stamps_span_ns, view->channel_stamps_span_ns);
	bind_next_text(rows, nccl_get_timing_source_name(view->timing_source));
}

static void bind_bandwidth_columns(struct row_inserter *rows,
				   const struct nccl_operation_view *view)
{
	bool known =
		view->is_size_known && nccl_timing_source_is_of_one_operation(view->timing_source);
	double bandwidth =
		known ? nccl_compute_algorithm_bandwidth(view->size_bytes, view->duration_ns) : 0;

	bind_rate_if_known(rows, bandwidth, known);
	bind_rate_if_known(rows, bandwidth * view->bus_factor, known && view->bus_factor > 0);
}

static void bind_operation_flag_names(struct row_inserter *rows,
				      const struct nccl_operation_view *view)
{
	const char *marks[NCCL_FLAG_NAMES_OF_OPERATION_MAX];
	size_t count = nccl_collect_operation_flag_names(view, &rows->data->members[view->member],
							 marks),
	       used = 0;
	char text[NCCL_FLAG_NAMES_OF_OPERATION_MAX * 20] = "";

	for (size_t i = 0; i < count && used < sizeof(text); i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", i ? "," : "",
					 marks[i]);
	bind_next_text(rows, text);
}

static int insert_operation(const struct nccl_operation_view *view, void *context)
{
	struct row_inserter *rows = context;
	const struct nccl_operation *record = view->record;

	bind_process_and_rank(rows, view);
	bind_operation_kind_and_size(rows, view);
	bind_operation_times(rows, view);
	bind_bandwidth_columns(rows, view);
	bind_next_text(rows, nccl_channel_bitmap_to_text(record->channels_started).text);
	bind_next_text(rows, nccl_channel_bitmap_to_text(record->channels_started &
							 ~record->channels_stopped)
				     .text);
	bind_next_count(rows, record->channels_expected);
	bind_next_count(rows, record->network_bytes);
	bind_count_if_known(rows, record->user_tag, record->user_tag);
	bind_operation_flag_names(rows, view);
	return insert_row_of_bound_columns(rows);
}

static int insert_operations(struct row_inserter *rows, struct problem *problem)
{
	int result = prepare_insert(
		rows, "nccl_operations",
		"NULL,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,"
		"?,?,?,?,?,?,?");

	for (uint32_t i = 0; result == 0 && i < rows->data->process_count; i++)
		result = nccl_visit_operations_of_process(rows->data, i, insert_operation, rows,
							  problem);
	return finalize_insert(rows, result);
}

/* ---- collectives ---- */

static int insert_collective(struct row_inserter *rows, const struct nccl_collective *collective)
{
	const struct nccl_communicator *communicator =
		&rows->data->communicators[collective->communicator];
	uint32_t late;
	enum nccl_lateness_basis how = nccl_collective_find_late_rank(collective, &late);

	bind_communicator_columns(rows, collective->communicator);
	bind_next_text(rows, rows->data->functions[collective->function].name);
	bind_next_count(rows, collective->sequence);
	bind_next_count(rows, collective->bytes);
	bind_next_count(rows, collective->size_bytes);
	bind_next_count(rows, communicator->rank_count);
	bind_next_count(rows, communicator->member_count);
	bind_next_count(rows, collective->seen);
	bind_next_count(rows, collective->in_flight_rank_count);
	bind_next_count(rows, collective->timed);
	bind_next_count(rows, collective->shared);
	bind_next_count(rows, collective->first_begin_ns);
	bind_next_count(rows, collective->last_begin_ns);
	bind_count_if_known(rows, collective->last_end_ns, collective->last_end_ns);
	bind_count_if_known(rows, collective->begin_end_error_ns,
			    collective->begin_end_error_ns != UINT64_MAX);
	if (late == NCCL_INDEX_NONE)
		bind_next_null(rows);
	else
		bind_next_integer(rows, rows->data->members[late].rank);
	bind_next_text(rows, nccl_get_lateness_basis_name(how));
	bind_count_if_known(rows, collective->shortest_duration_ns, collective->timed);
	bind_count_if_known(rows, collective->longest_duration_ns, collective->timed);
	bind_count_if_known(rows,
			    collective->duration_sum_ns -
				    collective->shortest_duration_ns * collective->timed,
			    collective->timed);
	bind_next_integer(rows, collective->differing_arguments_member != NCCL_INDEX_NONE);
	return insert_row_of_bound_columns(rows);
}

static int insert_collectives(struct row_inserter *rows, struct problem *problem)
{
	struct nccl_joined_collectives joined;
	int result = nccl_join_collectives(rows->data, &joined, problem);

	if (result < 0)
		return result;
	result = prepare_insert(rows, "nccl_collectives",
				"NULL,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?");
	for (size_t i = 0; result == 0 && i < joined.count; i++)
		result = insert_collective(rows, &joined.collectives[i]);
	nccl_joined_collectives_deinit(&joined);
	return finalize_insert(rows, result);
}

/* ---- sums ---- */

static int insert_function_sum_row(struct row_inserter *rows,
				   const struct nccl_function_sum_row *row)
{
	const struct nccl_operation_tally *tally = row->tally;

	bind_communicator_columns(rows, row->communicator);
	bind_next_text(rows, rows->data->functions[row->function].name);
	bind_next_count(rows, tally->operations);
	bind_next_count(rows, tally->bytes);
	bind_next_count(rows, tally->timed);
	bind_next_count(rows, tally->timed_by_network_count);
	bind_next_count(rows, tally->ns);
	bind_count_if_known(rows, tally->shortest_duration_ns, tally->longest_duration_ns);
	bind_count_if_known(rows, nccl_tally_find_duration_quantile(tally, 0.5),
			    tally->longest_duration_ns);
	bind_count_if_known(rows, nccl_tally_find_duration_quantile(tally, 0.99),
			    tally->longest_duration_ns);
	bind_count_if_known(rows, tally->longest_duration_ns, tally->longest_duration_ns);
	bind_rate_if_known(
		rows,
		nccl_compute_algorithm_bandwidth(tally->timed_bytes, tally->known_size_duration_ns),
		tally->known_size_duration_ns);
	bind_rate_if_known(
		rows, nccl_compute_bus_bandwidth(tally->bus_bytes, tally->known_size_duration_ns),
		tally->known_size_duration_ns);
	bind_next_count(rows, tally->batched_operation_count);
	bind_next_count(rows, tally->aliased_operation_count);
	bind_next_count(rows, tally->enqueue_only_operation_count);
	bind_next_count(rows, tally->incomplete);
	bind_next_count(rows, tally->in_flight_operation_count);
	return insert_row_of_bound_columns(rows);
}

static int insert_all_function_sums(struct row_inserter *rows)
{
	int result = prepare_insert(rows, "nccl_functions",
				    "NULL,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?");

	for (int by_communicator = 0; result == 0 && by_communicator < 2; by_communicator++) {
		struct nccl_function_sum_rows sums;

		result = nccl_function_sum_rows_build(rows->data, by_communicator, &sums);
		if (result < 0)
			break;
		for (size_t i = 0; result == 0 && i < sums.count; i++)
			result = insert_function_sum_row(rows, &sums.rows[i]);
		nccl_function_sum_rows_deinit(&sums);
	}
	return finalize_insert(rows, result);
}

static int insert_losses(struct row_inserter *rows)
{
	int result = prepare_insert(rows, "nccl_losses", "?,?,?,?");

	for (uint32_t i = 0; result == 0 && i < rows->data->process_count; i++) {
		const struct nccl_file_header *header = &rows->data->processes[i].file.header;

		for (unsigned loss = 0; result == 0 && loss < NCCL_LOSS_COUNT; loss++) {
			const char *name = nccl_get_loss_name((enum nccl_loss)loss);

			if (!name || !header->losses[loss])
				continue;
			bind_next_text(rows, header->host);
			bind_next_count(rows, header->pid);
			bind_next_text(rows, name);
			bind_next_count(rows, header->losses[loss]);
			result = insert_row_of_bound_columns(rows);
		}
	}
	return finalize_insert(rows, result);
}

static int insert_metadata(struct row_inserter *rows)
{
	const struct nccl_data *data = rows->data;
	int result = prepare_insert(rows, "nccl_metadata", "?,?");

	if (result == 0) {
		bind_next_text(rows, "schema");
		bind_next_text(rows, "kymo.nccl.tables/1");
		result = insert_row_of_bound_columns(rows);
	}
	if (result == 0) {
		bind_next_text(rows, "realtime_minus_time_ns");
		bind_next_integer(rows,
				  data->host_count ? data->hosts[0].realtime_minus_boottime_ns : 0);
		result = insert_row_of_bound_columns(rows);
	}
	if (result == 0) {
		bind_next_text(rows, "unreadable_files");
		bind_next_count(rows, data->unreadable_files);
		result = insert_row_of_bound_columns(rows);
	}
	return finalize_insert(rows, result);
}

int nccl_db_write_tables(sqlite3 *handle, const struct session *session, struct problem *problem)
{
	struct row_inserter rows = {.data = session_get_nccl_data(session), .handle = handle};
	int result =
		sqlite3_exec(handle, nccl_schema_sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : -EIO;

	*problem->text = '\0';
	if (result == 0)
		result = insert_metadata(&rows);
	if (result == 0)
		result = insert_operations(&rows, problem);
	if (result == 0)
		result = insert_collectives(&rows, problem);
	if (result == 0)
		result = insert_all_function_sums(&rows);
	if (result == 0)
		result = insert_losses(&rows);
	if (result == 0 && sqlite3_exec(handle, nccl_indexes_sql, NULL, NULL, NULL) != SQLITE_OK)
		result = -EIO;
	return result;
}
