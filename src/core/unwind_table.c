/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Tables in files: validation, and the cache directory. A table is found by build-id and size of
 * the ELF file (tools that edit binaries keep the build-id and move the code), trusted only when it
 * belongs to the user or root and nobody else may write it, and replaced by rename, so that
 * processes starting at the same time see whole files.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "common/syscalls.h"
#include "core/unwind.h"
#include "core/unwind_image.h"
#include "core/unwind_table.h"
#include "core/unwind_vector.h"

#define TABLE_PATH_MAX 4096u
#define TABLE_PAGE     4096u

/* ---- validation ---- */

static bool location_valid(const struct unwind_location *location, const struct unwind_op *ops,
			   uint32_t op_count, bool is_cfa)
{
	if (location->kind >= UNWIND_KIND_COUNT || location->reg > UNWIND_RIP)
		return false;
	if (location->kind == UNWIND_AT_EXPRESSION || location->kind == UNWIND_EXPRESSION)
		return location->value >= 0 && (uint32_t)location->value < op_count &&
		       unwind_ops_valid(ops, op_count, (uint32_t)location->value);
	return is_cfa || location->kind < UNWIND_CONTEXT;
}

static bool rows_valid(const struct unwind_table *table, const struct unwind_arrays *arrays)
{
	for (uint32_t i = 0; i < table->rows; i++)
		if ((i && arrays->offsets[i] <= arrays->offsets[i - 1]) ||
		    arrays->rule_ids[i] >= table->rules)
			return false;
	for (uint32_t i = 0; i <= table->pages; i++)
		if (arrays->index[i] >= table->rows ||
		    (i && arrays->index[i] < arrays->index[i - 1]))
			return false;
	return true;
}

bool unwind_table_valid(const struct unwind_table *table, size_t size)
{
	struct unwind_arrays arrays;

	if (size < sizeof(*table) || __builtin_memcmp(table->magic, UNWIND_TABLE_MAGIC, 8) != 0 ||
	    table->version != UNWIND_TABLE_VERSION || table->size != size ||
	    unwind_table_size(table) != size || table->rows == 0 || table->rules < 2 ||
	    table->rules > UNWIND_RULES_MAX || table->ops > UNWIND_OPS_MAX ||
	    table->build_id_size > UNWIND_BUILD_ID_MAX)
		return false;
	arrays = unwind_table_arrays(table);
	if (!rows_valid(table, &arrays))
		return false;
	for (uint32_t i = 0; i < table->rules; i++) {
		const struct unwind_rule *rule = &arrays.rules[i];

		if (!location_valid(&rule->cfa, arrays.ops, table->ops, true) ||
		    !location_valid(&rule->ra, arrays.ops, table->ops, false) ||
		    !location_valid(&rule->bp, arrays.ops, table->ops, false) ||
		    !location_valid(&rule->bx, arrays.ops, table->ops, false))
			return false;
	}
	return true;
}

uint32_t unwind_table_rows(const struct unwind_table *table)
{
	return table->rows;
}

void unwind_table_free(const struct unwind_table *table, size_t size)
{
	unwind_unmap(table, size);
}

/* ---- paths ---- */

static bool path_text(char *path, size_t *length, const char *text)
{
	for (; *text; text++) {
		if (*length + 1 >= TABLE_PATH_MAX)
			return false;
		path[(*length)++] = *text;
	}
	path[*length] = 0;
	return true;
}

static bool path_hex(char *path, size_t *length, const uint8_t *bytes, uint32_t size)
{
	for (uint32_t i = 0; i < size; i++) {
		char pair[3] = {"0123456789abcdef"[bytes[i] >> 4],
				"0123456789abcdef"[bytes[i] & 15], 0};

		if (!path_text(path, length, pair))
			return false;
	}
	return true;
}

static bool path_number(char *path, size_t *length, uint64_t value)
{
	uint8_t bytes[8];

	for (unsigned i = 0; i < 8; i++)
		bytes[i] = (uint8_t)(value >> (56 - 8 * i));
	return path_hex(path, length, bytes, 8);
}

/* DIRECTORY/<build-id>-<file size>.unwind */
static bool path_of_table(char *path, const char *directory, const uint8_t *build_id,
			  uint32_t build_id_size, uint64_t image_size)
{
	size_t length = 0;

	return path_text(path, &length, directory) && path_text(path, &length, "/") &&
	       path_hex(path, &length, build_id, build_id_size) && path_text(path, &length, "-") &&
	       path_number(path, &length, image_size) && path_text(path, &length, ".unwind");
}

/* ---- the cache ---- */

static bool same_bytes(const uint8_t *a, const uint8_t *b, uint32_t size)
{
	for (uint32_t i = 0; i < size; i++)
		if (a[i] != b[i])
			return false;
	return true;
}

static bool cache_file_trusted(int file, struct stat *ret)
{
	uid_t user = (uid_t)sys_call0(SYS_geteuid);

	return sys_call2(SYS_fstat, file, (long)ret) == 0 && S_ISREG(ret->st_mode) &&
	       (ret->st_uid == user || ret->st_uid == 0) && (ret->st_mode & 022) == 0 &&
	       (uint64_t)ret->st_size >= sizeof(struct unwind_table);
}

