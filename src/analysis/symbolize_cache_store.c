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

#include "analysis/symbolize_cache_format.h"

/* Files that nobody wrote for so long belong to builds that are gone. */
#define CACHE_KEEP_SECONDS (60 * 24 * 60 * 60)

/* Strings by pointer: equal strings of a result are the same pointer, and where they are not, the
 * file is only larger. */
struct string_slot {
	const char *text;
	uint32_t offset;
};

struct image {
	uint8_t *bytes; /* header, chains, frames */
	size_t size;
	char *strings;
	size_t string_size, string_capacity;
	struct string_slot *slots;
	size_t slot_count, slot_capacity; /* capacity is a power of two */
};

static void image_deinit(struct image *image)
{
	free(image->bytes);
	free(image->strings);
	free(image->slots);
}

static size_t string_hash(const char *text)
{
	return (size_t)(((uint64_t)(uintptr_t)text * 0x9e3779b97f4a7c15u) >> 24);
}

static int slots_grow(struct image *image)
{
	size_t capacity = image->slot_capacity ? image->slot_capacity * 2 : 4096;
	struct string_slot *slots = calloc(capacity, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < image->slot_capacity; i++) {
		if (!image->slots[i].text)
			continue;
		size_t at = string_hash(image->slots[i].text) & (capacity - 1);
		while (slots[at].text)
			at = (at + 1) & (capacity - 1);
		slots[at] = image->slots[i];
	}
	free(image->slots);
	image->slots = slots;
	image->slot_capacity = capacity;
	return 0;
}

static int string_append(struct image *image, const char *text, uint32_t *ret)
{
	size_t size = strlen(text) + 1;
	if (size > CACHE_SIZE_MAX - image->string_size)
		return -E2BIG;
	if (image->string_capacity - image->string_size < size) {
		size_t capacity = (image->string_size + size) * 2;
		char *strings = realloc(image->strings, capacity);
		if (!strings)
			return -ENOMEM;
		image->strings = strings;
		image->string_capacity = capacity;
	}
	*ret = (uint32_t)image->string_size;
	memcpy(image->strings + image->string_size, text, size);
	image->string_size += size;
	return 0;
}

static int string_offset(struct image *image, const char *text, uint32_t *ret)
{
	*ret = 0;
	if (!text)
		return 0;
	if (image->slot_count * 2 >= image->slot_capacity) {
		int error = slots_grow(image);
		if (error)
			return error;
	}
	size_t mask = image->slot_capacity - 1;
	size_t at = string_hash(text) & mask;
	for (; image->slots[at].text; at = (at + 1) & mask) {
		if (image->slots[at].text == text) {
			*ret = image->slots[at].offset;
			return 0;
		}
	}
	int error = string_append(image, text, ret);
	if (!error) {
		image->slots[at] = (struct string_slot){text, *ret};
		image->slot_count++;
	}
	return error;
}

static int frame_encode(struct image *image, const struct symbolize_frame *frame, uint8_t *to)
{
	struct cache_frame encoded = {
		.line = frame->line,
		.function_line = frame->function_line,
		.function_id = frame->function_id | (frame->inlined ? FRAME_INLINED : 0),
	};
	int error = string_offset(image, frame->function, &encoded.function);
	if (!error)
		error = string_offset(image, frame->linkage_name, &encoded.linkage_name);
	if (!error)
		error = string_offset(image, frame->file, &encoded.file);
	memcpy(to, &encoded, sizeof(encoded));
	return error;
}

static int image_fill(struct image *image, const struct symbolize_result *result,
		      const uint64_t *offsets)
{
	uint8_t *to = image->bytes + sizeof(struct cache_header);
	for (size_t i = 0; i < result->chain_count; i++, to += sizeof(struct cache_chain)) {
		const struct symbolize_chain *chain = &result->chains[i];
		struct cache_chain encoded = {offsets[i], chain->vaddr, chain->first, chain->count};
		memcpy(to, &encoded, sizeof(encoded));
	}
	uint32_t nothing;
	int error = string_append(image, "", &nothing);
	for (size_t i = 0; !error && i < result->frame_count; i++, to += sizeof(struct cache_frame))
		error = frame_encode(image, &result->frames[i], to);
	return error;
}

