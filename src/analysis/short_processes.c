/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See short_processes.h. Where an entry makes no sense, because the disk was full or the file was
 * damaged, the next one is looked for.
 */
#include "analysis/short_processes.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/arena.h"
#include "analysis/record_file.h"
#include "analysis/session_private.h"

#define SEARCH_BLOCK_BYTES (64u << 10)
#define USER_HZ_TICK_NS    UINT64_C(10000000) /* USER_HZ */

struct short_process_entry {
	struct spool_file_header header;
	struct spool_chunk_header chunk_header;
};

/* ---- the entries ---- */

static bool is_valid_entry(const struct short_process_entry *entry)
{
	const struct spool_file_header *header = &entry->header;
	const struct spool_chunk_header *chunk = &entry->chunk_header;

	return !memcmp(header->magic, SPOOL_MAGIC, sizeof(header->magic)) &&
	       header->version_major == SPOOL_VERSION_MAJOR && header->pid &&
	       header->file_size >= header->header_size + SPOOL_CHUNK_HEADER_SIZE &&
	       header->file_size <= SPOOL_CHUNK_SIZE_MAX && chunk->magic == SPOOL_CHUNK_MAGIC &&
	       header->file_size == header->header_size + (uint64_t)chunk->size &&
	       chunk->committed <= chunk->size - SPOOL_CHUNK_HEADER_SIZE;
}

static bool read_whole_range_at_offset(int descriptor, void *ret, size_t size, uint64_t offset)
{
	return record_file_read_at_offset(descriptor, ret, size, offset) == (ssize_t)size;
}

/* Each minor version may have a longer head. */
static bool read_entry(int descriptor, uint64_t offset, struct short_process_entry *ret)
{
	uint32_t size;

	memset(ret, 0, sizeof(*ret));
	if (!read_whole_range_at_offset(descriptor, &ret->header, SPOOL_SHORT_HEADER_FIRST, offset))
		return false;
	size = ret->header.header_size;
	if (size < SPOOL_SHORT_HEADER_FIRST || size >= SPOOL_ALIGNMENT)
		return false;
	return read_whole_range_at_offset(descriptor, &ret->header, size, offset) &&
	       read_whole_range_at_offset(descriptor, &ret->chunk_header, sizeof(ret->chunk_header),
					  offset + size) &&
	       is_valid_entry(ret);
}

/* The next place at or behind `offset` that begins as an entry does, or `size`. */
static uint64_t find_next_entry_offset(int descriptor, uint64_t offset, uint64_t size, char *block)
{
	while (offset < size) {
		ssize_t got =
			record_file_read_at_offset(descriptor, block, SEARCH_BLOCK_BYTES, offset);
		const char *found;

		if (got < (ssize_t)sizeof(SPOOL_MAGIC))
			return size;
		found = memmem(block, (size_t)got, SPOOL_MAGIC, sizeof(SPOOL_MAGIC));
		if (found)
			return offset + (uint64_t)(found - block);
		offset += (uint64_t)got - (sizeof(SPOOL_MAGIC) - 1);
	}
	return size;
}

static int add_entry_as_chunk(struct spool_file *file, uint64_t offset,
			      const struct short_process_entry *entry)
{
	if (array_reserve_one_more((void **)&file->chunks, &file->chunk_capacity, file->chunk_count,
				   sizeof(*file->chunks)) < 0)
		return -ENOMEM;
	file->chunks[file->chunk_count++] = (struct spool_chunk){
		offset + entry->header.header_size, entry->chunk_header.sequence,
		entry->chunk_header.committed, false};
	file->size += entry->header.file_size;
	return 0;
}

static int add_process_of_entry(struct short_processes *processes, const struct spool_file *shared,
				const struct short_process_entry *entry, struct spool_file **ret)
{
	struct spool_file *file;

	if (array_reserve_one_more((void **)&processes->files, &processes->capacity,
				   processes->count, sizeof(*processes->files)) < 0)
		return -ENOMEM;
	file = &processes->files[processes->count];
	*file = (struct spool_file){.descriptor = -1,
				    .path = strdup(shared->path),
				    .owner = shared->owner,
				    .settled = shared->size,
				    .header = entry->header};
	if (!file->path)
		return -ENOMEM;
	processes->count++;
	*ret = file;
	return 0;
}

/* Entries of a process follow its first one; many processes do not lie between. */
static struct spool_file *find_process_of_entry(const struct short_processes *processes,
						const struct spool_file_header *header)
{
	for (size_t i = processes->count; i-- > 0;) {
		const struct spool_file_header *other = &processes->files[i].header;

		if (other->pid == header->pid)
			return other->start_ticks == header->start_ticks ? &processes->files[i]
									 : NULL;
	}
	return NULL;
}

static int add_entry_to_its_process(struct short_processes *processes,
				    const struct spool_file *shared, uint64_t offset,
				    const struct short_process_entry *entry)
{
	struct spool_file *file = find_process_of_entry(processes, &entry->header);
	int result = 0;

	if (!file)
		result = add_process_of_entry(processes, shared, entry, &file);
	if (result < 0)
		return result;
	file->header.state = entry->header.state;
	file->header.end_ticks = entry->header.end_ticks;
	file->header.own_work_ns = entry->header.own_work_ns;
	return add_entry_as_chunk(file, offset, entry);
}

