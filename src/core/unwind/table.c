/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Tables in files: validation, and the cache directory. A table is found by build-id and size of
 * the ELF file (tools that edit binaries keep the build-id and move the code), trusted only when it
 * and its directory belong to the user or root, nobody else may write them and its checksum holds,
 * and replaced by rename, so that processes starting at the same time see whole files.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "common/checksum.h"
#include "common/syscalls.h"
#include "core/unwind/image.h"
#include "core/unwind/table.h"
#include "core/unwind/unwind.h"
#include "core/unwind/vector.h"

#define CACHE_FILE_NAME_BYTES_MAX 4096u

/* ---- validation ---- */

static bool location_is_valid(const struct unwind_value_location *location,
			      const struct unwind_expression_operation *ops, uint32_t op_count,
			      bool is_cfa)
{
	if (location->kind >= UNWIND_LOCATION_KIND_COUNT || location->reg > DWARF_REGISTER_RIP)
		return false;
	if (location->kind == UNWIND_LOCATION_AT_EXPRESSION_RESULT ||
	    location->kind == UNWIND_LOCATION_EXPRESSION_RESULT)
		return location->value >= 0 && (uint32_t)location->value < op_count &&
		       unwind_ops_are_valid(ops, op_count, (uint32_t)location->value);
	return is_cfa || location->kind < UNWIND_LOCATION_UCONTEXT;
}

static bool rows_and_index_are_valid(const struct unwind_table *table,
				     const struct unwind_table_array_pointers *arrays)
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

bool unwind_table_is_valid(const struct unwind_table *table, size_t size)
{
	struct unwind_table_array_pointers arrays;

	if (size < sizeof(*table) || __builtin_memcmp(table->magic, UNWIND_TABLE_MAGIC, 8) != 0 ||
	    table->version != UNWIND_TABLE_VERSION || table->size != size ||
	    unwind_table_compute_size(table) != size || table->rows == 0 || table->rules < 2 ||
	    table->rules > UNWIND_TABLE_RULES_MAX ||
	    table->expression_op_count > UNWIND_TABLE_OPS_MAX ||
	    table->build_id_size > UNWIND_BUILD_ID_SIZE_MAX)
		return false;
	arrays = unwind_table_find_arrays(table);
	if (!rows_and_index_are_valid(table, &arrays))
		return false;
	for (uint32_t i = 0; i < table->rules; i++) {
		const struct unwind_rule *rule = &arrays.rules[i];

		if (!location_is_valid(&rule->cfa, arrays.expression_ops,
				       table->expression_op_count, true) ||
		    !location_is_valid(&rule->ra, arrays.expression_ops, table->expression_op_count,
				       false) ||
		    !location_is_valid(&rule->bp, arrays.expression_ops, table->expression_op_count,
				       false) ||
		    !location_is_valid(&rule->bx, arrays.expression_ops, table->expression_op_count,
				       false))
			return false;
	}
	return true;
}

uint32_t unwind_table_get_row_count(const struct unwind_table *table)
{
	return table->rows;
}

void unwind_table_free(const struct unwind_table *table, size_t size)
{
	unwind_unmap_memory(table, size);
}

/* ---- paths ---- */

static bool path_append_text(char *path, size_t *length, const char *text)
{
	for (; *text; text++) {
		if (*length + 1 >= CACHE_FILE_NAME_BYTES_MAX)
			return false;
		path[(*length)++] = *text;
	}
	path[*length] = 0;
	return true;
}

static bool path_append_bytes_as_hex(char *path, size_t *length, const uint8_t *bytes,
				     uint32_t size)
{
	for (uint32_t i = 0; i < size; i++) {
		char pair[3] = {"0123456789abcdef"[bytes[i] >> 4],
				"0123456789abcdef"[bytes[i] & 15], 0};

		if (!path_append_text(path, length, pair))
			return false;
	}
	return true;
}

static bool path_append_hex_number(char *path, size_t *length, uint64_t value)
{
	uint8_t bytes[8];

	for (unsigned i = 0; i < 8; i++)
		bytes[i] = (uint8_t)(value >> (56 - 8 * i));
	return path_append_bytes_as_hex(path, length, bytes, 8);
}

/* <build-id>-<file size>.unwind */
static bool format_table_file_name(char *path, const uint8_t *build_id, uint32_t build_id_size,
				   uint64_t image_size)
{
	size_t length = 0;

	return path_append_bytes_as_hex(path, &length, build_id, build_id_size) &&
	       path_append_text(path, &length, "-") &&
	       path_append_hex_number(path, &length, image_size) &&
	       path_append_text(path, &length, ".unwind");
}

/* ---- the cache ---- */

static bool bytes_are_equal(const uint8_t *a, const uint8_t *b, uint32_t size)
{
	for (uint32_t i = 0; i < size; i++)
		if (a[i] != b[i])
			return false;
	return true;
}

/* Is it the user's or root's, and written by nobody else. */
static bool file_owner_and_mode_are_trusted(int file, struct stat *ret)
{
	uid_t user = (uid_t)sys_call0(SYS_geteuid);

	return sys_call2(SYS_fstat, file, (long)ret) == 0 &&
	       (ret->st_uid == user || ret->st_uid == 0) && (ret->st_mode & 022) == 0;
}

static bool table_file_is_trusted(int file, struct stat *ret)
{
	return file_owner_and_mode_are_trusted(file, ret) && S_ISREG(ret->st_mode) &&
	       (uint64_t)ret->st_size >= sizeof(struct unwind_table);
}

