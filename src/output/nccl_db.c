/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What results.db has of NCCL: operations, collectives over ranks, sums of functions, and losses.
 * Columns are filled in the order of nccl_schema.h.
 */
#include "output/nccl_db.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "analysis/nccl_join.h"
#include "output/nccl.h"
#include "output/nccl_rows.h"
#include "output/nccl_schema.h"

struct rows {
	struct nccl_data *data;
	sqlite3 *handle;
	sqlite3_stmt *statement;
	int column; /* the last one bound */
};

/* ---- one row ---- */

static void put_text(struct rows *rows, const char *text)
{
	sqlite3_bind_text(rows->statement, ++rows->column, text, -1, SQLITE_TRANSIENT);
}

static void put_integer(struct rows *rows, int64_t value)
{
	sqlite3_bind_int64(rows->statement, ++rows->column, value);
}

static void put_null(struct rows *rows)
{
	sqlite3_bind_null(rows->statement, ++rows->column);
}

/* SQLite's numbers have a sign: what needs the last bit is a number nobody has. */
static void put_count(struct rows *rows, uint64_t value)
{
	if (value > INT64_MAX)
		put_null(rows);
	else
		put_integer(rows, (int64_t)value);
}

static void put_known(struct rows *rows, uint64_t value, bool known)
{
	if (known)
		put_count(rows, value);
	else
		put_null(rows);
}

static void put_rate(struct rows *rows, double value, bool known)
{
	if (known)
		sqlite3_bind_double(rows->statement, ++rows->column, value);
	else
		put_null(rows);
}

static void put_hash(struct rows *rows, uint64_t hash)
{
	char text[32];

	snprintf(text, sizeof(text), "0x%016" PRIx64, hash);
	put_text(rows, text);
}

static void put_team(struct rows *rows, uint32_t number)
{
	const struct nccl_team *team;

	if (number == NCCL_NONE) {
		for (int i = 0; i < 3; i++)
			put_null(rows);
		return;
	}
	team = &rows->data->teams[number];
	put_text(rows, team->name);
	put_hash(rows, team->hash);
	put_count(rows, team->occurrence);
}

static int end_row(struct rows *rows)
{
	int result = sqlite3_step(rows->statement);

	sqlite3_reset(rows->statement);
	rows->column = 0;
	return result == SQLITE_DONE ? 0 : -EIO;
}

/* Until finish(). */
static int begin(struct rows *rows, const char *table, const char *columns)
{
	char text[2048];

	snprintf(text, sizeof(text), "INSERT INTO %s VALUES(%s)", table, columns);
	rows->column = 0;
	return sqlite3_prepare_v2(rows->handle, text, -1, &rows->statement, NULL) == SQLITE_OK
		       ? 0
		       : -EIO;
}

static int finish(struct rows *rows, int result)
{
	sqlite3_finalize(rows->statement);
	rows->statement = NULL;
	return result;
}

/* ---- operations ---- */

static void put_who(struct rows *rows, const struct nccl_view *view)
{
	const struct nccl_member *member = &rows->data->members[view->member];
	const struct nccl_process *process = &rows->data->processes[view->process];

	put_text(rows, process->file.header.host);
	put_count(rows, process->file.header.pid);
	put_count(rows, view->record->thread);
	put_integer(rows, process->rank);
	put_text(rows, member->name);
	put_hash(rows, member->record.hash);
	put_count(rows, rows->data->teams[member->team].occurrence);
	put_integer(rows, member->rank);
	put_count(rows, member->ranks);
}

static void put_what(struct rows *rows, const struct nccl_view *view)
{
	const struct nccl_operation *record = view->record;
	bool p2p = record->kind == NCCL_KIND_P2P;

	put_text(rows, nccl_kind_name(record->kind));
	put_text(rows, rows->data->functions[view->function].name);
	put_count(rows, record->sequence);
	put_count(rows, record->ordinal);
	put_known(rows, (uint64_t)record->root, !p2p && record->root >= 0);
	put_known(rows, (uint64_t)record->peer, p2p);
	put_text(rows, nccl_text_of(rows->data, view->process, record->data_type));
	put_text(rows, nccl_text_of(rows->data, view->process, record->algorithm));
	put_text(rows, nccl_text_of(rows->data, view->process, record->protocol));
	put_count(rows, record->count);
	put_count(rows, record->bytes);
	put_known(rows, view->size_bytes, view->size_known);
	put_text(rows, nccl_state_name(view->state));
}

