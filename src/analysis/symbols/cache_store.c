/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Writing a cache file: all of it in memory, then to a temporary name, then renamed, so that
 * readers see the old file or the new one.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "analysis/symbols/cache_format.h"
#include "files/atomic_file.h"

/* Files that nobody wrote for so long belong to builds that are gone. */
#define CACHE_FILE_AGE_MAX_SECONDS (60 * 24 * 60 * 60)

/* Strings by pointer: equal strings of a result are the same pointer, and where they are not, the
 * file is only larger. */
struct string_offset_slot {
	const char *text;
	uint32_t offset;
};

struct symbol_cache_file_image {
	uint8_t *bytes; /* header, chains, frames */
	size_t size;
	char *strings;
	size_t strings_size, strings_capacity;
	struct string_offset_slot *slots;
	size_t slot_count, slot_capacity; /* capacity is a power of two */
};

static void free_cache_file_image(struct symbol_cache_file_image *image)
{
	free(image->bytes);
	free(image->strings);
	free(image->slots);
}

static size_t hash_string_pointer(const char *text)
{
	return (size_t)(((uint64_t)(uintptr_t)text * 0x9e3779b97f4a7c15u) >> 24);
}

static int grow_string_slots(struct symbol_cache_file_image *image)
{
	size_t capacity = image->slot_capacity ? image->slot_capacity * 2 : 4096;
	struct string_offset_slot *slots = calloc(capacity, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < image->slot_capacity; i++) {
		if (!image->slots[i].text)
			continue;
		size_t at = hash_string_pointer(image->slots[i].text) & (capacity - 1);
		while (slots[at].text)
			at = (at + 1) & (capacity - 1);
		slots[at] = image->slots[i];
	}
	free(image->slots);
	image->slots = slots;
	image->slot_capacity = capacity;
	return 0;
}

static int append_string(struct symbol_cache_file_image *image, const char *text, uint32_t *ret)
{
	size_t size = strlen(text) + 1;
	if (size > CACHE_FILE_SIZE_MAX - image->strings_size)
		return -E2BIG;
	if (image->strings_capacity - image->strings_size < size) {
		size_t capacity = (image->strings_size + size) * 2;
		char *strings = realloc(image->strings, capacity);
		if (!strings)
			return -ENOMEM;
		image->strings = strings;
		image->strings_capacity = capacity;
	}
	*ret = (uint32_t)image->strings_size;
	memcpy(image->strings + image->strings_size, text, size);
	image->strings_size += size;
	return 0;
}

static int find_or_add_string_offset(struct symbol_cache_file_image *image, const char *text,
				     uint32_t *ret)
{
	*ret = 0;
	if (!text)
		return 0;
	if (image->slot_count * 2 >= image->slot_capacity) {
		int error = grow_string_slots(image);
		if (error)
			return error;
	}
	size_t mask = image->slot_capacity - 1;
	size_t at = hash_string_pointer(text) & mask;
	for (; image->slots[at].text; at = (at + 1) & mask) {
		if (image->slots[at].text == text) {
			*ret = image->slots[at].offset;
			return 0;
		}
	}
	int error = append_string(image, text, ret);
	if (!error) {
		image->slots[at] = (struct string_offset_slot){text, *ret};
		image->slot_count++;
	}
	return error;
}

static int encode_cached_frame(struct symbol_cache_file_image *image,
			       const struct symbolizer_frame *frame, uint8_t *to)
{
	struct cache_file_frame encoded = {
		.line = frame->line,
		.function_line = frame->function_line,
		.function_id = frame->function_id | (frame->inlined ? CACHE_FRAME_INLINED_BIT : 0),
	};
	int error = find_or_add_string_offset(image, frame->function, &encoded.function);
	if (!error)
		error = find_or_add_string_offset(image, frame->linkage_name,
						  &encoded.linkage_name);
	if (!error)
		error = find_or_add_string_offset(image, frame->file, &encoded.file);
	memcpy(to, &encoded, sizeof(encoded));
	return error;
}