/* The cache; negative: there is none, or somebody else can change it. */
static int open_trusted_cache_directory(const char *directory)
{
	struct stat status;
	long file = directory ? sys_open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC, 0) : -ENOENT;

	if (file >= 0 && !file_owner_and_mode_are_trusted((int)file, &status)) {
		sys_close((int)file);
		return -EPERM;
	}
	return (int)file;
}

static uint64_t compute_table_checksum(const struct unwind_table *table, size_t size)
{
	struct unwind_table header = *table;
	struct checksum_state sum = checksum_get_initial_state();

	header.checksum = 0;
	checksum_add_bytes(&sum, &header, sizeof(header));
	checksum_add_bytes(&sum, table + 1, size - sizeof(header));
	return checksum_compute_final_value(&sum);
}

/* Files are read, not mapped: one that somebody shortens must not raise SIGBUS in the program. Of
 * an image only ranges the compiler asks for are read, into memory that is reserved as a whole. */
struct image_file_reader {
	int file;
	uint8_t *bytes;
	uint64_t size;
};

static bool read_image_bytes_from_file(void *context, uint64_t offset, uint64_t size)
{
	const struct image_file_reader *image = context;

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

static int load_table_from_cache(int cache, const char *path, const uint8_t *build_id,
				 uint32_t build_id_size, uint64_t image_size,
				 const struct unwind_table **ret, size_t *ret_size)
{
	const struct unwind_table *table;
	struct image_file_reader source;
	struct stat status;
	long file = sys_call4(SYS_openat, cache, (long)path,
			      O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0);
	size_t size;

	if (file < 0)
		return (int)file;
	if (!table_file_is_trusted((int)file, &status)) {
		sys_close((int)file);
		return -EPERM;
	}
	size = (size_t)status.st_size;
	source = (struct image_file_reader){(int)file, unwind_map_shared_memory(size), size};
	table = (const struct unwind_table *)(const void *)source.bytes;
	if (!table || !read_image_bytes_from_file(&source, 0, size)) {
		sys_close((int)file);
		unwind_unmap_memory(table, size);
		return -ENOMEM;
	}
	sys_close((int)file);
	if (!unwind_table_is_valid(table, size) || table->image_size != image_size ||
	    table->build_id_size != build_id_size ||
	    !bytes_are_equal(table->build_id, build_id, build_id_size) ||
	    table->checksum != compute_table_checksum(table, size)) {
		unwind_unmap_memory(table, size);
		return -EINVAL;
	}
	*ret = table;
	*ret_size = size;
	return 0;
}

static bool write_all_bytes(int file, const void *data, size_t size)
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
static void store_table_in_cache(int cache, const char *path, struct unwind_table *table,
				 size_t size)
{
	char temporary[CACHE_FILE_NAME_BYTES_MAX];
	size_t length = 0;
	long file;

	if (!path_append_text(temporary, &length, path) ||
	    !path_append_text(temporary, &length, ".") ||
	    !path_append_hex_number(temporary, &length,
				    (uint64_t)sys_getpid() << 32 | (uint64_t)sys_gettid()))
		return;
	table->checksum = compute_table_checksum(table, size);
	file = sys_call4(SYS_openat, cache, (long)temporary,
			 O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0400);
	if (file == -EEXIST) { /* left by a killed process that had the same numbers */
		sys_call3(SYS_unlinkat, cache, (long)temporary, 0);
		return;
	}
	if (file < 0)
		return;
	if (!write_all_bytes((int)file, table, size) ||
	    sys_call4(SYS_renameat, cache, (long)temporary, cache, (long)path) < 0)
		sys_call3(SYS_unlinkat, cache, (long)temporary, 0);
	sys_close((int)file);
}

/* ---- compiling from a file ---- */

static int compile_table_from_file(int file, uint64_t size, struct unwind_table **ret,
				   size_t *ret_size)
{
	struct image_file_reader source = {
		.file = file, .size = size, .bytes = unwind_map_memory(size)};
	struct unwind_image image = {.bytes = source.bytes,
				     .size = size,
				     .fetch = read_image_bytes_from_file,
				     .context = &source};
	int status;

	if (!source.bytes)
		return -ENOMEM;
	status = unwind_compile_table_of_image(&image, ret, ret_size);
	unwind_unmap_memory(source.bytes, size);
	return status;
}

static int open_image_file_if_unchanged(const char *path, uint64_t device, uint64_t inode,
					uint64_t *ret_size)
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

int unwind_table_load_or_compile(const char *directory, const uint8_t *build_id,
				 uint32_t build_id_size, const char *path, uint64_t device,
				 uint64_t inode, const struct unwind_table **ret, size_t *ret_size,
				 bool *ret_cached)
{
	char name[CACHE_FILE_NAME_BYTES_MAX];
	struct unwind_table *table;
	uint64_t image_size = 0;
	size_t size;
	int status, cache = -1,
		    file = open_image_file_if_unchanged(path, device, inode, &image_size);

	if (file < 0)
		return file;
	if (build_id_size > 0 && build_id_size <= UNWIND_BUILD_ID_SIZE_MAX &&
	    format_table_file_name(name, build_id, build_id_size, image_size))
		cache = open_trusted_cache_directory(directory);
	*ret_cached = cache >= 0 && load_table_from_cache(cache, name, build_id, build_id_size,
							  image_size, ret, ret_size) == 0;
	status = *ret_cached ? 0 : compile_table_from_file(file, image_size, &table, &size);
	sys_close(file);
	if (!status && !*ret_cached) {
		if (cache >= 0) {
			table->build_id_size = build_id_size;
			for (uint32_t i = 0; i < build_id_size; i++)
				table->build_id[i] = build_id[i];
			store_table_in_cache(cache, name, table, size);
		}
		*ret = table;
		*ret_size = size;
	}
	if (cache >= 0)
		sys_close(cache);
	return status;
}