static void put_when(struct rows *rows, const struct nccl_view *view)
{
	const struct nccl_operation *record = view->record;
	bool error_known = view->begin_error_ns != UINT64_MAX;

	put_count(rows, view->enqueue_ns);
	put_known(rows, view->enqueued_ns, view->enqueued_ns);
	put_known(rows, view->begin_ns, view->begin_known);
	put_known(rows, view->end_ns, view->end_ns);
	put_known(rows, view->begin_error_ns, error_known);
	put_known(rows, record->gpu_start, record->gpu_start);
	put_known(rows, record->gpu_stop, record->gpu_start);
	put_known(rows, view->duration_ns, view->duration_ns);
	put_known(rows, view->stamped_ns, view->stamped_ns);
	put_text(rows, nccl_timing_name(view->timing));
}

static void put_bandwidth(struct rows *rows, const struct nccl_view *view)
{
	bool known = view->size_known && nccl_timing_is_own(view->timing);
	double bandwidth =
		known ? nccl_algorithm_bandwidth(view->size_bytes, view->duration_ns) : 0;

	put_rate(rows, bandwidth, known);
	put_rate(rows, bandwidth * view->bus_factor, known && view->bus_factor > 0);
}

static void put_marks(struct rows *rows, const struct nccl_view *view)
{
	const char *marks[NCCL_MARKS];
	size_t count = nccl_marks(view, &rows->data->members[view->member], marks), used = 0;
	char text[NCCL_MARKS * 20] = "";

	for (size_t i = 0; i < count && used < sizeof(text); i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", i ? "," : "",
					 marks[i]);
	put_text(rows, text);
}

static int put_operation(const struct nccl_view *view, void *context)
{
	struct rows *rows = context;
	const struct nccl_operation *record = view->record;

	put_who(rows, view);
	put_what(rows, view);
	put_when(rows, view);
	put_bandwidth(rows, view);
	put_text(rows, nccl_channels_text(record->channels_started).text);
	put_text(rows,
		 nccl_channels_text(record->channels_started & ~record->channels_stopped).text);
	put_count(rows, record->channels_expected);
	put_count(rows, record->network_bytes);
	put_known(rows, record->user_tag, record->user_tag);
	put_marks(rows, view);
	return end_row(rows);
}

static int put_operations(struct rows *rows, struct problem *problem)
{
	int result = begin(rows, "nccl_operations",
			   "NULL,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,"
			   "?,?,?,?,?,?,?");

	for (uint32_t i = 0; result == 0 && i < rows->data->process_count; i++)
		result = nccl_each_operation(rows->data, i, put_operation, rows, problem);
	return finish(rows, result);
}

/* ---- collectives ---- */

static int put_collective(struct rows *rows, const struct nccl_collective *collective)
{
	const struct nccl_team *team = &rows->data->teams[collective->team];
	uint32_t late;
	enum nccl_lateness how = nccl_collective_late(collective, &late);

	put_team(rows, collective->team);
	put_text(rows, rows->data->functions[collective->function].name);
	put_count(rows, collective->sequence);
	put_count(rows, collective->bytes);
	put_count(rows, collective->size_bytes);
	put_count(rows, team->ranks);
	put_count(rows, team->member_count);
	put_count(rows, collective->seen);
	put_count(rows, collective->in_flight);
	put_count(rows, collective->timed);
	put_count(rows, collective->shared);
	put_count(rows, collective->first_ns);
	put_count(rows, collective->last_ns);
	put_known(rows, collective->end_ns, collective->end_ns);
	put_known(rows, collective->error_ns, collective->error_ns != UINT64_MAX);
	if (late == NCCL_NONE)
		put_null(rows);
	else
		put_integer(rows, rows->data->members[late].rank);
	put_text(rows, nccl_lateness_name(how));
	put_known(rows, collective->shortest_ns, collective->timed);
	put_known(rows, collective->longest_ns, collective->timed);
	put_known(rows, collective->sum_ns - collective->shortest_ns * collective->timed,
		  collective->timed);
	put_integer(rows, collective->different_member != NCCL_NONE);
	return end_row(rows);
}

