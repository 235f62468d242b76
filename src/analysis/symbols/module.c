/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A module's request from start to end: the files or why not, the cache, the answer.
 *
 * The cache holds the union of what was ever asked of a module. A request that it covers is
 * answered from it; any other is computed again together with what the cache holds, since nearly
 * all of the cost is in reading the module, not in the number of addresses. What was made from
 * other files than are there now (debug symbols were installed since) does not count, unless the
 * module itself is gone.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "analysis/symbols/cache.h"
#include "analysis/symbols/private.h"
#include "kymo/spool.h"

/* The cache forgets a module's old addresses rather than grow beyond this. */
#define CACHED_ADDRESSES_PER_MODULE_MAX ((size_t)1 << 20)

struct cached_module_symbols_info {
	struct symbolizer_request_result result;
	uint64_t *offsets; /* NULL: nothing */
};

static uint64_t update_files_hash_with_bytes(uint64_t stamp, const void *bytes, size_t size)
{
	for (const uint8_t *at = bytes; size > 0; at++, size--)
		stamp = (stamp ^ *at) * 0x100000001b3u;
	return stamp;
}

static uint64_t update_files_hash_with_file(uint64_t stamp, const struct elf_file *file)
{
	struct stat status;
	if (!file || fstat(file->descriptor, &status))
		return update_files_hash_with_bytes(stamp, "-", 1);
	stamp = update_files_hash_with_bytes(stamp, file->path, strlen(file->path) + 1);
	stamp = update_files_hash_with_bytes(stamp, &status.st_size, sizeof(status.st_size));
	return update_files_hash_with_bytes(stamp, &status.st_mtim, sizeof(status.st_mtim));
}

/* Identity of the files, never 0. The path of the module itself does not matter. */
static uint64_t compute_source_files_hash(const struct symbolizer_files *files)
{
	uint64_t stamp = update_files_hash_with_bytes(0xcbf29ce484222325u, &files->file->size,
						      sizeof(uint64_t));
	stamp = update_files_hash_with_file(stamp, files->debug);
	return update_files_hash_with_file(stamp, files->shared) | 1;
}

