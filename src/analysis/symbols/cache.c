/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Reading a cache file. Everything is checked, first by a checksum against accidents, then index by
 * index, since a checksum proves nothing about who wrote it.
 */
#include "analysis/symbols/cache.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "analysis/symbols/cache_format.h"
#include "analysis/symbols/storage.h"
#include "common/foreign_file.h"
#include "common/trusted_path.h"

/* "<directory>" or the default one, made where it is missing. -ENOENT: there is none, or somebody
 * else can change it. */
static int find_or_make_cache_directory(const struct symbolizer_cache_key *key, char path[PATH_MAX])
{
	const char *xdg = getenv("XDG_CACHE_HOME");
	const char *home = getenv("HOME");
	char named[PATH_MAX];
	int length;
	if (key->directory)
		length = snprintf(named, PATH_MAX, "%s", key->directory);
	else if (xdg && xdg[0] == '/')
		length = snprintf(named, PATH_MAX, "%s/kymo/symbols", xdg);
	else if (home && home[0] == '/')
		length = snprintf(named, PATH_MAX, "%s/.cache/kymo/symbols", home);
	else
		return -ENOENT;
	if (length <= 0 || length >= PATH_MAX - 128 ||
	    trusted_path_make_directories(named, 0700, path, NULL))
		return -ENOENT;
	return strlen(path) < PATH_MAX - 128 ? 0 : -ENOENT;
}

int symbolizer_cache_make_path(const struct symbolizer_cache_key *key, char path[PATH_MAX])
{
	if (key->build_id_size == 0 || key->build_id_size > ELF_BUILD_ID_SIZE_MAX ||
	    find_or_make_cache_directory(key, path))
		return -ENOENT;
	size_t at = strlen(path);
	path[at++] = '/';
	for (uint32_t i = 0; i < key->build_id_size; i++, at += 2)
		snprintf(path + at, PATH_MAX - at, "%02x", key->build_id[i]);
	snprintf(path + at, PATH_MAX - at, "%s" CACHE_FILE_SUFFIX,
		 key->with_inlines ? "" : "-names");
	return 0;
}

static int read_cache_file(const char *path, uint8_t **ret, size_t *ret_size)
{
	static const struct foreign_open_policy how = {.directory = AT_FDCWD,
						       .trust_flags = FOREIGN_REFUSE_LINKS |
								      FOREIGN_ONLY_OWN_FILES};
	char *bytes;
	size_t size;
	int error = foreign_read_whole_file(&how, path, CACHE_FILE_SIZE_MAX, &bytes, &size);
	if (error)
		return error == -ENOMEM ? error : -ENOENT;
	if (size < sizeof(struct cache_file_header)) {
		free(bytes);
		return -ENOENT;
	}
	*ret = (uint8_t *)bytes;
	*ret_size = size;
	return 0;
}

uint32_t cache_file_compute_header_checksum(const struct cache_file_header *header)
{
	struct cache_file_header copy = *header;
	copy.checksum = 0;
	return (uint32_t)crc32_z(0, (const Bytef *)&copy, sizeof(copy));
}

static bool cache_header_is_valid(const struct cache_file_header *header,
				  const struct symbolizer_cache_key *key, const uint8_t *bytes,
				  size_t size)
{
	size_t left = size - sizeof(*header);
	if (memcmp(header->magic, CACHE_FILE_MAGIC, sizeof(header->magic)) != 0 ||
	    header->version != CACHE_FILE_VERSION || header->build_id_size != key->build_id_size ||
	    memcmp(header->build_id, key->build_id, key->build_id_size) != 0 ||
	    (key->source_files_hash && header->source_files_hash != key->source_files_hash) ||
	    header->status > SYMBOLIZER_NO_SYMBOLS)
		return false;
	if (header->chain_count > left / sizeof(struct cache_file_frame_chain_entry))
		return false;
	left -= header->chain_count * sizeof(struct cache_file_frame_chain_entry);
	if (header->frame_count > left / sizeof(struct cache_file_frame))
		return false;
	left -= header->frame_count * sizeof(struct cache_file_frame);
	if (header->strings_size != left || left == 0 || bytes[size - 1] != 0)
		return false;
	uint32_t checksum = cache_file_compute_header_checksum(header);
	checksum = (uint32_t)crc32_z(checksum, bytes + sizeof(*header), size - sizeof(*header));
	return header->checksum == checksum;
}