static int put_collectives(struct rows *rows, struct problem *problem)
{
	struct nccl_joined joined;
	int result = nccl_join(rows->data, &joined, problem);

	if (result < 0)
		return result;
	result = begin(rows, "nccl_collectives",
		       "NULL,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?");
	for (size_t i = 0; result == 0 && i < joined.count; i++)
		result = put_collective(rows, &joined.collectives[i]);
	nccl_join_deinit(&joined);
	return finish(rows, result);
}

/* ---- sums ---- */

static int put_function(struct rows *rows, const struct nccl_row *row)
{
	const struct nccl_tally *tally = row->tally;

	put_team(rows, row->team);
	put_text(rows, rows->data->functions[row->function].name);
	put_count(rows, tally->operations);
	put_count(rows, tally->bytes);
	put_count(rows, tally->timed);
	put_count(rows, tally->by_network);
	put_count(rows, tally->ns);
	put_known(rows, tally->shortest_ns, tally->longest_ns);
	put_known(rows, nccl_tally_quantile(tally, 0.5), tally->longest_ns);
	put_known(rows, nccl_tally_quantile(tally, 0.99), tally->longest_ns);
	put_known(rows, tally->longest_ns, tally->longest_ns);
	put_rate(rows, nccl_algorithm_bandwidth(tally->timed_bytes, tally->sized_ns),
		 tally->sized_ns);
	put_rate(rows, nccl_bus_bandwidth(tally->bus_bytes, tally->sized_ns), tally->sized_ns);
	put_count(rows, tally->batched);
	put_count(rows, tally->aliased);
	put_count(rows, tally->enqueue_only);
	put_count(rows, tally->incomplete);
	put_count(rows, tally->in_flight);
	return end_row(rows);
}

static int put_functions(struct rows *rows)
{
	int result = begin(rows, "nccl_functions", "NULL,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?");

	for (int by_team = 0; result == 0 && by_team < 2; by_team++) {
		struct nccl_rows sums;

		result = nccl_rows_make(rows->data, by_team, &sums);
		if (result < 0)
			break;
		for (size_t i = 0; result == 0 && i < sums.count; i++)
			result = put_function(rows, &sums.rows[i]);
		nccl_rows_deinit(&sums);
	}
	return finish(rows, result);
}

static int put_losses(struct rows *rows)
{
	int result = begin(rows, "nccl_losses", "?,?,?,?");

	for (uint32_t i = 0; result == 0 && i < rows->data->process_count; i++) {
		const struct nccl_file_header *header = &rows->data->processes[i].file.header;

		for (unsigned loss = 0; result == 0 && loss < NCCL_LOSS_COUNT; loss++) {
			const char *name = nccl_loss_name((enum nccl_loss)loss);

			if (!name || !header->losses[loss])
				continue;
			put_text(rows, header->host);
			put_count(rows, header->pid);
			put_text(rows, name);
			put_count(rows, header->losses[loss]);
			result = end_row(rows);
		}
	}
	return finish(rows, result);
}

static int put_metadata(struct rows *rows)
{
	const struct nccl_data *data = rows->data;
	int result = begin(rows, "nccl_metadata", "?,?");

	if (result == 0) {
		put_text(rows, "schema");
		put_text(rows, "kymo.nccl.tables/1");
		result = end_row(rows);
	}
	if (result == 0) {
		put_text(rows, "realtime_minus_time_ns");
		put_integer(rows, data->host_count ? data->hosts[0].realtime_minus_boottime_ns : 0);
		result = end_row(rows);
	}
	if (result == 0) {
		put_text(rows, "unreadable_files");
		put_count(rows, data->unreadable_files);
		result = end_row(rows);
	}
	return finish(rows, result);
}

int nccl_db_fill(sqlite3 *handle, const struct session *session, struct problem *problem)
{
	struct rows rows = {.data = session->nccl, .handle = handle};
	int result = sqlite3_exec(handle, nccl_schema, NULL, NULL, NULL) == SQLITE_OK ? 0 : -EIO;

	*problem->text = '\0';
	if (result == 0)
		result = put_metadata(&rows);
	if (result == 0)
		result = put_operations(&rows, problem);
	if (result == 0)
		result = put_collectives(&rows, problem);
	if (result == 0)
		result = put_functions(&rows);
	if (result == 0)
		result = put_losses(&rows);
	if (result == 0 && sqlite3_exec(handle, nccl_indexes, NULL, NULL, NULL) != SQLITE_OK)
		result = -EIO;
	return result;
}
