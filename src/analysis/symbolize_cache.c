/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Reading a cache file. Everything is checked, first by a checksum against accidents, then index by
 * index, since a checksum proves nothing about who wrote it.
 */
#include "analysis/symbolize_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "analysis/symbolize_cache_format.h"
#include "analysis/symbolize_storage.h"

/* "<directory>" or the default one; 0 or -ENOENT. */
static int cache_directory(const struct symbolize_cache_key *key, char path[PATH_MAX])
{
	const char *xdg = getenv("XDG_CACHE_HOME");
	const char *home = getenv("HOME");
	int length;
	if (key->directory)
		length = snprintf(path, PATH_MAX, "%s", key->directory);
	else if (xdg && xdg[0] == '/')
		length = snprintf(path, PATH_MAX, "%s/kymo/symbols", xdg);
	else if (home && home[0] == '/')
		length = snprintf(path, PATH_MAX, "%s/.cache/kymo/symbols", home);
	else
		return -ENOENT;
	return length > 0 && length < PATH_MAX - 128 ? 0 : -ENOENT;
}

int symbolize_cache_path(const struct symbolize_cache_key *key, char path[PATH_MAX])
{
	if (key->build_id_size == 0 || key->build_id_size > ELF_BUILD_ID_SIZE_MAX ||
	    cache_directory(key, path))
		return -ENOENT;
	size_t at = strlen(path);
	path[at++] = '/';
	for (uint32_t i = 0; i < key->build_id_size; i++, at += 2)
		snprintf(path + at, PATH_MAX - at, "%02x", key->build_id[i]);
	snprintf(path + at, PATH_MAX - at, "%s" CACHE_SUFFIX, key->inlines ? "" : "-names");
	return 0;
}

static int read_file(const char *path, uint8_t **ret, size_t *ret_size)
{
	int descriptor = open(path, O_RDONLY | O_CLOEXEC);
	struct stat status;
	if (descriptor < 0)
		return -ENOENT;
	if (fstat(descriptor, &status) || !S_ISREG(status.st_mode) ||
	    status.st_size < (off_t)sizeof(struct cache_header) ||
	    status.st_size > (off_t)CACHE_SIZE_MAX) {
		close(descriptor);
		return -ENOENT;
	}
	size_t size = (size_t)status.st_size, done = 0;
	uint8_t *bytes = malloc(size);
	while (bytes && done < size) {
		ssize_t got = read(descriptor, bytes + done, size - done);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		done += (size_t)got;
	}
	close(descriptor);
	if (!bytes || done < size) {
		free(bytes);
		return bytes ? -ENOENT : -ENOMEM;
	}
	*ret = bytes;
	*ret_size = size;
	return 0;
}

static bool header_valid(const struct cache_header *header, const struct symbolize_cache_key *key,
			 const uint8_t *bytes, size_t size)
{
	size_t left = size - sizeof(*header);
	if (memcmp(header->magic, CACHE_MAGIC, sizeof(header->magic)) != 0 ||
	    header->version != CACHE_VERSION || header->build_id_size != key->build_id_size ||
	    memcmp(header->build_id, key->build_id, key->build_id_size) != 0 ||
	    (key->stamp && header->stamp != key->stamp) || header->status > SYMBOLIZE_NO_SYMBOLS)
		return false;
	if (header->chain_count > left / sizeof(struct cache_chain))
		return false;
	left -= header->chain_count * sizeof(struct cache_chain);
	if (header->frame_count > left / sizeof(struct cache_frame))
		return false;
	left -= header->frame_count * sizeof(struct cache_frame);
	if (header->string_size != left || left == 0 || bytes[size - 1] != 0)
		return false;
	uLong checksum = crc32(0, bytes + sizeof(*header), (uInt)(size - sizeof(*header)));
	return header->checksum == (uint32_t)checksum;
}

static bool chains_convert(const struct cache_header *header, const struct cache_chain *from,
			   struct symbolize_chain *chains, uint64_t *offsets)
{
	for (size_t i = 0; i < header->chain_count; i++) {
		struct cache_chain chain;
		memcpy(&chain, from + i, sizeof(chain));
		if (chain.first > header->frame_count ||
		    chain.count > header->frame_count - chain.first ||
		    (i > 0 && chain.offset <= offsets[i - 1]))
			return false;
		offsets[i] = chain.offset;
		chains[i] = (struct symbolize_chain){chain.vaddr, chain.first, chain.count};
	}
	return true;
}

static bool frames_convert(const struct cache_header *header, const struct cache_frame *from,
			   const char *strings, struct symbolize_frame *frames)
{
	for (size_t i = 0; i < header->frame_count; i++) {
		struct cache_frame frame;
		memcpy(&frame, from + i, sizeof(frame));
		uint32_t id = frame.function_id & ~FRAME_INLINED;
		if (frame.function == 0 || frame.function >= header->string_size ||
		    frame.linkage_name >= header->string_size ||
		    frame.file >= header->string_size || id >= header->function_count)
			return false;
		frames[i] = (struct symbolize_frame){
			.function = strings + frame.function,
			.linkage_name = frame.linkage_name ? strings + frame.linkage_name : NULL,
			.file = frame.file ? strings + frame.file : NULL,
			.line = frame.line,
			.function_line = frame.function_line,
			.function_id = id,
			.inlined = frame.function_id & FRAME_INLINED,
		};
	}
	return true;
}

/* Takes `bytes` over on success. */
static int result_from(const struct cache_header *header, uint8_t *bytes,
		       struct symbolize_result *ret, uint64_t **ret_offsets)
{
	const uint8_t *chains = bytes + sizeof(*header);
	const uint8_t *frames = chains + header->chain_count * sizeof(struct cache_chain);
	const uint8_t *strings = frames + header->frame_count * sizeof(struct cache_frame);
	struct symbolize_result result = {
		.chains = malloc((header->chain_count + 1) * sizeof(*result.chains)),
		.frames = malloc((header->frame_count + 1) * sizeof(*result.frames)),
		.chain_count = (size_t)header->chain_count,
		.frame_count = (size_t)header->frame_count,
		.function_count = header->function_count,
		.status = header->status,
		.from_cache = true,
	};
	uint64_t *offsets = malloc((header->chain_count + 1) * sizeof(*offsets));
	struct symbolize_storage *storage = calloc(1, sizeof(*storage));
	int error = result.chains && result.frames && offsets && storage ? 0 : -ENOMEM;
	if (!error &&
	    (!chains_convert(header, (const void *)chains, result.chains, offsets) ||
	     !frames_convert(header, (const void *)frames, (const char *)strings, result.frames)))
		error = -ENOENT;
	if (error) {
		free(result.chains);
		free(result.frames);
		free(offsets);
		free(storage);
		return error;
	}
	storage->bytes = bytes;
	result.storage = storage;
	*ret = result;
	*ret_offsets = offsets;
	return 0;
}

int symbolize_cache_load(const struct symbolize_cache_key *key, struct symbolize_result *ret,
			 uint64_t **ret_offsets)
{
	char path[PATH_MAX];
	uint8_t *bytes;
	size_t size;
	int error = symbolize_cache_path(key, path);
	if (!error)
		error = read_file(path, &bytes, &size);
	if (error)
		return error;
	struct cache_header header;
	memcpy(&header, bytes, sizeof(header));
	error = header_valid(&header, key, bytes, size)
			? result_from(&header, bytes, ret, ret_offsets)
			: -ENOENT;
	if (error)
		free(bytes);
	return error;
}
