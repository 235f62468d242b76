/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See mpi.h: one walk over the events of each process that called MPI.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/arena.h"
#include "analysis/id_map.h"
#include "analysis/mpi/mpi.h"
#include "analysis/session_kind.h"
#include "analysis/session_private.h"
#include "analysis/symbols/resolve.h"
#include "common/fold_hash.h"

#define MPI_ROWS_MAX          100000
#define MPI_COMMUNICATORS_MAX 100000
#define MPI_SITES_MAX         100000

/* What the session keeps. */
struct session_mpi_storage {
	struct model_mpi model;                   /* first: session_get_mpi() */
	struct id_map rows, communicators, sites; /* by hash -> index */
	size_t row_capacity, communicator_capacity, site_capacity;
};

struct mpi_builder {
	struct session *session;
	struct session_mpi_storage *storage;
};

static struct session_mpi_storage *get_storage(const struct session *session)
{
	return (struct session_mpi_storage *)session_get_mpi(session);
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
	while (*text)
		hash = fold_hash_add(hash, (uint8_t)*text++);
	return hash;
}

/* ---- rows ---- */

static struct model_mpi_row *add_row(const struct mpi_builder *builder,
				     const struct mpi_event *event, const char *communicator,
				     uint64_t context, int64_t peer, uint64_t key)
{
	struct session_mpi_storage *storage = builder->storage;
	struct arena *arena = &session_get_private(builder->session)->arena;
	struct model_mpi_row *row;

	if (array_reserve_one_more((void **)&storage->model.rows, &storage->row_capacity,
				   storage->model.row_count, sizeof(*row)) < 0 ||
	    id_map_set(&storage->rows, key, storage->model.row_count) < 0)
		return NULL;
	row = &storage->model.rows[storage->model.row_count];
	*row = (struct model_mpi_row){.process = event->process,
				      .function = arena_intern_string(arena, event->function),
				      .communicator = arena_intern_string(arena, communicator),
				      .context = context,
				      .peer = peer};
	if (!row->function || !row->communicator)
		return NULL;
	storage->model.row_count++;
	return row;
}

/* NULL: out of memory. */
static struct model_mpi_row *find_or_add_row(const struct mpi_builder *builder,
					     const struct mpi_event *event,
					     const char *communicator, uint64_t context,
					     int64_t peer)
{
	struct session_mpi_storage *storage = builder->storage;
	uint64_t key = hash_text(fold_hash_add(FOLD_HASH_FACTOR, event->process), event->function);
	uint32_t index;

	key = fold_hash_add(hash_text(key, communicator), context);
	key = fold_hash_add(key, (uint64_t)peer);
	index = id_map_get(&storage->rows, key);
	if (index != ID_MAP_NONE)
		return &storage->model.rows[index];
	if (storage->model.row_count >= MPI_ROWS_MAX && (*communicator || peer != MPI_NO_RANK)) {
		storage->model.were_rows_cut = true;
		return find_or_add_row(builder, event, "", 0, MPI_NO_RANK);
	}
	return add_row(builder, event, communicator, context, peer, key);
}

static struct model_mpi_row *find_row_of_peer(const struct mpi_builder *builder,
					      const struct mpi_event *event, int64_t peer)
{
	return find_or_add_row(builder, event, event->communicator, event->context, peer);
}

/* A call with a peer in each direction has its time with the one that it sends to. */
static int add_call(const struct mpi_builder *builder, const struct mpi_event *event)
{
	int64_t peer = event->sent.is_there       ? event->sent.peer
		       : event->received.is_there ? event->received.peer
						  : MPI_NO_RANK;
	struct model_mpi_row *row = find_row_of_peer(builder, event, peer);

	if (!row)
		return -ENOMEM;
	row->calls += !event->is_open;
	row->open += event->is_open;
	row->time_ns += event->end_ns - event->begin_ns;
	row->sent_bytes += event->contributed_bytes;
	row->received_bytes += event->obtained_bytes;
	return 0;
}

static int add_messages(const struct mpi_builder *builder, const struct mpi_event *event)
{
	struct model_mpi_row *row;

	if (event->sent.is_there) {
		row = find_row_of_peer(builder, event, event->sent.peer);
		if (!row)
			return -ENOMEM;
		row->sent_messages++;
		row->sent_bytes += event->sent.bytes;
	}
	if (event->received.is_there) {
		row = find_row_of_peer(builder, event, event->received.peer);
		if (!row)
			return -ENOMEM;
		row->received_messages++;
		row->received_bytes += event->received.bytes;
	}
	return 0;
}

static int compare_rows(const void *left, const void *right)
{
	const struct model_mpi_row *a = left, *b = right;
	uint64_t one = a->sent_bytes + a->received_bytes, other = b->sent_bytes + b->received_bytes;
	int order;

	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	if (a->time_ns != b->time_ns)
		return a->time_ns > b->time_ns ? -1 : 1;
	if (one != other)
		return one > other ? -1 : 1;
	order = strcmp(a->function, b->function);
	if (!order)
		order = strcmp(a->communicator, b->communicator);
	return order ? order : a->peer < b->peer ? -1 : a->peer > b->peer;
}

/* ---- communicators and sites ---- */