static int cache_open(const char *path, const uint8_t *build_id, uint32_t build_id_size,
		      uint64_t image_size, const struct unwind_table **ret, size_t *ret_size)
{
	const struct unwind_table *table;
	struct stat status;
	long file = sys_open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0);
	long mapped;
	size_t size;

	if (file < 0)
		return (int)file;
	if (!cache_file_trusted((int)file, &status)) {
		sys_close((int)file);
		return -EPERM;
	}
	size = (size_t)status.st_size;
	mapped = sys_call6(SYS_mmap, 0, (long)size, PROT_READ, MAP_PRIVATE, file, 0);
	sys_close((int)file);
	if (mapped < 0 && mapped > -4096)
		return (int)mapped;
	table = (const struct unwind_table *)mapped;
	if (!unwind_table_valid(table, size) || table->image_size != image_size ||
	    table->build_id_size != build_id_size ||
	    !same_bytes(table->build_id, build_id, build_id_size)) {
		unwind_unmap(table, size);
		return -EINVAL;
	}
	*ret = table;
	*ret_size = size;
	return 0;
}

static bool write_all(int file, const void *data, size_t size)
{
	const uint8_t *at = data;

	while (size) {
		long written = sys_write(file, at, size);

		if (written == -EINTR)
			continue;
		if (written <= 0)
			return false;
		at += written;
		size -= (size_t)written;
	}
	return true;
}

/* Best effort: a cache that cannot be written only costs the next process a compilation. */
static void cache_store(const char *path, const struct unwind_table *table, size_t size)
{
	char temporary[TABLE_PATH_MAX];
	size_t length = 0;
	long file;

	if (!path_text(temporary, &length, path) || !path_text(temporary, &length, ".") ||
	    !path_number(temporary, &length, (uint64_t)sys_getpid() << 32 | (uint64_t)sys_gettid()))
		return;
	file = sys_open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0400);
	if (file == -EEXIST) { /* left by a killed process that had the same numbers */
		sys_call3(SYS_unlinkat, SYS_AT_WORKING_DIRECTORY, (long)temporary, 0);
		return;
	}
	if (file < 0)
		return;
	if (!write_all((int)file, table, size) ||
	    sys_call4(SYS_renameat, SYS_AT_WORKING_DIRECTORY, (long)temporary,
		      SYS_AT_WORKING_DIRECTORY, (long)path) < 0)
		sys_call3(SYS_unlinkat, SYS_AT_WORKING_DIRECTORY, (long)temporary, 0);
	sys_close((int)file);
}

/* ---- compiling from a file ---- */

/* The image is read, not mapped: a file truncated while we look at it must not raise SIGBUS in the
 * program. Only ranges the compiler asks for are read, into memory that is reserved as a whole. */
struct file_image {
	int file;
	uint8_t *bytes;
	uint64_t size;
};

static bool file_fetch(void *context, uint64_t offset, uint64_t size)
{
	const struct file_image *image = context;

	while (size) {
		long got = sys_pread(image->file, image->bytes + offset, size, offset);

		if (got == -EINTR)
			continue;
		if (got <= 0)
			return false;
		offset += (uint64_t)got;
		size -= (uint64_t)got;
	}
	return true;
}

static int compile_file(int file, uint64_t size, struct unwind_table **ret, size_t *ret_size)
{
	struct file_image source = {.file = file, .size = size, .bytes = unwind_map(size)};
	struct unwind_image image = {
		.bytes = source.bytes, .size = size, .fetch = file_fetch, .context = &source};
	int status;

	if (!source.bytes)
		return -ENOMEM;
	status = unwind_compile_image(&image, ret, ret_size);
	unwind_unmap(source.bytes, size);
	return status;
}

static int image_open(const char *path, uint64_t device, uint64_t inode, uint64_t *ret_size)
{
	struct stat status;
	long file = sys_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
	long result;

	if (file < 0)
		return (int)file;
	result = sys_call2(SYS_fstat, file, (long)&status);
	if (result == 0 && (!S_ISREG(status.st_mode) || status.st_size <= 0))
		result = -ENOEXEC;
	if (result == 0 && inode && (status.st_ino != inode || status.st_dev != device))
		result = -ESTALE;
	if (result < 0) {
		sys_close((int)file);
		return (int)result;
	}
	*ret_size = (uint64_t)status.st_size;
	return (int)file;
}

int unwind_table_load(const char *directory, const uint8_t *build_id, uint32_t build_id_size,
		      const char *path, uint64_t device, uint64_t inode,
		      const struct unwind_table **ret, size_t *ret_size, bool *ret_cached)
{
	char cache_path[TABLE_PATH_MAX];
	struct unwind_table *table;
	uint64_t image_size = 0;
	size_t size;
	int status, file = image_open(path, device, inode, &image_size);
	bool use_cache;

	if (file < 0)
		return file;
	use_cache = directory && build_id_size > 0 && build_id_size <= UNWIND_BUILD_ID_MAX &&
		    path_of_table(cache_path, directory, build_id, build_id_size, image_size);
	*ret_cached = use_cache && cache_open(cache_path, build_id, build_id_size, image_size, ret,
					      ret_size) == 0;
	if (*ret_cached) {
		sys_close(file);
		return 0;
	}
	status = compile_file(file, image_size, &table, &size);
	sys_close(file);
	if (status)
		return status;
	if (use_cache) {
		table->build_id_size = build_id_size;
		for (uint32_t i = 0; i < build_id_size; i++)
			table->build_id[i] = build_id[i];
		cache_store(cache_path, table, size);
	}
	*ret = table;
	*ret_size = size;
	return 0;
}
