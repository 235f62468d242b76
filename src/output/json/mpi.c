/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See mpi.h.
 */
#include "output/json/mpi.h"

static void put_rank(struct json_writer *json, const char *key, int64_t rank)
{
	if (rank == MPI_NO_RANK)
		json_put_null(json, key);
	else
		json_put_signed_integer(json, key, rank);
}

static void put_process(struct json_writer *json, const struct session *session, uint32_t index)
{
	const struct model_process *process = &session->processes[index];

	json_put_count(json, "pid", process->pid);
	put_rank(json, "rank", process->rank_source ? (int64_t)process->rank : MPI_NO_RANK);
}

static void put_row(struct json_writer *json, const struct session *session,
		    const struct model_mpi_row *row)
{
	json_object_begin(json, NULL);
	put_process(json, session, row->process);
	json_put_text(json, "function", row->function);
	json_put_text(json, "communicator", *row->communicator ? row->communicator : NULL);
	put_rank(json, "world_peer", row->peer);
	json_put_count(json, "calls", row->calls);
	json_put_count(json, "open", row->open);
	json_put_count(json, "time_ns", row->time_ns);
	json_put_count(json, "sent_messages", row->sent_messages);
	json_put_count(json, "sent_bytes", row->sent_bytes);
	json_put_count(json, "received_messages", row->received_messages);
	json_put_count(json, "received_bytes", row->received_bytes);
	json_object_end(json);
}

static void put_communicator(struct json_writer *json, const struct session *session,
			     const struct model_mpi_communicator *communicator)
{
	json_object_begin(json, NULL);
	put_process(json, session, communicator->process);
	json_put_text(json, "name", communicator->name);
	json_put_count(json, "size", communicator->size);
	json_put_text(json, "world_ranks",
		      *communicator->world_ranks ? communicator->world_ranks : NULL);
	json_object_end(json);
}

void json_put_mpi(struct json_writer *json, const struct session *session)
{
	const struct model_mpi *mpi = session_get_mpi(session);

	if (!mpi->row_count)
		return;
	json_array_begin(json, "mpi_calls");
	for (uint32_t i = 0; i < mpi->row_count; i++)
		put_row(json, session, &mpi->rows[i]);
	json_array_end(json);
	json_put_boolean(json, "mpi_calls_cut", mpi->were_rows_cut);
	json_array_begin(json, "mpi_communicators");
	for (uint32_t i = 0; i < mpi->communicator_count; i++)
		put_communicator(json, session, &mpi->communicators[i]);
	json_array_end(json);
}

void mpi_format_process(char *ret, size_t size, const struct session *session, uint32_t process)
{
	const struct model_process *it = &session->processes[process];

	if (it->rank_source)
		snprintf(ret, size, "rank %u", it->rank);
	else
		snprintf(ret, size, "process %u", it->pid);
}