static int append_chains_and_frames(struct symbol_cache_file_image *image,
				    const struct symbolizer_request_result *result,
				    const uint64_t *offsets)
{
	uint8_t *to = image->bytes + sizeof(struct cache_file_header);
	for (size_t i = 0; i < result->chain_count;
	     i++, to += sizeof(struct cache_file_frame_chain_entry)) {
		const struct symbolizer_frame_chain *chain = &result->chains[i];
		struct cache_file_frame_chain_entry encoded = {offsets[i], chain->vaddr,
							       chain->first, chain->count};
		memcpy(to, &encoded, sizeof(encoded));
	}
	uint32_t nothing;
	int error = append_string(image, "", &nothing);
	for (size_t i = 0; !error && i < result->frame_count;
	     i++, to += sizeof(struct cache_file_frame))
		error = encode_cached_frame(image, &result->frames[i], to);
	return error;
}

static int build_cache_file_image(struct symbol_cache_file_image *image,
				  const struct symbolizer_cache_key *key,
				  const struct symbolizer_request_result *result,
				  const uint64_t *offsets)
{
	*image = (struct symbol_cache_file_image){0};
	image->size = sizeof(struct cache_file_header) +
		      result->chain_count * sizeof(struct cache_file_frame_chain_entry) +
		      result->frame_count * sizeof(struct cache_file_frame);
	if (image->size > CACHE_FILE_SIZE_MAX)
		return -E2BIG;
	image->bytes = malloc(image->size);
	int error = image->bytes ? append_chains_and_frames(image, result, offsets) : -ENOMEM;
	if (!error && image->size + image->strings_size > CACHE_FILE_SIZE_MAX)
		error = -E2BIG;
	if (error)
		return error;
	struct cache_file_header header = {
		.magic = CACHE_FILE_MAGIC,
		.version = CACHE_FILE_VERSION,
		.source_files_hash = key->source_files_hash,
		.build_id_size = key->build_id_size,
		.status = result->status,
		.function_count = result->function_count,
		.chain_count = result->chain_count,
		.frame_count = result->frame_count,
		.strings_size = image->strings_size,
	};
	memcpy(header.build_id, key->build_id, key->build_id_size);
	uLong checksum = cache_file_compute_header_checksum(&header);
	checksum = crc32_z(checksum, image->bytes + sizeof(header), image->size - sizeof(header));
	checksum = crc32_z(checksum, (const uint8_t *)image->strings, image->strings_size);
	header.checksum = (uint32_t)checksum;
	memcpy(image->bytes, &header, sizeof(header));
	return 0;
}

static void remove_old_cache_files(const char *directory)
{
	DIR *entries = opendir(directory);
	if (!entries)
		return;
	time_t now = time(NULL);
	for (struct dirent *entry; (entry = readdir(entries));) {
		struct stat status;
		if (!strstr(entry->d_name, CACHE_FILE_SUFFIX) ||
		    fstatat(dirfd(entries), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) ||
		    !S_ISREG(status.st_mode) || now - status.st_mtime < CACHE_FILE_AGE_MAX_SECONDS)
			continue;
		unlinkat(dirfd(entries), entry->d_name, 0);
	}
	closedir(entries);
}

static int write_cache_file(const struct symbol_cache_file_image *image, const char *path)
{
	const struct atomic_file_part parts[] = {{image->bytes, image->size},
						 {image->strings, image->strings_size}};

	return atomic_file_write_parts(path, 0600, parts, 2);
}

int symbolizer_cache_store(const struct symbolizer_cache_key *key,
			   const struct symbolizer_request_result *result, const uint64_t *offsets)
{
	char path[PATH_MAX];
	int error = symbolizer_cache_make_path(key, path);
	if (error)
		return error;
	struct symbol_cache_file_image image;
	error = build_cache_file_image(&image, key, result, offsets);
	if (!error)
		error = write_cache_file(&image, path);
	free_cache_file_image(&image);
	if (!error) {
		*strrchr(path, '/') = 0;
		remove_old_cache_files(path);
	}
	return error;
}
