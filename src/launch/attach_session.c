/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See attach_session.h.
 */
#include "launch/attach_session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/process_title.h"
#include "console/message.h"
#include "launch/parts.h"
#include "launch/result_path.h"

#define COMMAND_LINE_BYTES_MAX (128u << 10)

/* /proc/PID/cmdline, zero-separated (proc(5)); the name where there is none. */
static int read_command_line_of_process(struct attach_session *session, pid_t pid,
					struct problem *problem)
{
	struct launch *launch = &session->launch;
	char path[64];
	ssize_t length = -1;
	size_t count = 0;
	int file;

	launch->attached = true;
	session->words = calloc(1, COMMAND_LINE_BYTES_MAX + 2);
	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	file = open(path, O_RDONLY | O_CLOEXEC);
	if (session->words && file >= 0)
		length = read(file, session->words, COMMAND_LINE_BYTES_MAX);
	if (file >= 0)
		close(file);
	if (length <= 0)
		return problem_set(problem, -ESRCH, "process %d has ended", (int)pid);
	length = (ssize_t)process_title_trim_padding(session->words, (size_t)length);
	for (ssize_t i = 0; i < length; i += (ssize_t)strlen(session->words + i) + 1)
		count++;
	launch->arguments = calloc(count + 1, sizeof(*launch->arguments));
	if (!launch->arguments)
		return problem_set(problem, -ENOMEM, "out of memory");
	for (char *word = session->words; launch->argument_count < count; word += strlen(word) + 1)
		launch->arguments[launch->argument_count++] = word;
	return 0;
}

/* The process's user gets spool/ alone. The directory around it stays ours, so that nobody else can
 * put something in the way of what kymo writes and removes there, or exchange spool/ itself. */
static int change_spool_owner(const struct launch *launch, const struct injection_target *target,
			      struct problem *problem)
{
	int session = open(launch->session, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	int spool = session < 0 ? -1
				: openat(session, "spool",
					 O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	int error = 0;

	if (spool < 0 || fchmod(session, 0711) || fchown(spool, target->user, target->group))
		error = problem_set(problem, -errno, "cannot give '%s/spool' to user %u: %s",
				    launch->session, (unsigned)target->user, strerror(errno));
	if (spool >= 0)
		close(spool);
	if (session >= 0)
		close(session);
	return error;
}

static int check_process_sees_library_and_spool(const struct attach_session *session, pid_t pid,
						struct problem *problem)
{
	char spool[PATH_MAX];

	snprintf(spool, sizeof(spool), "%s/spool", session->launch.session);
	if (!inject_target_sees_same_file(pid, session->library))
		return problem_set(problem, -ENOENT,
				   "process %d cannot see '%s' (it runs in a container or another "
				   "mount namespace): run kymo inside it",
				   (int)pid, session->library);
	if (!inject_target_sees_same_file(pid, spool))
		return problem_set(problem, -ENOENT,
				   "process %d cannot see '%s' (it runs in a container or another "
				   "mount namespace): choose a directory that both see (--output)",
				   (int)pid, session->launch.session);
	return 0;
}

/* Locked as long as one of our descriptors is open: core/attach.c looks. */
static int create_session_lock(struct attach_session *session, struct problem *problem)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/spool/attached", session->launch.session);
	unlink(path); /* of an earlier session in the same directory */
	session->lock = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (session->lock < 0 || flock(session->lock, LOCK_EX | LOCK_NB))
		return problem_set(problem, -errno, "cannot lock '%s': %s", path, strerror(errno));
	return 0;
}

/* The settings alone, and where the user's caches are; not our environment. */
int attach_session_create_settings_block(struct attach_session *session,
					 const struct injection_target *target,
					 struct problem *problem)
{
	char **environment, *end, *own[3] = {NULL};
	size_t size = 1;
	unsigned count = 0;
	int error;

	for (char **entry = environ; target->user == geteuid() && *entry && count < 2; entry++) {
		if (!strncmp(*entry, "HOME=", 5) || !strncmp(*entry, "XDG_CACHE_HOME=", 15))
			own[count++] = *entry;
	}
	error = launch_environment_create(&session->launch, session->library, own, &environment,
					  problem);
	if (error)
		return error;
	for (char **entry = environment; *entry; entry++)
		size += strlen(*entry) + 1;
	session->settings_block = end = malloc(size);
	for (char **entry = environment; end && *entry; entry++) {
		if (strncmp(*entry, "LD_PRELOAD=", 11))
			end = stpcpy(end, *entry) + 1;
	}
	launch_environment_destroy(environment);
	if (!end)
		return problem_set(problem, -ENOMEM, "out of memory");
	*end = '\0';
	session->settings_block_bytes = (size_t)(end - session->settings_block) + 1;
	return 0;
}

int attach_session_create(struct attach_session *session, struct effective_settings *settings,
			  const struct injection_target *target, struct problem *problem)
{
	char library[PATH_MAX];
	int error;

	session->lock = -1;
	session->launch.settings = settings;
	clock_gettime(CLOCK_REALTIME, &session->launch.start);
	error = read_command_line_of_process(session, target->pid, problem);
	if (!error)
		error = part_find_path_or_set_problem(PART_LIBKYMO, library, problem);
	if (!error && !(session->library = strdup(library)))
		error = problem_set(problem, -ENOMEM, "out of memory");
	/* Directories on the way to the results may be closed to another user. */
	if (!error && target->user != geteuid())
		error = effective_set_if_not_overridden(settings, SETTING_USE_TEMPORARY_FILES,
							"off", ORIGIN_OPTION, "kymo attach",
							problem);
	if (!error)
		error = launch_create_directories(&session->launch, problem);
	/* The lock comes first: later the directory is somebody else's. */
	if (!error)
		error = create_session_lock(session, problem);
	if (!error && target->user != geteuid())
		error = change_spool_owner(&session->launch, target, problem);
	if (!error)
		error = check_process_sees_library_and_spool(session, target->pid, problem);
	return error;
}

int attach_session_create_outside(struct attach_session *session,
				  struct effective_settings *settings, pid_t pid,
				  struct problem *problem)
{
	int error;

	session->lock = -1;
	session->launch.settings = settings;
	clock_gettime(CLOCK_REALTIME, &session->launch.start);
	error = read_command_line_of_process(session, pid, problem);
	return error ? error : launch_create_directories(&session->launch, problem);
}

void attach_session_release_lock(struct attach_session *session)
{
	char path[PATH_MAX];

	if (session->lock < 0)
		return;
	snprintf(path, sizeof(path), "%s/spool/attached", session->launch.session);
	unlink(path);
	close(session->lock);
	session->lock = -1;
}

void attach_session_destroy(struct attach_session *session)
{
	attach_session_release_lock(session);
	result_place_deinit(&session->launch.place);
	free(session->launch.session);
	free(session->launch.arguments);
	free(session->words);
	free(session->library);
	free(session->settings_block);
}
