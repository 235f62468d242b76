/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See requests.h. A hash table with linear probing, half of it free, in pages of its own that are
 * not touched before there is a request.
 *
 * Threads: a lock around each look-up; MPI is never called with it held.
 */
#include "wrappers/mpi/requests.h"

#include <stdatomic.h>
#include <sys/mman.h>

#include "common/syscalls.h"
#include "regions/state.h"

#define REQUESTS_MAX         16384
#define REQUEST_PLACES       ((size_t)2 * REQUESTS_MAX) /* a power of two */
#define REQUEST_TABLE_FAILED ((void *)-1)

static struct mpi_request *request_places; /* NULL: not made yet */
static uint32_t request_count;
static _Atomic uint32_t requests_lock;

static void lock_requests(void)
{
	while (atomic_exchange_explicit(&requests_lock, 1, memory_order_acquire))
		sys_call0(SYS_sched_yield);
}

static void unlock_requests(void)
{
	atomic_store_explicit(&requests_lock, 0, memory_order_release);
}

static bool request_table_is_ready(void)
{
	if (!request_places) {
		void *memory = sys_mmap(NULL, REQUEST_PLACES * sizeof(*request_places),
					PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		request_places = sys_mmap_failed(memory) ? REQUEST_TABLE_FAILED : memory;
	}
	return request_places != REQUEST_TABLE_FAILED;
}

static size_t get_home_of_handle(uintptr_t handle)
{
	return (size_t)(handle * 0x9e3779b97f4a7c15ull >> 32) & (REQUEST_PLACES - 1);
}

/* Where the handle is, or the free place where it would be. */
static size_t find_place(uintptr_t handle)
{
	size_t at = get_home_of_handle(handle);

	while (request_places[at].handle && request_places[at].handle != handle)
		at = (at + 1) & (REQUEST_PLACES - 1);
	return at;
}

/* What stands behind the free place and could not be found any more moves into it. */
static void remove_place(size_t place)
{
	size_t at = place;

	request_places[place].handle = 0;
	request_count--;
	while (request_places[at = (at + 1) & (REQUEST_PLACES - 1)].handle) {
		size_t home = get_home_of_handle(request_places[at].handle);

		if (((at - home) & (REQUEST_PLACES - 1)) < ((at - place) & (REQUEST_PLACES - 1)))
			continue;
		request_places[place] = request_places[at];
		request_places[at].handle = 0;
		place = at;
	}
}

uint64_t mpi_request_make_number(void)
{
	static _Atomic uint64_t last;

	return atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

void mpi_request_add(const struct mpi_request *request)
{
	bool added = false;

	if (!request->handle)
		return;
	lock_requests();
	if (request_table_is_ready()) {
		struct mpi_request *place = &request_places[find_place(request->handle)];

		added = place->handle || request_count < REQUESTS_MAX;
		if (added) {
			request_count += !place->handle;
			*place = *request;
		}
	}
	unlock_requests();
	if (!added)
		spool_count_loss(kymo_regions.spool, SPOOL_LOSS_MPI_REQUESTS);
}

bool mpi_request_find(uintptr_t handle, struct mpi_request *ret)
{
	ret->handle = 0;
	if (!handle)
		return false;
	lock_requests();
	if (request_count)
		*ret = request_places[find_place(handle)];
	unlock_requests();
	return ret->handle != 0;
}

void mpi_request_end(const struct mpi_request *request)
{
	lock_requests();
	if (request_count) {
		size_t place = find_place(request->handle);
		struct mpi_request *entry = &request_places[place];

		if (entry->handle && entry->number == request->number) {
			if (entry->is_persistent)
				entry->is_active = false;
			else
				remove_place(place);
		}
	}
	unlock_requests();
}

void mpi_request_forget(uintptr_t handle)
{
	lock_requests();
	if (handle && request_count) {
		size_t place = find_place(handle);

		if (request_places[place].handle)
			remove_place(place);
	}
	unlock_requests();
}
