/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The memory that the controller shares with the program's processes (causal/control.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "experiments/control_private.h"

/* Memory that nobody can cut short, under a name in the session: who opens the name opens it. */
static int control_create_linked_memfd(const char *path)
{
	char target[64];
	int file = memfd_create("kymo-causal-control", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (file < 0)
		return -errno;
	snprintf(target, sizeof(target), "/proc/%ld/fd/%d", (long)getpid(), file);
	if (!access(target, R_OK | W_OK) && !symlink(target, path))
		return file;
	close(file);
	return -ENOENT;
}

/* The parts that every process touches are made now, while a lack of room is an error and not a
 * signal (SIGBUS) in the program. */
static int control_allocate_shared_file(int file)
{
	static const off_t first_targets = 1 << 16;
	int error =
		posix_fallocate(file, 0,
				(off_t)offsetof(struct causal_control, targets) +
					first_targets * (off_t)sizeof(struct causal_target_time));

	if (!error && ftruncate(file, sizeof(struct causal_control)))
		error = errno;
	/* A file is cut by whoever may write to it. */
	if (!error)
		fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	return error;
}

int control_map_new_shared_file(struct causal_controller *controller, struct problem *problem)
{
	char path[PATH_MAX];
	int file, error;

	snprintf(path, sizeof(path), "%s/causal/control", controller->options.session);
	/* cutting it would end the processes of a session that is still there with SIGBUS */
	unlink(path);
	file = control_create_linked_memfd(path);
	if (file < 0) /* without /proc */
		file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (file < 0)
		return problem_set(problem, -errno, "cannot write '%s': %s", path, strerror(errno));
	error = control_allocate_shared_file(file);
	if (!error) {
		controller->shared = mmap(NULL, sizeof(struct causal_control),
					  PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
		if (controller->shared == MAP_FAILED) {
			error = errno;
			controller->shared = NULL;
		}
	}
	if (!error) {
		controller->file = file;
		return 0;
	}
	close(file);
	unlink(path);
	return problem_set(problem, -error, "cannot make '%s': %s", path, strerror(error));
}
