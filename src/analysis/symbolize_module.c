/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A module's request from start to end: the files or why not, the cache, the answer.
 *
 * The cache holds the union of what was ever asked of a module. A request that it covers is
 * answered from it; any other is computed anew together with what the cache holds, since nearly all
 * of the cost is in reading the module, not in the number of addresses. What was made from other
 * files than are there now (debug symbols were installed since) does not count, unless the module
 * itself is gone.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "analysis/symbolize_cache.h"
#include "analysis/symbolize_internal.h"

/* The cache forgets a module's old addresses rather than grow beyond this. */
#define CACHED_ADDRESSES_MAX ((size_t)1 << 20)

struct cached {
	struct symbolize_result result;
	uint64_t *offsets; /* NULL: nothing */
};

static uint64_t stamp_add(uint64_t stamp, const void *bytes, size_t size)
{
	for (const uint8_t *at = bytes; size > 0; at++, size--)
		stamp = (stamp ^ *at) * 0x100000001b3u;
	return stamp;
}

static uint64_t stamp_add_file(uint64_t stamp, const struct elf_file *file)
{
	struct stat status;
	if (!file || fstat(file->descriptor, &status))
		return stamp_add(stamp, "-", 1);
	stamp = stamp_add(stamp, file->path, strlen(file->path) + 1);
	stamp = stamp_add(stamp, &status.st_size, sizeof(status.st_size));
	return stamp_add(stamp, &status.st_mtim, sizeof(status.st_mtim));
}

/* Identity of the files, never 0. The path of the module itself does not matter. */
static uint64_t files_stamp(const struct symbolize_files *files)
{
	uint64_t stamp = stamp_add(0xcbf29ce484222325u, &files->file->size, sizeof(uint64_t));
	stamp = stamp_add_file(stamp, files->debug);
	return stamp_add_file(stamp, files->shared) | 1;
}

static size_t offset_index(const struct cached *cached, uint64_t offset)
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

static bool cached_has(const struct cached *cached, uint64_t offset)
{
	size_t at = offset_index(cached, offset);
	return at < cached->result.chain_count && cached->offsets[at] == offset;
}

static bool cached_covers(const struct cached *cached, const struct symbolize_request *request)
{
	if (!cached->offsets)
		return false;
	for (size_t i = 0; i < request->count; i++) {
		if (!cached_has(cached, request->offsets[i]))
			return false;
	}
	return true;
}

static void cached_deinit(struct cached *cached)
{
	symbolize_result_deinit(&cached->result);
	free(cached->offsets);
	cached->offsets = NULL;
}

/* Ascending union of the request's and the cache's offsets. */
static int offsets_union(const struct symbolize_request *request, const struct cached *cached,
			 uint64_t **ret, size_t *ret_count)
{
	size_t more = cached->offsets ? cached->result.chain_count : 0;
	if (request->count + more > CACHED_ADDRESSES_MAX)
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
static int result_narrow(struct cached *all, const struct symbolize_request *request,
			 struct symbolize_result *ret)
{
	struct symbolize_chain *chains = calloc(request->count + 1, sizeof(*chains));
	if (!chains)
		return -ENOMEM;
	struct symbolize_result result = all->result;
	result.unresolved = 0;
	for (size_t i = 0; i < request->count; i++) {
		if (cached_has(all, request->offsets[i]))
			chains[i] = result.chains[offset_index(all, request->offsets[i])];
		else
			chains[i].vaddr = request->offsets[i];
		result.unresolved += chains[i].count == 0;
	}
	free(result.chains);
	result.chains = chains;
	result.chain_count = request->count;
	*ret = result;
	free(all->offsets);
	*all = (struct cached){0};
	return 0;
}

/* Computes what is asked together with what is cached, and puts it in the place of the latter. */
static int cached_renew(struct cached *cached, const struct symbolize_request *request,
			const struct symbolize_files *files)
{
	uint64_t *offsets;
	size_t count;
	struct symbolize_result result;
	int error = offsets_union(request, cached, &offsets, &count);
	if (error)
		return error;
	error = symbolize_compute(request, files, offsets, count, &result);
	if (error) {
		free(offsets);
		return error;
	}
	cached_deinit(cached);
	*cached = (struct cached){result, offsets};
	return 0;
}

/* The files are there: from the cache if it covers the request, else from them. */
static int answer(const struct symbolize_request *request, const struct symbolize_files *files,
		  struct symbolize_result *ret)
{
	struct symbolize_cache_key key = {
		.directory = request->symbol_cache,
		.build_id = files->file->build_id,
		.build_id_size = files->file->image ? 0 : files->file->build_id_size,
		.inlines = request->inlines,
		.stamp = files_stamp(files),
	};
	struct cached cached = {0};
	int error = symbolize_cache_load(&key, &cached.result, &cached.offsets);
	if (error == -ENOMEM)
		return error;
	error = 0;
	if (!cached_covers(&cached, request)) {
		error = cached_renew(&cached, request, files);
		/* Failing to store costs time at the next report and nothing else. */
		if (!error)
			symbolize_cache_store(&key, &cached.result, cached.offsets);
	}
	if (!error)
		error = result_narrow(&cached, request, ret);
	cached_deinit(&cached);
	return error;
}

/* The module's file cannot be had: what the cache still knows. */
static int answer_without_file(const struct symbolize_request *request,
			       enum symbolize_status status, struct symbolize_result *ret)
{
	struct symbolize_cache_key key = {
		.directory = request->symbol_cache,
		.build_id = request->build_id,
		.build_id_size = request->build_id_size,
		.inlines = request->inlines,
	};
	struct cached cached = {0};
	int error = symbolize_cache_load(&key, &cached.result, &cached.offsets);
	if (error == -ENOMEM)
		return error;
	bool complete = cached_covers(&cached, request);
	error = result_narrow(&cached, request, ret);
	cached_deinit(&cached);
	if (!error && !complete)
		ret->status = status;
	return error;
}

int symbolize_module(const struct symbolize_request *request, struct symbolize_result *ret,
		     struct problem *problem)
{
	for (size_t i = 1; i < request->count; i++) {
		if (request->offsets[i] <= request->offsets[i - 1])
			return problem_set(problem, -EINVAL, "addresses of %s are not in order",
					   request->path);
	}
	struct symbolize_files files = {0};
	enum symbolize_status status = SYMBOLIZE_NO_FILE;
	struct symbolize_result result;
	int error = symbolize_files_open(request, &files, &status);
	if (!error)
		error = files.file ? answer(request, &files, &result)
				   : answer_without_file(request, status, &result);
	symbolize_files_close(&files);
	if (!error) {
		error = symbolize_advise(request, &result);
		if (error)
			symbolize_result_deinit(&result);
	}
	if (error)
		return problem_set(problem, error, "no memory for the symbols of %s",
				   request->path);
	*ret = result;
	return 0;
}
