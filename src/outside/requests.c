/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See requests.h. Who asks is known from the kernel (SO_PEERCRED), and can ask for itself and its
 * children alone; other users are not answered.
 */
#include "outside/requests.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/monotonic.h"
#include "common/outside_request.h"
#include "common/process_stat.h"
#include "outside/running.h"

#define WAITING_MAX       64
#define EVENTS_KEPT_LEAST 128u
#define PATIENCE_USEC     100000 /* for what was connected and does not ask */

int outside_requests_listen(const char *spool_directory)
{
	int listening = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), error;
	struct sockaddr_un address;
	uint32_t size = outside_request_make_address(spool_directory, &address);

	if (listening < 0)
		return -errno;
	if (!bind(listening, (struct sockaddr *)&address, size) && !listen(listening, WAITING_MAX))
		return listening;
	error = -errno;
	close(listening);
	return error;
}

static uint32_t read_parent_pid(uint32_t pid)
{
	struct process_stat stat;

	return process_stat_read(pid, &stat) ? stat.parent : 0;
}

static bool is_thread_of(uint32_t pid, uint32_t tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/task/%u", pid, tid);
	return !access(path, F_OK);
}

static bool open_executing_thread(struct outside_world *world, struct outside_events *events,
				  uint32_t pid, uint32_t tid)
{
	struct outside_thread *thread;

	if (!is_thread_of(pid, tid) || outside_events_open_task(events, (pid_t)tid, true))
		return false;
	thread = outside_thread_get(world, pid, pid, monotonic_ns());
	if (thread) {
		thread->process->parent_pid = read_parent_pid(pid);
		thread->process->events_tid = tid;
	}
	return thread != NULL;
}

static bool open_running_child(struct outside_world *world, struct outside_events *events,
			       uint32_t parent, uint32_t pid)
{
	struct outside_process *process;

	if (read_parent_pid(pid) != parent ||
	    outside_running_open(world, events, (pid_t)pid, monotonic_ns()))
		return false;
	process = outside_process_find(world, pid);
	if (process) {
		process->parent_pid = parent;
		process->events_tid = pid;
	}
	return true;
}

static bool any_process_has_events_of(void *context, uint32_t tid)
{
	const struct outside_world *world = context;

	for (uint32_t i = 0; i < OUTSIDE_TABLE_SIZE; i++) {
		for (const struct outside_process *process = world->processes[i]; process;
		     process = process->next) {
			if (process->events_tid == tid)
				return true;
		}
	}
	return false;
}

/* A build executes thousands of programs: events of trees that have ended are closed, each time
 * that there are twice as many as were needed the last time. */
static void close_ended_events(struct outside_world *world, struct outside_events *events)
{
	static uint32_t limit = EVENTS_KEPT_LEAST;

	if (events->count < limit)
		return;
	outside_events_close_unneeded(events, any_process_has_events_of, world);
	limit = 2 * events->count + EVENTS_KEPT_LEAST;
}

static uint8_t carry_out(struct outside_world *world, struct outside_events *events, uint32_t asker,
			 const struct outside_request *request)
{
	close_ended_events(world, events);
	if (request->kind == OUTSIDE_REQUEST_EXEC)
		return open_executing_thread(world, events, asker, request->tid);
	if (request->kind == OUTSIDE_REQUEST_CHILD)
		return open_running_child(world, events, asker, request->tid);
	return request->kind == OUTSIDE_REQUEST_NOTHING;
}

void outside_requests_answer(int listening, struct outside_world *world,
			     struct outside_events *events)
{
	int file;

	while ((file = accept4(listening, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		struct timeval patience = {.tv_usec = PATIENCE_USEC};
		struct outside_request request;
		struct ucred asker;
		socklen_t size = sizeof(asker);
		uint8_t answer;

		setsockopt(file, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
		if (!getsockopt(file, SOL_SOCKET, SO_PEERCRED, &asker, &size) &&
		    (asker.uid == geteuid() || !geteuid()) &&
		    recv(file, &request, sizeof(request), 0) == sizeof(request)) {
			answer = carry_out(world, events, (uint32_t)asker.pid, &request);
			send(file, &answer, 1, MSG_NOSIGNAL);
		}
		close(file);
	}
}
