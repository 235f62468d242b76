/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Files of the NCCL plugin made by hand; see nccl_fixture.h.
 */
#include "unit/analysis/nccl_fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static void must(int ok)
{
	if (!ok)
		abort();
}

void nccl_fixture_init(struct nccl_fixture *fixture, uint32_t pid, const char *host,
		       uint64_t start_ns, int64_t realtime_ns)
{
	struct nccl_file_header *header;

	/* Not calloc(), which writes it all where tests have MALLOC_PERTURB_. */
	*fixture = (struct nccl_fixture){
		.bytes = mmap(NULL, NCCL_FIXTURE_SIZE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0),
		.size = NCCL_CHUNKS_OFFSET};
	must(fixture->bytes != MAP_FAILED);
	header = fixture->header = (void *)fixture->bytes;
	memcpy(header->magic, NCCL_FILE_MAGIC, sizeof(header->magic));
	header->version_major = NCCL_FILE_VERSION_MAJOR;
	header->header_size = NCCL_HEADER_SIZE;
	header->pid = pid;
	header->tick_clock = 1;
	header->state = NCCL_FILE_OPEN;
	header->api = 5;
	header->mask = 0xffff;
	header->gpu_clock = NCCL_GPU_CLOCK_EPOCH_NS;
	header->clock_count = 1;
	header->clocks[0] =
		(struct nccl_clock){start_ns, start_ns, start_ns, (uint64_t)realtime_ns + start_ns};
	header->heartbeat_ticks = start_ns;
	header->world_rank = header->world_size = header->local_rank = -1;
	snprintf(header->host, sizeof(header->host), "%s", host);
	snprintf(header->boot_id, sizeof(header->boot_id), "boot of %.20s", host);
	snprintf(header->program, sizeof(header->program), "/usr/bin/train");
}

void nccl_fixture_deinit(struct nccl_fixture *fixture)
{
	if (fixture->bytes)
		munmap(fixture->bytes, NCCL_FIXTURE_SIZE);
	fixture->bytes = NULL;
}

uint8_t nccl_fixture_name(struct nccl_fixture *fixture, const char *name)
{
	char(*names)[NCCL_NAME_SIZE] = (void *)(fixture->bytes + NCCL_HEADER_SIZE);

	for (unsigned i = 1; i < NCCL_NAMES; i++) {
		if (!names[i][0])
			snprintf(names[i], NCCL_NAME_SIZE, "%s", name);
		if (!strcmp(names[i], name))
			return (uint8_t)i;
	}
	abort();
}

/* The next record of a kind and communicator: in a chunk that has room, or a new one. */
static void *take(struct nccl_fixture *fixture, enum nccl_chunk_kind kind, uint32_t communicator,
		  size_t size)
{
	struct nccl_chunk_header *chunk = NULL;
	uint64_t offset, id;

	for (offset = NCCL_CHUNKS_OFFSET; offset < fixture->size; offset += NCCL_CHUNK_SIZE) {
		chunk = (void *)(fixture->bytes + offset);
		if (chunk->kind == kind && chunk->communicator == communicator &&
		    NCCL_CHUNK_HEADER_SIZE + (chunk->taken + 1) * size <= NCCL_CHUNK_SIZE)
			break;
	}
	if (offset == fixture->size) {
		must(fixture->size + NCCL_CHUNK_SIZE <= NCCL_FIXTURE_SIZE);
		fixture->size += NCCL_CHUNK_SIZE;
		chunk = (void *)(fixture->bytes + offset);
		chunk->magic = NCCL_CHUNK_MAGIC;
		chunk->kind = kind;
		chunk->record_size = (uint32_t)size;
		chunk->communicator = communicator;
		chunk->sequence = ++fixture->header->chunks_taken;
		chunk->generation = 1;
		fixture->header->file_size = fixture->size;
	}
	offset += NCCL_CHUNK_HEADER_SIZE + chunk->taken++ * size;
	id = (uint64_t)NCCL_ID_MAGIC << 60 | (uint64_t)7 << 48 | (uint64_t)1 << 28 |
	     offset / NCCL_RECORD_UNIT;
	memcpy(fixture->bytes + offset, &id, sizeof(id));
	return fixture->bytes + offset;
}

