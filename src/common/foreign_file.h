/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Opening files that others made: the profiled program, another user, whoever sent the results.
 * Such a name may be a link to a file of ours, a pipe that nobody writes to, or a device that acts
 * when it is opened. Nothing but a regular file is opened, nothing is waited for, and where the
 * name is not the user's own choice no link is followed and the owner must be one that is expected.
 * Out of process only.
 */
#ifndef KYMO_COMMON_FOREIGN_FILE_H
#define KYMO_COMMON_FOREIGN_FILE_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>

enum foreign_trust_flags {
	FOREIGN_TRUST_ANY = 0, /* the user named the path: links are followed, any owner will do */
	FOREIGN_REFUSE_LINKS = 1, /* the last part of the path must not be a symbolic link */
	FOREIGN_ONLY_OWN_LINKS =
		8, /* the same, but a link of the effective user's or root's is followed */
	FOREIGN_ONLY_OWN_FILES =
		2, /* owned by the effective user or root, and written by nobody else */
	FOREIGN_ONLY_OWNER_OR_ROOT = 4, /* owned by the effective user, root or `owner` */
};

struct foreign_open_policy {
	int directory; /* that the path starts from; AT_FDCWD: the working directory */
	unsigned trust_flags;
	uid_t owner; /* of FOREIGN_ONLY_OWNER_OR_ROOT */
	int flags;   /* besides O_CLOEXEC, O_NONBLOCK and O_NOCTTY; 0 is O_RDONLY */
};

/* How files of a result directory are opened: whoever sent the results made them. */
extern const struct foreign_open_policy foreign_policy_of_result_files;
/* How files are opened that a process of this user left where anybody may put one (/tmp). */
static inline struct foreign_open_policy foreign_make_policy_for_owner(uid_t owner)
{
	return (struct foreign_open_policy){.directory = AT_FDCWD,
					    .trust_flags = FOREIGN_REFUSE_LINKS |
							   FOREIGN_ONLY_OWNER_OR_ROOT,
					    .owner = owner};
}

/* A descriptor, or a negative errno: -ELOOP a link, -EISDIR, -ENODEV another kind of file, -EPERM
 * an owner or a mode that is not trusted. `ret_status` may be NULL. */
int foreign_open_file(const struct foreign_open_policy *how, const char *path,
		      struct stat *ret_status);
/* As foreign_open_file(), as a stream to read; NULL with errno. */
FILE *foreign_open_stream(const struct foreign_open_policy *how, const char *path);
/* A file that the user named, to read: of what is no regular file, only descriptors that the shell
 * handed over (/dev/stdin, /dev/fd/63 of `<(command)`). */
FILE *foreign_open_user_named_stream(const char *path);
/* The whole file, malloc'ed, with a zero behind it. -EFBIG: larger than `most`. */
int foreign_read_whole_file(const struct foreign_open_policy *how, const char *path, size_t most,
			    char **ret, size_t *ret_size);
/* For messages: "is not a regular file", or what strerror(3) says. */
const char *foreign_error_to_text(int error);

#endif
