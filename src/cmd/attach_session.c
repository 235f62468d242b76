/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See attach_session.h.
 */
#include "cmd/attach_session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "cmd/message.h"
#include "cmd/result_path.h"

#define COMMAND_LINE_MAX (128u << 10)

/* /proc/PID/cmdline, zero-separated (proc(5)); the name where there is none. */
static int read_command(struct attach_session *session, pid_t pid, struct problem *problem)
{
	struct launch *launch = &session->launch;
	char path[64];
	ssize_t length = -1;
	size_t count = 0;
	int file;

	session->words = calloc(1, COMMAND_LINE_MAX + 2);
	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	file = open(path, O_RDONLY | O_CLOEXEC);
	if (session->words && file >= 0)
		length = read(file, session->words, COMMAND_LINE_MAX);
	if (file >= 0)
		close(file);
	if (length <= 0)
		return problem_set(problem, -ESRCH, "process %d has ended", (int)pid);
	for (ssize_t i = 0; i < length; i += (ssize_t)strlen(session->words + i) + 1)
		count++;
	launch->arguments = calloc(count + 1, sizeof(*launch->arguments));
	if (!launch->arguments)
		return problem_set(problem, -ENOMEM, "out of memory");
	for (char *word = session->words; launch->argument_count < count; word += strlen(word) + 1)
		launch->arguments[launch->argument_count++] = word;
	return 0;
}

static int hand_over(const struct launch *launch, const struct inject_target *target,
		     struct problem *problem)
{
	char spool[PATH_MAX];

	snprintf(spool, sizeof(spool), "%s/spool", launch->session);
	if (chown(launch->session, target->user, target->group) ||
	    chown(spool, target->user, target->group))
		return problem_set(problem, -errno, "cannot give '%s' to user %u: %s",
				   launch->session, (unsigned)target->user, strerror(errno));
	return 0;
}

static int check_seen(const struct attach_session *session, pid_t pid, struct problem *problem)
{
	char spool[PATH_MAX];

	snprintf(spool, sizeof(spool), "%s/spool", session->launch.session);
	if (!inject_sees(pid, session->library))
		return problem_set(problem, -ENOENT,
				   "process %d does not see '%s' (it is in a container, or has a "
				   "file system of its own): run kymo where it runs",
				   (int)pid, session->library);
	if (!inject_sees(pid, spool))
		return problem_set(problem, -ENOENT,
				   "process %d does not see '%s' (it is in a container, or has a "
				   "file system of its own): choose a directory that it sees "
				   "(--output)",
				   (int)pid, session->launch.session);
	return 0;
}

/* Locked as long as one of our descriptors is open: core/attach.c looks. */
static int make_lock(struct attach_session *session, struct problem *problem)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/spool/attached", session->launch.session);
	session->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (session->lock < 0 || flock(session->lock, LOCK_EX | LOCK_NB))
		return problem_set(problem, -errno, "cannot lock '%s': %s", path, strerror(errno));
	return 0;
}

/* The settings alone, and where the user's caches are; not our environment. */
int attach_session_make_block(struct attach_session *session, const struct inject_target *target,
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
	session->block = end = malloc(size);
	for (char **entry = environment; end && *entry; entry++) {
		if (strncmp(*entry, "LD_PRELOAD=", 11))
			end = stpcpy(end, *entry) + 1;
	}
	launch_environment_destroy(environment);
	if (!end)
		return problem_set(problem, -ENOMEM, "out of memory");
	*end = '\0';
	session->block_size = (size_t)(end - session->block) + 1;
	return 0;
}

int attach_session_create(struct attach_session *session, struct resolved *settings,
			  const struct inject_target *target, struct problem *problem)
{
	int error;

	session->lock = -1;
	session->launch.settings = settings;
	clock_gettime(CLOCK_REALTIME, &session->launch.start);
	error = read_command(session, target->pid, problem);
	if (!error)
		error = launch_find_library(&session->library, problem);
	/* Directories on the way to the results may be closed to another user. */
	if (!error && target->user != geteuid())
		error = resolved_set(settings, SETTING_USE_TEMPORARY_FILES, "off", ORIGIN_OPTION,
				     "kymo attach", problem);
	if (!error)
		error = launch_prepare(&session->launch, problem);
	if (!error && target->user != geteuid())
		error = hand_over(&session->launch, target, problem);
	if (!error)
		error = check_seen(session, target->pid, problem);
	if (!error)
		error = make_lock(session, problem);
	return error;
}

void attach_session_unlock(struct attach_session *session)
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
	attach_session_unlock(session);
	free(session->launch.result);
	free(session->launch.session);
	free(session->launch.arguments);
	free(session->words);
	free(session->library);
	free(session->block);
}
