/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See own_file.h.
 */
#include "common/own_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "common/syscalls.h"

void own_file_identify(struct own_file *file, int descriptor)
{
	struct stat status;

	if (sys_call2(SYS_fstat, descriptor, (long)&status))
		return;
	file->device = status.st_dev;
	file->inode = status.st_ino;
}

int64_t own_file_get_size(const struct own_file *file, int descriptor)
{
	struct stat status;

	if (descriptor < 0 || sys_call2(SYS_fstat, descriptor, (long)&status) ||
	    status.st_dev != file->device || status.st_ino != file->inode)
		return -ESTALE;
	return status.st_size;
}

int own_file_reopen(const struct own_file *file)
{
	long descriptor = sys_open(file->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0);

	if (descriptor < 0)
		return (int)descriptor;
	if (own_file_get_size(file, (int)descriptor) >= 0)
		return (int)descriptor;
	sys_close((int)descriptor);
	return -ESTALE;
}

size_t own_file_write(int descriptor, const void *bytes, size_t size, uint64_t offset)
{
	size_t done = 0;

	if (!sys_is_file_size_allowed(offset + size))
		return 0;
	while (done < size) {
		long written = sys_pwrite(descriptor, (const uint8_t *)bytes + done, size - done,
					  offset + done);

		if (written == -EINTR)
			continue;
		if (written <= 0)
			break;
		done += (size_t)written;
	}
	return done;
}