static int add_communicator(const struct mpi_builder *builder, const struct mpi_event *event)
{
	struct session_mpi_storage *storage = builder->storage;
	struct arena *arena = &session_get_private(builder->session)->arena;
	uint64_t key =
		hash_text(fold_hash_add(FOLD_HASH_FACTOR, event->process), event->communicator);
	struct model_mpi_communicator *it;

	key = fold_hash_add(key, event->context);
	if (storage->model.communicator_count >= MPI_COMMUNICATORS_MAX ||
	    id_map_get(&storage->communicators, key) != ID_MAP_NONE)
		return 0;
	if (array_reserve_one_more((void **)&storage->model.communicators,
				   &storage->communicator_capacity,
				   storage->model.communicator_count, sizeof(*it)) < 0 ||
	    id_map_set(&storage->communicators, key, storage->model.communicator_count) < 0)
		return -ENOMEM;
	it = &storage->model.communicators[storage->model.communicator_count++];
	*it = (struct model_mpi_communicator){
		.process = event->process,
		.name = arena_intern_string(arena, event->communicator),
		.world_ranks = arena_intern_string(arena, event->world_ranks),
		.context = event->context,
		.size = event->size};
	return it->name && it->world_ranks ? 0 : -ENOMEM;
}

static uint64_t get_site_key(uint32_t process, uint64_t address)
{
	return fold_hash_add(fold_hash_add(FOLD_HASH_FACTOR, process), address);
}

static int note_site(const struct mpi_builder *builder, const struct mpi_event *event)
{
	struct session_mpi_storage *storage = builder->storage;
	uint64_t key = get_site_key(event->process, event->site);

	if (!event->site || storage->model.site_count >= MPI_SITES_MAX ||
	    id_map_get(&storage->sites, key) != ID_MAP_NONE)
		return 0;
	if (array_reserve_one_more((void **)&storage->model.sites, &storage->site_capacity,
				   storage->model.site_count, sizeof(*storage->model.sites)) < 0 ||
	    id_map_set(&storage->sites, key, storage->model.site_count) < 0)
		return -ENOMEM;
	storage->model.sites[storage->model.site_count++] = (struct model_mpi_site){
		.process = event->process, .address = event->site, .first_ns = event->begin_ns};
	return 0;
}

const struct model_mpi_site *mpi_find_site(const struct session *session, uint32_t process,
					   uint64_t address)
{
	uint32_t index = id_map_get(&get_storage(session)->sites, get_site_key(process, address));

	return index == ID_MAP_NONE ? NULL : &session_get_mpi(session)->sites[index];
}

/* ---- the kind ---- */

static int take_event(const struct mpi_event *event, void *context)
{
	const struct mpi_builder *builder = context;
	int error = 0;

	if (event->kind == MPI_EVENT_COMMUNICATOR)
		return add_communicator(builder, event);
	if (event->kind == MPI_EVENT_CALL) {
		error = add_call(builder, event);
		if (!error)
			error = note_site(builder, event);
	}
	return error ? error : add_messages(builder, event);
}

static int mpi_kind_open(struct session *session, struct problem *problem)
{
	struct mpi_builder builder = {.session = session, .storage = get_storage(session)};
	struct model_mpi *model = session_get_mpi(session);
	int error = 0;

	if (!mpi_has_events(session))
		return 0;
	for (uint32_t i = 0; !error && i < session->process_count; i++)
		error = mpi_visit_events(session, i, take_event, &builder, problem);
	if (error == -ENOMEM)
		return problem_set(problem, error, "out of memory");
	if (model->row_count)
		qsort(model->rows, model->row_count, sizeof(*model->rows), compare_rows);
	return error;
}

static size_t mpi_kind_count_sites(const struct session *session)
{
	return session_get_mpi(session)->site_count;
}

/* Return addresses: the call is before them. */
static void mpi_kind_gather_sites(struct address_references *references, struct session *session,
				  uint32_t first)
{
	const struct model_mpi *model = session_get_mpi(session);

	for (uint32_t i = 0; i < model->site_count; i++)
		address_references_add_address_at(references, model->sites[i].process,
						  model->sites[i].address - 1,
						  model->sites[i].first_ns, first++);
}

static int mpi_kind_take_names(const struct symbol_resolution *resolution, uint32_t first)
{
	struct model_mpi *model = session_get_mpi(resolution->session);

	for (uint32_t i = 0; i < model->site_count; i++) {
		uint32_t index = resolution->chain_by_reference_number[first + i];
		const struct code_location_chain *chain;
		const struct code_location *place;

		if (index == MODEL_ENTRY_INDEX_NONE || !resolution->chains[index].count)
			continue;
		chain = &resolution->chains[index];
		place = &resolution->places[resolution->chain_place_indexes[chain->first]];
		model->sites[i].function = place->function;
		model->sites[i].file = place->file;
		model->sites[i].line = place->line;
	}
	return 0;
}

static void mpi_kind_free(struct session *session)
{
	struct session_mpi_storage *storage = get_storage(session);

	free(storage->model.rows);
	free(storage->model.communicators);
	free(storage->model.sites);
	id_map_deinit(&storage->rows);
	id_map_deinit(&storage->communicators);
	id_map_deinit(&storage->sites);
}

const struct session_data_kind_operations mpi_data_kind_operations = {
	.name = MPI_DATA_KIND_NAME,
	.session_data_bytes = sizeof(struct session_mpi_storage),
	.open = mpi_kind_open,
	.address_count = mpi_kind_count_sites,
	.gather_addresses = mpi_kind_gather_sites,
	.take_symbol_names = mpi_kind_take_names,
	.free = mpi_kind_free,
};