static size_t find_cached_offset_index(const struct cached_module_symbols_info *cached,
				       uint64_t offset)
{
	size_t low = 0, high = cached->result.chain_count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (cached->offsets[middle] < offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool cached_result_has_offset(const struct cached_module_symbols_info *cached,
				     uint64_t offset)
{
	size_t at = find_cached_offset_index(cached, offset);
	return at < cached->result.chain_count && cached->offsets[at] == offset;
}

static bool cached_result_covers_request(const struct cached_module_symbols_info *cached,
					 const struct symbolizer_request *request)
{
	if (!cached->offsets)
		return false;
	for (size_t i = 0; i < request->count; i++) {
		if (!cached_result_has_offset(cached, request->offsets[i]))
			return false;
	}
	return true;
}

static void cached_symbolizer_result_deinit(struct cached_module_symbols_info *cached)
{
	symbolizer_result_deinit(&cached->result);
	free(cached->offsets);
	cached->offsets = NULL;
}

/* Ascending union of the request's and the cache's offsets. */
static int make_union_of_offsets(const struct symbolizer_request *request,
				 const struct cached_module_symbols_info *cached, uint64_t **ret,
				 size_t *ret_count)
{
	size_t more = cached->offsets ? cached->result.chain_count : 0;
	if (request->count + more > CACHED_ADDRESSES_PER_MODULE_MAX)
		more = 0;
	uint64_t *offsets = malloc((request->count + more + 1) * sizeof(*offsets));
	if (!offsets)
		return -ENOMEM;
	size_t used = 0, i = 0, j = 0;
	while (i < request->count || j < more) {
		bool ours = j == more ||
			    (i < request->count && request->offsets[i] <= cached->offsets[j]);
		uint64_t next = ours ? request->offsets[i++] : cached->offsets[j++];
		if (used == 0 || offsets[used - 1] != next)
			offsets[used++] = next;
	}
	*ret = offsets;
	*ret_count = used;
	return 0;
}

/* Replaces the chains of a result for many offsets by those of the request; the frames stay. */
static int reduce_result_to_request(struct cached_module_symbols_info *all,
				    const struct symbolizer_request *request,
				    struct symbolizer_request_result *ret)
{
	struct symbolizer_frame_chain *chains = calloc(request->count + 1, sizeof(*chains));
	if (!chains)
		return -ENOMEM;
	struct symbolizer_request_result result = all->result;
	result.unresolved_chain_count = 0;
	for (size_t i = 0; i < request->count; i++) {
		if (cached_result_has_offset(all, request->offsets[i]))
			chains[i] =
				result.chains[find_cached_offset_index(all, request->offsets[i])];
		else
			chains[i].vaddr = request->offsets[i];
		result.unresolved_chain_count += chains[i].count == 0;
	}
	free(result.chains);
	result.chains = chains;
	result.chain_count = request->count;
	*ret = result;
	free(all->offsets);
	*all = (struct cached_module_symbols_info){0};
	return 0;
}

/* Computes what is asked together with what is cached, and puts it in the place of the latter. */
static int recompute_result_with_request(struct cached_module_symbols_info *cached,
					 const struct symbolizer_request *request,
					 const struct symbolizer_files *files)
{
	uint64_t *offsets;
	size_t count;
	struct symbolizer_request_result result;
	int error = make_union_of_offsets(request, cached, &offsets, &count);
	if (error)
		return error;
	error = symbolize_offsets_from_files(request, files, offsets, count, &result);
	if (error) {
		free(offsets);
		return error;
	}
	cached_symbolizer_result_deinit(cached);
	*cached = (struct cached_module_symbols_info){result, offsets};
	return 0;
}

/* The files are there: from the cache if it covers the request, else from them. */
static int symbolize_from_cache_or_files(const struct symbolizer_request *request,
					 const struct symbolizer_files *files,
					 struct symbolizer_request_result *ret)
{
	struct symbolizer_cache_key key = {
		.directory = request->symbol_cache_directory,
		.build_id = files->file->build_id,
		.build_id_size = files->file->image ? 0 : files->file->build_id_size,
		.with_inlines = request->with_inlines,
		.source_files_hash = compute_source_files_hash(files),
	};
	struct cached_module_symbols_info cached = {0};
	int error = symbolizer_cache_load(&key, &cached.result, &cached.offsets);
	if (error == -ENOMEM)
		return error;
	error = 0;
	if (!cached_result_covers_request(&cached, request)) {
		error = recompute_result_with_request(&cached, request, files);
		/* Failing to store costs time at the next report and nothing else. */
		if (!error)
			symbolizer_cache_store(&key, &cached.result, cached.offsets);
	}
	if (!error)
		error = reduce_result_to_request(&cached, request, ret);
	cached_symbolizer_result_deinit(&cached);
	return error;
}

/* The module's file cannot be had: what the cache still knows. */
static int symbolize_from_cache_alone(const struct symbolizer_request *request,
				      enum symbolizer_status_kind status,
				      struct symbolizer_request_result *ret)
{
	struct symbolizer_cache_key key = {
		.directory = request->symbol_cache_directory,
		.build_id = request->build_id,
		.build_id_size = request->build_id_size,
		.with_inlines = request->with_inlines,
	};
	struct cached_module_symbols_info cached = {0};
	int error = symbolizer_cache_load(&key, &cached.result, &cached.offsets);
	if (error == -ENOMEM)
		return error;
	bool complete = cached_result_covers_request(&cached, request);
	error = reduce_result_to_request(&cached, request, ret);
	cached_symbolizer_result_deinit(&cached);
	if (!error && !complete)
		ret->status = status;
	return error;
}

int symbolize_module(const struct symbolizer_request *request,
		     struct symbolizer_request_result *ret, struct problem *problem)
{
	for (size_t i = 1; i < request->count; i++) {
		if (request->offsets[i] <= request->offsets[i - 1])
			return problem_set(problem, -EINVAL, "addresses of %s are not in order",
					   request->path);
	}
	struct symbolizer_files files = {0};
	enum symbolizer_status_kind status = SYMBOLIZER_NO_FILE;
	struct symbolizer_request_result result;
	if (!strcmp(request->path, SPOOL_KERNEL_MODULE_PATH))
		return symbolize_kernel(request, ret);
	int error = symbolizer_files_open(request, &files, &status);
	if (!error)
		error = files.file ? symbolize_from_cache_or_files(request, &files, &result)
				   : symbolize_from_cache_alone(request, status, &result);
	symbolizer_files_close(&files);
	if (!error) {
		error = symbolizer_set_advice(request, &result);
		if (error)
			symbolizer_result_deinit(&result);
	}
	if (error)
		return problem_set(problem, error, "no memory for the symbols of %s",
				   request->path);
	*ret = result;
	return 0;
}