struct nccl_communicator_record *nccl_fixture_communicator(struct nccl_fixture *fixture,
							   uint64_t hash, int32_t ranks,
							   int32_t rank, const char *name)
{
	struct nccl_communicator_record *communicator =
		take(fixture, NCCL_CHUNK_COMMUNICATORS, 0, sizeof(*communicator));

	communicator->hash = hash;
	communicator->creation = ++fixture->communicators;
	must(fixture->communicators < 64);
	communicator->ranks = ranks;
	communicator->rank = rank;
	communicator->api = 5;
	communicator->mask = 0xffff;
	snprintf(communicator->name, sizeof(communicator->name), "%s", name);
	return communicator;
}

struct nccl_operation *nccl_fixture_operation(struct nccl_fixture *fixture,
					      struct nccl_communicator_record *communicator,
					      const char *function, uint64_t sequence,
					      uint64_t bytes, uint64_t start_ns)
{
	uint32_t creation = (uint32_t)communicator->creation;
	struct nccl_operation *operation =
		take(fixture, NCCL_CHUNK_OPERATIONS, creation, sizeof(*operation));

	operation->communicator = creation;
	operation->ordinal = fixture->ordinals[creation]++;
	operation->kind = NCCL_KIND_COLLECTIVE;
	operation->state = NCCL_OPERATION_ENQUEUED;
	operation->function = nccl_fixture_name(fixture, function);
	operation->data_type = nccl_fixture_name(fixture, "ncclFloat32");
	operation->algorithm = nccl_fixture_name(fixture, "RING");
	operation->protocol = nccl_fixture_name(fixture, "SIMPLE");
	operation->sequence = sequence;
	operation->bytes = bytes;
	operation->count = bytes / 4;
	operation->peer = -1;
	operation->thread = fixture->header->pid;
	operation->launch = start_ns;
	operation->start = start_ns + 1000;
	operation->stop = start_ns + 2000;
	operation->last = operation->stop;
	communicator->operations++;
	return operation;
}

void nccl_fixture_run(struct nccl_fixture *fixture, struct nccl_operation *operation,
		      uint64_t begin_ns, uint64_t end_ns, int64_t gpu_ahead_ns)
{
	struct nccl_event *event =
		nccl_fixture_event(fixture, operation->communicator, NCCL_KIND_KERNEL_CHANNEL,
				   operation->id, begin_ns + 3000);

	event->gpu.start = begin_ns + (uint64_t)gpu_ahead_ns;
	event->gpu.stop = end_ns + (uint64_t)gpu_ahead_ns;
	event->stop = end_ns + 4000;
	event->flags = NCCL_EVENT_STOPPED;
	operation->channels_started = operation->channels_stopped = 1;
	operation->gpu_start = event->gpu.start;
	operation->gpu_stop = event->gpu.stop;
	operation->last = event->stop;
	operation->state = NCCL_OPERATION_DONE;
	operation->flags |= NCCL_OPERATION_SEALED;
}

struct nccl_event *nccl_fixture_event(struct nccl_fixture *fixture, uint32_t communicator,
				      enum nccl_kind kind, uint64_t parent, uint64_t start_ns)
{
	struct nccl_event *event = take(fixture, NCCL_CHUNK_EVENTS, communicator, sizeof(*event));

	event->communicator = communicator;
	event->kind = (uint8_t)kind;
	event->parent = parent;
	event->start = start_ns;
	event->thread = fixture->header->pid + 1;
	return event;
}

/* Most of a chunk is empty, and stays a hole: jobs of many ranks have many of them. */
static void write_pages_with_data(int file, const struct nccl_fixture *fixture)
{
	static const uint8_t empty[4096];

	must(ftruncate(file, (off_t)fixture->size) == 0);
	for (size_t at = 0; at < fixture->size; at += sizeof(empty)) {
		size_t size = fixture->size - at;

		size = size < sizeof(empty) ? size : sizeof(empty);
		if (memcmp(fixture->bytes + at, empty, size) != 0)
			must(pwrite(file, fixture->bytes + at, size, (off_t)at) == (ssize_t)size);
	}
}

void nccl_fixture_write(const struct nccl_fixture *fixture, const char *directory)
{
	char path[4096];
	int file;

	snprintf(path, sizeof(path), "%s/spool", directory);
	mkdir(path, 0777);
	snprintf(path, sizeof(path), "%s/spool/nccl-%u-0.nccl", directory, fixture->header->pid);
	file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	must(file >= 0);
	write_pages_with_data(file, fixture);
	must(close(file) == 0);
}
