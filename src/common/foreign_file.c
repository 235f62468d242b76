/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See foreign_file.h. A name is first opened with O_PATH, which has no effect on what it leads to;
 * what was looked at is then opened through /proc/self/fd, so that nobody can exchange it between.
 */
#include "common/foreign_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/trusted_path.h"

const struct foreign_open_policy foreign_policy_of_result_files = {
	.directory = AT_FDCWD, .trust_flags = FOREIGN_ONLY_OWN_LINKS};

static int check_file_trust(const struct foreign_open_policy *how, const struct stat *status)
{
	if (S_ISLNK(status->st_mode))
		return -ELOOP;
	if (!S_ISREG(status->st_mode))
		return S_ISDIR(status->st_mode) ? -EISDIR : -ENODEV;
	if (how->trust_flags & FOREIGN_ONLY_OWN_FILES && !is_trusted_file_status(status))
		return -EPERM;
	if (how->trust_flags & FOREIGN_ONLY_OWNER_OR_ROOT && status->st_uid != how->owner &&
	    !is_trusted_owner(status->st_uid))
		return -EPERM;
	return 0;
}

/* Without /proc the name is opened once more, and must lead to the same file. */
static int reopen_checked_file(const struct foreign_open_policy *how, const char *path, int seen,
			       const struct stat *status)
{
	int flags = how->flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, file;
	struct stat again;
	char link[32];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", seen);
	file = open(link, flags);
	if (file >= 0)
		return file;
	if (errno != ENOENT)
		return -errno;
	file = openat(how->directory, path,
		      flags | (how->trust_flags & FOREIGN_REFUSE_LINKS ? O_NOFOLLOW : 0));
	if (file < 0)
		return -errno;
	if (!fstat(file, &again) && again.st_dev == status->st_dev &&
	    again.st_ino == status->st_ino)
		return file;
	close(file);
	return -ESTALE;
}

/* What the name leads to, opened without any effect on it. */
static int open_as_path_descriptor(const struct foreign_open_policy *how, const char *path,
				   struct stat *ret)
{
	int follow =
		how->trust_flags & (FOREIGN_REFUSE_LINKS | FOREIGN_ONLY_OWN_LINKS) ? O_NOFOLLOW : 0;
	int seen = openat(how->directory, path, O_PATH | O_CLOEXEC | follow);

	if (seen >= 0 && how->trust_flags & FOREIGN_ONLY_OWN_LINKS && !fstat(seen, ret) &&
	    S_ISLNK(ret->st_mode) && is_trusted_owner(ret->st_uid)) {
		close(seen);
		seen = openat(how->directory, path, O_PATH | O_CLOEXEC);
	}
	if (seen < 0 || !fstat(seen, ret))
		return seen < 0 ? -errno : seen;
	close(seen);
	return -EIO;
}

int foreign_open_file(const struct foreign_open_policy *how, const char *path,
		      struct stat *ret_status)
{
	struct stat status;
	int seen = open_as_path_descriptor(how, path, &status), result;

	if (seen < 0)
		return seen;
	result = check_file_trust(how, &status);
	if (!result)
		result = reopen_checked_file(how, path, seen, &status);
	close(seen);
	if (result >= 0 && ret_status)
		*ret_status = status;
	return result;
}

FILE *foreign_open_stream(const struct foreign_open_policy *how, const char *path)
{
	int file = foreign_open_file(how, path, NULL);
	FILE *stream = file >= 0 ? fdopen(file, "re") : NULL;
	int error = file < 0 ? -file : errno;

	if (!stream) {
		if (file >= 0)
			close(file);
		errno = error;
	}
	return stream;
}

FILE *foreign_open_user_named_stream(const char *path)
{
	static const struct foreign_open_policy how = {.directory = AT_FDCWD};

	if (!strncmp(path, "/dev/fd/", 8) || !strcmp(path, "/dev/stdin") ||
	    !strncmp(path, "/proc/self/fd/", 14))
		return fopen(path, "re");
	return foreign_open_stream(&how, path);
}

int foreign_read_whole_file(const struct foreign_open_policy *how, const char *path, size_t most,
			    char **ret, size_t *ret_size)
{
	struct stat status;
	int file = foreign_open_file(how, path, &status), error = 0;
	size_t size, done = 0;
	char *bytes;

	if (file < 0)
		return file;
	size = status.st_size > 0 ? (size_t)status.st_size : 0;
	bytes = size > most ? NULL : malloc(size + 1);
	if (!bytes)
		error = size > most ? -EFBIG : -ENOMEM;
	while (bytes && !error && done < size) {
		ssize_t got = pread(file, bytes + done, size - done, (off_t)done);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			error = got < 0 ? -errno : 0;
			break; /* it was cut short meanwhile */
		}
		done += (size_t)got;
	}
	close(file);
	if (error) {
		free(bytes);
		return error;
	}
	bytes[done] = '\0';
	*ret = bytes;
	*ret_size = done;
	return 0;
}

const char *foreign_error_to_text(int error)
{
	switch (error < 0 ? -error : error) {
	case ELOOP:
		return "it is a symbolic link";
	case ENODEV:
		return "it is not a regular file";
	case EPERM:
		return "it belongs to another user, or others can write to it";
	default:
		return strerror(error < 0 ? -error : error);
	}
}