static bool has_short_file_magic(int descriptor)
{
	char magic[sizeof(SPOOL_SHORT_MAGIC)];

	return record_file_read_at_offset(descriptor, magic, sizeof(magic), 0) ==
		       (ssize_t)sizeof(magic) &&
	       !memcmp(magic, SPOOL_SHORT_MAGIC, sizeof(magic));
}

static int read_all_entries(struct spool_file *shared, struct short_processes *processes)
{
	char *block = malloc(SEARCH_BLOCK_BYTES);
	uint64_t offset = has_short_file_magic(shared->descriptor) ? sizeof(SPOOL_SHORT_MAGIC) : 0;
	int result = block ? 0 : -ENOMEM;

	while (result == 0 && offset < shared->size) {
		struct short_process_entry entry;

		if (read_entry(shared->descriptor, offset, &entry) &&
		    entry.header.file_size <= shared->size - offset) {
			result = add_entry_to_its_process(processes, shared, offset, &entry);
			offset += entry.header.file_size;
		} else {
			uint64_t next = find_next_entry_offset(shared->descriptor, offset + 1,
							       shared->size, block);

			processes->torn_bytes += next - offset;
			offset = next;
		}
	}
	free(block);
	return result;
}

static void remove_processes_with_own_file(struct short_processes *processes)
{
	size_t kept = 0;

	for (size_t i = 0; i < processes->count; i++) {
		if (processes->files[i].header.state == SPOOL_STATE_MOVED)
			spool_file_close(&processes->files[i]);
		else
			processes->files[kept++] = processes->files[i];
	}
	processes->count = kept;
}

int short_processes_read(const char *path, struct short_processes *ret, struct problem *problem)
{
	struct spool_file shared = {.descriptor = -1, .path = (char *)path};
	struct stat status;
	int result;

	*ret = (struct short_processes){NULL, 0, 0, 0};
	if (access(path, F_OK) < 0 && errno == ENOENT)
		return 0;
	result = record_file_open_and_get_size(path, &shared.descriptor, &shared.size, problem);
	if (result == 0 && !fstat(shared.descriptor, &status))
		shared.owner = status.st_uid;
	if (result == 0)
		result = read_all_entries(&shared, ret);
	if (shared.descriptor >= 0)
		close(shared.descriptor);
	if (result < 0)
		return result;
	remove_processes_with_own_file(ret);
	return 0;
}

void short_processes_free(struct short_processes *processes)
{
	for (size_t i = 0; i < processes->count; i++)
		spool_file_close(&processes->files[i]);
	free(processes->files);
	*processes = (struct short_processes){NULL, 0, 0, 0};
}

/* ---- images of one process ---- */

/* Pointers, so that the order of the processes stays. */
static int compare_images_by_pid_and_start(const void *left, const void *right)
{
	const struct spool_file_header *const *a = left, *const *b = right;

	if ((*a)->pid != (*b)->pid)
		return (*a)->pid < (*b)->pid ? -1 : 1;
	if ((*a)->start_boottime_ns != (*b)->start_boottime_ns)
		return (*a)->start_boottime_ns < (*b)->start_boottime_ns ? -1 : 1;
	return 0;
}

static struct process_private *get_process_containing_header(struct spool_file_header *header)
{
	return (struct process_private *)(void *)((char *)header -
						  offsetof(struct process_private, file.header));
}

static void assign_image_numbers_of_process(struct process_private *processes,
					    struct spool_file_header **images, size_t count)
{
	uint64_t made = 0;

	for (size_t i = 0; i < count; i++)
		made = images[i]->process_start ? images[i]->process_start : made;
	if (!made)
		made = images[0]->start_boottime_ns / USER_HZ_TICK_NS;
	for (size_t i = 0; i < count; i++) {
		images[i]->process_start = made;
		get_process_containing_header(images[i])->earlier_image_process_index =
			i ? (uint32_t)(get_process_containing_header(images[i - 1]) - processes)
			  : MODEL_ENTRY_INDEX_NONE;
		if (i && images[i]->image <= images[i - 1]->image)
			images[i]->image = images[i - 1]->image + 1;
	}
}

int assign_image_numbers_of_all_processes(struct process_private *processes, uint32_t count)
{
	/* Arrays of pointers. NOLINTNEXTLINE(bugprone-sizeof-expression) */
	struct spool_file_header **order = calloc((size_t)count + 1, sizeof(*order));
	size_t first = 0;

	if (!order)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		order[i] = &processes[i].file.header;
	if (count > 1)
		/* NOLINTNEXTLINE(bugprone-sizeof-expression) */
		qsort(order, count, sizeof(*order), compare_images_by_pid_and_start);
	for (size_t i = 1; i <= count; i++) {
		if (i < count && order[i]->pid == order[first]->pid &&
		    order[i - 1]->state == SPOOL_STATE_EXEC)
			continue;
		assign_image_numbers_of_process(processes, order + first, i - first);
		first = i;
	}
	free(order);
	return 0;
}