static bool decode_cached_chains(const struct cache_file_header *header,
				 const struct cache_file_frame_chain_entry *from,
				 struct symbolizer_frame_chain *chains, uint64_t *offsets)
{
	for (size_t i = 0; i < header->chain_count; i++) {
		struct cache_file_frame_chain_entry chain;
		memcpy(&chain, from + i, sizeof(chain));
		if (chain.first > header->frame_count ||
		    chain.count > header->frame_count - chain.first ||
		    (i > 0 && chain.offset <= offsets[i - 1]))
			return false;
		offsets[i] = chain.offset;
		chains[i] = (struct symbolizer_frame_chain){chain.vaddr, chain.first, chain.count};
	}
	return true;
}

static bool decode_cached_frames(const struct cache_file_header *header,
				 const struct cache_file_frame *from, const char *strings,
				 struct symbolizer_frame *frames)
{
	for (size_t i = 0; i < header->frame_count; i++) {
		struct cache_file_frame frame;
		memcpy(&frame, from + i, sizeof(frame));
		uint32_t id = frame.function_id & ~CACHE_FRAME_INLINED_BIT;
		if (frame.function == 0 || frame.function >= header->strings_size ||
		    frame.linkage_name >= header->strings_size ||
		    frame.file >= header->strings_size || id >= header->function_count)
			return false;
		frames[i] = (struct symbolizer_frame){
			.function = strings + frame.function,
			.linkage_name = frame.linkage_name ? strings + frame.linkage_name : NULL,
			.file = frame.file ? strings + frame.file : NULL,
			.line = frame.line,
			.function_line = frame.function_line,
			.function_id = id,
			.inlined = frame.function_id & CACHE_FRAME_INLINED_BIT,
		};
	}
	return true;
}

/* Takes `bytes` over on success. */
static int make_result_from_cache_file(const struct cache_file_header *header, uint8_t *bytes,
				       struct symbolizer_request_result *ret,
				       uint64_t **ret_offsets)
{
	const uint8_t *chains = bytes + sizeof(*header);
	const uint8_t *frames =
		chains + header->chain_count * sizeof(struct cache_file_frame_chain_entry);
	const uint8_t *strings = frames + header->frame_count * sizeof(struct cache_file_frame);
	struct symbolizer_request_result result = {
		.chains = malloc((header->chain_count + 1) * sizeof(*result.chains)),
		.frames = malloc((header->frame_count + 1) * sizeof(*result.frames)),
		.chain_count = (size_t)header->chain_count,
		.frame_count = (size_t)header->frame_count,
		.function_count = header->function_count,
		.status = header->status,
		.from_cache = true,
	};
	uint64_t *offsets = malloc((header->chain_count + 1) * sizeof(*offsets));
	struct symbolizer_storage *storage = calloc(1, sizeof(*storage));
	int error = result.chains && result.frames && offsets && storage ? 0 : -ENOMEM;
	if (!error &&
	    (!decode_cached_chains(header, (const void *)chains, result.chains, offsets) ||
	     !decode_cached_frames(header, (const void *)frames, (const char *)strings,
				   result.frames)))
		error = -ENOENT;
	if (error) {
		free(result.chains);
		free(result.frames);
		free(offsets);
		free(storage);
		return error;
	}
	storage->bytes = bytes;
	result.string_storage = storage;
	*ret = result;
	*ret_offsets = offsets;
	return 0;
}

int symbolizer_cache_load(const struct symbolizer_cache_key *key,
			  struct symbolizer_request_result *ret, uint64_t **ret_offsets)
{
	char path[PATH_MAX];
	uint8_t *bytes;
	size_t size;
	int error = symbolizer_cache_make_path(key, path);
	if (!error)
		error = read_cache_file(path, &bytes, &size);
	if (error)
		return error;
	struct cache_file_header header;
	memcpy(&header, bytes, sizeof(header));
	error = cache_header_is_valid(&header, key, bytes, size)
			? make_result_from_cache_file(&header, bytes, ret, ret_offsets)
			: -ENOENT;
	if (error)
		free(bytes);
	return error;
}
