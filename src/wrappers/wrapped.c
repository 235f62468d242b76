/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See wrapped.h.
 */
#include "wrappers/wrapped.h"

#include <sys/uio.h>

#include "common/syscalls.h"
#include "core/base/fork_state.h"

#define PAGE_BYTES 4096u

const struct collection_control *kymo_wrapped_control = &default_collection_control;

region_id wrapped_find_or_add_region(struct wrapped_function *call)
{
	region_id region = region_find_or_add_name(call->category, call->name);

	atomic_store_explicit(&call->region, region, memory_order_relaxed);
	return region;
}

/* The kernel copies up to the first page that cannot be read; in parts, because it may take all or
 * nothing of one (process_vm_readv(2)). In a seccomp filter system calls may be deadly. */
const char *wrapped_copy_readable_text(char *buffer, size_t size, const char *text)
{
	size_t first = PAGE_BYTES - (uint64_t)text % PAGE_BYTES < size
			       ? PAGE_BYTES - (uint64_t)text % PAGE_BYTES
			       : size - 1;
	struct iovec local = {buffer, size - 1};
	struct iovec parts[2] = {{(void *)text, first}, {(void *)(text + first), size - 1 - first}};
	long length = 0;

	if (!process_has_seccomp_thread())
		length = sys_call6(SYS_process_vm_readv, sys_getpid(), (long)&local, 1, (long)parts,
				   2, 0);
	buffer[length > 0 ? length : 0] = 0;
	return buffer;
}

void wrapped_end_region_with_error(region_id region, int error)
{
	struct region_value value = wrapped_number_to_value("error", error);

	if (region_end(region) && error)
		region_values(&value, 1);
}

void wrapped_end_region_with_result(region_id region, const char *name, int64_t result)
{
	struct region_value value = result == -1 ? wrapped_number_to_value("error", errno)
						 : wrapped_number_to_value(name, result);

	if (region_end(region))
		region_values(&value, 1);
}

void wrapped_record_whole_call(region_id region, uint64_t begin_ticks, struct region_value value,
			       int error)
{
	struct region_value values[2] = {value, wrapped_number_to_value("error", error)};

	region_write_whole_call(region, begin_ticks, ticks_now());
	region_values(values, error ? 2 : 1);
}

KYMO_FORK_CODE void wrapped_record_mark(region_id region, struct region_value value)
{
	int error = errno;

	region_write_mark(region);
	region_values(&value, 1);
	errno = error;
}
