/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See allocations.h. Sums are cumulative, so the last record of a site counts.
 */
#include "analysis/allocations_private.h"

#include <errno.h>
#include <stdlib.h>

#define FRAMES_MAX 1024 /* more than any process records */

/* The site with this id, made if it is new; NULL: out of memory. */
static struct model_site *site_of(struct session *session, uint32_t process, uint64_t id)
{
	struct id_map *ids = &session_private(session)->processes[process].sites;
	struct model_allocations *allocations = session->allocations;
	uint32_t index = id_map_get(ids, id);

	if (index != ID_MAP_NONE)
		return &allocations->sites[index];
	index = allocations->count;
	if (array_reserve((void **)&allocations->sites, &allocations->capacity, index,
			  sizeof(*allocations->sites)) < 0 ||
	    id_map_set(ids, id, index) < 0)
		return NULL;
	allocations->count++;
	allocations->sites[index] = (struct model_site){.process = process};
	return &allocations->sites[index];
}

static int take_site(struct session *session, uint32_t process, struct spool_payload *payload)
{
	uint64_t id = spool_unsigned(payload), count = spool_unsigned(payload);
	struct model_site *site;
	uint64_t *addresses;

	if (payload->bad || count > FRAMES_MAX ||
	    count * sizeof(*addresses) > (size_t)(payload->end - payload->at))
		return -EBADMSG;
	site = site_of(session, process, id);
	addresses = arena_allocate(&session_private(session)->arena,
				   (size_t)(count + 1) * sizeof(*addresses));
	if (!site || !addresses)
		return -ENOMEM;
	for (uint64_t i = 0; i < count; i++)
		addresses[i] = spool_fixed(payload);
	site->addresses = addresses;
	site->address_count = (uint32_t)count;
	return 0;
}

int scan_call_site(struct session *session, uint32_t process, struct spool_payload *payload)
{
	uint64_t count = spool_unsigned(payload);
	int result = payload->bad ? -EBADMSG : 0;

	for (uint64_t i = 0; result == 0 && i < count; i++)
		result = take_site(session, process, payload);
	return result;
}

int scan_allocations(struct session *session, uint32_t process, struct spool_payload *payload)
{
	struct model_site *site, sums = {0};
	uint64_t id = spool_unsigned(payload);

	sums.allocations = spool_unsigned(payload);
	sums.frees = spool_unsigned(payload);
	sums.allocated_bytes = spool_unsigned(payload);
	sums.freed_bytes = spool_unsigned(payload);
	sums.peak_bytes = spool_unsigned(payload);
	if (payload->bad)
		return -EBADMSG;
	site = site_of(session, process, id);
	if (!site)
		return -ENOMEM;
	sums.process = process;
	sums.addresses = site->addresses;
	sums.address_count = site->address_count;
	*site = sums;
	return 0;
}

static int by_process_and_bytes(const void *left, const void *right)
{
	const struct model_site *a = left, *b = right;

	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	if (a->allocated_bytes != b->allocated_bytes)
		return a->allocated_bytes > b->allocated_bytes ? -1 : 1;
	return a->addresses < b->addresses ? -1 : a->addresses > b->addresses;
}

void allocations_sort(struct session *session)
{
	struct model_allocations *allocations = session->allocations;

	if (allocations->count > 1)
		qsort(allocations->sites, allocations->count, sizeof(*allocations->sites),
		      by_process_and_bytes);
}

void allocations_free(struct session *session)
{
	if (session->allocations)
		free(session->allocations->sites);
}

size_t allocations_addresses(const struct session *session)
{
	size_t count = 0;

	for (uint32_t i = 0; i < session->allocations->count; i++)
		count += session->allocations->sites[i].address_count;
	return count;
}

static const struct place_chain *chain_at(const struct resolution *resolution, size_t index)
{
	uint32_t chain = resolution->chain_of[index];

	return chain == MODEL_NONE ? NULL : &resolution->chains[chain];
}

static const char *module_of(const struct session *session, const struct model_site *site,
			     uint64_t address)
{
	struct process_private *process = &session_private(session)->processes[site->process];
	uint32_t module = module_map_find(&process->module_map, address - 1,
					  session->processes[site->process].end_ns);

	return module == MODULE_MAP_NONE ? NULL : session->modules[module].name;
}

static int name_site(const struct resolution *resolution, struct model_site *site, size_t first)
{
	struct session *session = resolution->session;
	uint32_t count = 0;

	for (uint32_t i = 0; i < site->address_count; i++) {
		const struct place_chain *chain = chain_at(resolution, first + i);

		count += chain ? chain->count : 0;
	}
	site->frames = arena_allocate(&session_private(session)->arena,
				      (count + 1) * sizeof(*site->frames));
	if (!site->frames)
		return -ENOMEM;
	for (uint32_t i = 0; i < site->address_count; i++) {
		const struct place_chain *chain = chain_at(resolution, first + i);

		for (uint32_t j = 0; chain && j < chain->count; j++) {
			const struct place *place =
				&resolution->places[resolution->chain_places[chain->first + j]];

			site->frames[site->frame_count++] = (struct model_site_frame){
				.function = place->function,
				.file = place->file,
				.line = place->line,
				.module = module_of(session, site, site->addresses[i]),
				.inlined = place->kind == FRAME_INLINE};
		}
	}
	return 0;
}

int allocations_name(const struct resolution *resolution, size_t first)
{
	const struct model_allocations *allocations = resolution->session->allocations;
	int result = 0;

	for (uint32_t i = 0; result == 0 && i < allocations->count; i++) {
		result = name_site(resolution, &allocations->sites[i], first);
		first += allocations->sites[i].address_count;
	}
	return result;
}