static int image_init(struct image *image, const struct symbolize_cache_key *key,
		      const struct symbolize_result *result, const uint64_t *offsets)
{
	*image = (struct image){0};
	image->size = sizeof(struct cache_header) +
		      result->chain_count * sizeof(struct cache_chain) +
		      result->frame_count * sizeof(struct cache_frame);
	if (image->size > CACHE_SIZE_MAX)
		return -E2BIG;
	image->bytes = malloc(image->size);
	int error = image->bytes ? image_fill(image, result, offsets) : -ENOMEM;
	if (!error && image->size + image->string_size > CACHE_SIZE_MAX)
		error = -E2BIG;
	if (error)
		return error;
	struct cache_header header = {
		.magic = CACHE_MAGIC,
		.version = CACHE_VERSION,
		.stamp = key->stamp,
		.build_id_size = key->build_id_size,
		.status = result->status,
		.function_count = result->function_count,
		.chain_count = result->chain_count,
		.frame_count = result->frame_count,
		.string_size = image->string_size,
	};
	memcpy(header.build_id, key->build_id, key->build_id_size);
	uLong checksum =
		crc32(0, image->bytes + sizeof(header), (uInt)(image->size - sizeof(header)));
	checksum = crc32(checksum, (const uint8_t *)image->strings, (uInt)image->string_size);
	header.checksum = (uint32_t)checksum;
	memcpy(image->bytes, &header, sizeof(header));
	return 0;
}

static int write_all(int descriptor, const void *bytes, size_t size)
{
	const char *from = bytes;
	while (size > 0) {
		ssize_t done = write(descriptor, from, size);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done < 0 ? -errno : -EIO;
		from += done;
		size -= (size_t)done;
	}
	return 0;
}

/* mkdir -p of the directory that `path` lies in. */
static void make_directories(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		mkdir(path, 0700);
		*slash = '/';
	}
}

static void remove_old(const char *directory)
{
	DIR *entries = opendir(directory);
	if (!entries)
		return;
	time_t now = time(NULL);
	for (struct dirent *entry; (entry = readdir(entries));) {
		struct stat status;
		if (!strstr(entry->d_name, CACHE_SUFFIX) ||
		    fstatat(dirfd(entries), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) ||
		    !S_ISREG(status.st_mode) || now - status.st_mtime < CACHE_KEEP_SECONDS)
			continue;
		unlinkat(dirfd(entries), entry->d_name, 0);
	}
	closedir(entries);
}

static int image_write(const struct image *image, const char *path)
{
	char temporary[PATH_MAX];
	int length = snprintf(temporary, sizeof(temporary), "%s.XXXXXX", path);
	if (length < 0 || (size_t)length >= sizeof(temporary))
		return -ENAMETOOLONG;
	int descriptor = mkostemp(temporary, O_CLOEXEC);
	if (descriptor < 0)
		return -errno;
	int error = write_all(descriptor, image->bytes, image->size);
	if (!error)
		error = write_all(descriptor, image->strings, image->string_size);
	if (close(descriptor) && !error)
		error = -errno;
	if (!error && rename(temporary, path))
		error = -errno;
	if (error)
		unlink(temporary);
	return error;
}

int symbolize_cache_store(const struct symbolize_cache_key *key,
			  const struct symbolize_result *result, const uint64_t *offsets)
{
	char path[PATH_MAX];
	int error = symbolize_cache_path(key, path);
	if (error)
		return error;
	struct image image;
	error = image_init(&image, key, result, offsets);
	if (!error) {
		make_directories(path);
		error = image_write(&image, path);
	}
	image_deinit(&image);
	if (!error) {
		*strrchr(path, '/') = 0;
		remove_old(path);
	}
	return error;
}
