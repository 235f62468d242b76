/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See server.h. A request is believed in nothing: strings are ended, the file that it names
 * must be the one that is mapped (same device and inode, or same build-id).
 */
#include "planning/server.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/trusted_path.h"
#include "launch/mapped_file.h"
#include "planning/request_server.h"

struct planned_module_list {
	struct planned_module **list;
	size_t count, capacity;
};

struct plan_server {
	struct plan_server_options options;
	char socket[sizeof(((struct sockaddr_un *)0)->sun_path)];
	char directory[32]; /* of the socket where the session's path is too long; or "" */
	struct request_server requests;
	/* By where the arena lies. Those behind the first are the same modules once more, for
	 * processes that have something else there. */
	struct planned_module_list modules[PLAN_ARENA_PLACEMENT_BEHIND_MODULE];
};

static int server_find_requested_file(const struct plan_request *request, char *ret, size_t size,
				      struct stat *status, struct problem *problem)
{
	const struct mapped_file file = {
		.pid = request->pid,
		.device = request->device,
		.inode = request->inode,
		.path = request->path,
		.build_id = request->build_id,
		.build_id_size = request->build_id_size <= sizeof(request->build_id)
					 ? request->build_id_size
					 : 0,
	};

	if (mapped_file_find_reachable_path(&file, ret, size, status))
		return 0;
	return problem_set(problem, -ENOENT, "'%s' changed since process %u loaded it",
			   request->path, request->pid);
}

/* ---- modules ---- */

static struct planned_module *server_find_module(const struct planned_module_list *modules,
						 const struct stat *status)
{
	for (size_t i = 0; i < modules->count; i++) {
		struct planned_module *module = modules->list[i];

		if (module->device == status->st_dev && module->inode == status->st_ino &&
		    module->changed.tv_sec == status->st_mtim.tv_sec &&
		    module->changed.tv_nsec == status->st_mtim.tv_nsec)
			return module;
	}
	return NULL;
}

static struct planned_module *server_append_empty_module(struct planned_module_list *modules)
{
	if (modules->count == modules->capacity) {
		size_t capacity = modules->capacity ? modules->capacity * 2 : 64;
		struct planned_module **larger =
			reallocarray(modules->list, capacity, sizeof(void *));

		if (!larger)
			return NULL;
		modules->list = larger;
		modules->capacity = capacity;
	}
	modules->list[modules->count] = calloc(1, sizeof(**modules->list));
	return modules->list[modules->count];
}

/* To whoever attached. */
static void server_ask_attacher(struct plan_server *server, const struct plan_request *request,
				const struct planned_module *module, struct plan_answer *answer)
{
	struct problem problem = {""};

	answer->status = -ENOTSUP;
	if (server->options.write)
		answer->status =
			server->options.write(server->options.context, request, module, &problem);
	if (answer->status)
		snprintf(answer->reason, sizeof(answer->reason), "%.500s", problem.text);
}

static void server_answer_module_request(struct plan_server *server,
					 const struct plan_request *request,
					 struct plan_answer *answer)
{
	struct instrumentation_setup setup = server->options.instrumentation_setup;
	struct planned_module *module = NULL;
	struct planned_module_list *modules;
	struct problem problem;
	char path[2 * PATH_MAX];
	struct stat status;

	if (request->placement >= PLAN_ARENA_PLACEMENT_BEHIND_MODULE) {
		answer->status = -EINVAL;
		return;
	}
	modules = &server->modules[request->placement];
	answer->status = server_find_requested_file(request, path, sizeof(path), &status, &problem);
	if (answer->status) {
		snprintf(answer->reason, sizeof(answer->reason), "%.500s", problem.text);
		return;
	}
	module = server_find_module(modules, &status);
	if (request->kind != PLAN_REQUEST_MODULE) {
		if (!module)
			answer->status = -ENOENT;
		else
			server_ask_attacher(server, request, module, answer);
		return;
	}
	if (!module && (module = server_append_empty_module(modules))) {
		setup.plan.arena_placement = (uint8_t)request->placement;
		planned_module_load_from_path(&setup, path, request->path,
					      mapped_file_is_program(request->pid, &status),
					      module);
		modules->count++;
	}
	answer->status = !module          ? -ENOMEM
			 : module->status ? module->status
					  : (module->selection.chosen_count ? 0 : -ENOENT);
	if (module && module->status)
		snprintf(answer->reason, sizeof(answer->reason), "%.500s", module->problem.text);
	if (!answer->status && server->options.write)
		server_ask_attacher(server, request, module, answer);
	if (answer->status)
		return;
	answer->function_count = (uint32_t)module->selection.count;
	snprintf(answer->plan, sizeof(answer->plan), "%s", module->plan_file_path);
	snprintf(answer->modes, sizeof(answer->modes), "%s", module->modes_file_path);
}

/* When root attached, the socket is another user's. Such a one asks about processes of its own:
 * what is asked for may be written into them. /proc gives what has more rights than its user to
 * root. */
static bool server_is_peer_allowed(const struct ucred *peer, uint32_t pid)
{
	struct stat status;
	char path[32];

	if (is_trusted_owner(peer->uid))
		return true;
	snprintf(path, sizeof(path), "/proc/%u", pid);
	return !stat(path, &status) && status.st_uid == peer->uid;
}

static void server_answer_request(void *context, const void *request_, void *answer_)
{
	const struct plan_request *request = request_;
	struct plan_server *server = context;
	struct plan_answer *answer = answer_;

	if (!server_is_peer_allowed(&server->requests.peer, request->pid)) {
		answer->status = -EPERM;
		return;
	}
	switch (request->kind) {
	case PLAN_REQUEST_MODULE:
	case PLAN_REQUEST_COMMIT:
		server_answer_module_request(server, request, answer);
		return;
	case PLAN_REQUEST_DONE:
		if (server->options.write)
			server_ask_attacher(server, request, NULL, answer);
		return;
	default:
		answer->status = -EINVAL;
	}
}

/* ---- life ---- */

/* Paths of sockets are short (unix(7)): a session whose own is too long, or whose file system has
 * no sockets, gets one in the directory for temporary files. */
static int server_bind_session_or_tmp(struct plan_server *server, int listener)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int length = snprintf(server->socket, sizeof(server->socket), "%s/plans",
			      server->options.session);

	if (length < (int)sizeof(server->socket)) {
		memcpy(address.sun_path, server->socket, (size_t)length + 1);
		unlink(server->socket);
		if (!bind(listener, (struct sockaddr *)&address, sizeof(address)))
			return 0;
	}
	snprintf(server->directory, sizeof(server->directory), "/tmp/kymo-XXXXXX");
	if (!mkdtemp(server->directory)) {
		server->directory[0] = '\0';
		return -errno;
	}
	length = snprintf(server->socket, sizeof(server->socket), "%s/plans", server->directory);
	memcpy(address.sun_path, server->socket, (size_t)length + 1);
	return bind(listener, (struct sockaddr *)&address, sizeof(address)) ? -errno : 0;
}

/* Nobody but this user may ask: plans are made from whatever file a request names. */
static int server_bind_socket(void *context, int listener)
{
	struct plan_server *server = context;
	int error = server_bind_session_or_tmp(server, listener);

	return error ? error : chmod(server->socket, 0600) ? -errno : 0;
}

int plan_server_start(const struct plan_server_options *options, struct plan_server **ret,
		      struct problem *problem)
{
	struct plan_server *server = calloc(1, sizeof(*server));
	int error;

	if (!server)
		return problem_set(problem, -ENOMEM, "out of memory");
	server->options = *options;
	error = request_server_open_and_start_thread(
		&server->requests,
		&(struct request_server_options){
			.bind_socket = server_bind_socket,
			.answer = server_answer_request,
			.context = server,
			.request_size = sizeof(struct plan_request),
			.request_size_least = offsetof(struct plan_request, path),
			.answer_size = sizeof(struct plan_answer),
		});
	if (error) {
		plan_server_destroy(server);
		return problem_set(problem, error, "cannot serve instrumentation plans: %s",
				   strerror(-error));
	}
	*ret = server;
	return 0;
}

const char *plan_server_get_socket_path(const struct plan_server *server)
{
	return server->socket;
}

void plan_server_stop(struct plan_server *server)
{
	request_server_end_thread_and_close(&server->requests);
	if (server->socket[0])
		unlink(server->socket);
	if (server->directory[0])
		rmdir(server->directory);
	server->socket[0] = server->directory[0] = '\0';
}

void plan_server_destroy(struct plan_server *server)
{
	if (!server)
		return;
	plan_server_stop(server);
	for (size_t i = 0; i < PLAN_ARENA_PLACEMENT_BEHIND_MODULE; i++) {
		for (size_t j = 0; j < server->modules[i].count; j++) {
			planned_module_deinit(server->modules[i].list[j]);
			free(server->modules[i].list[j]);
		}
		free(server->modules[i].list);
	}
	free(server);
}

const struct planned_module *const *plan_server_get_modules(const struct plan_server *server,
							    size_t *ret_count)
{
	*ret_count = server->modules[PLAN_ARENA_PLACEMENT_FIRST].count;
	return (const struct planned_module *const *)server->modules[PLAN_ARENA_PLACEMENT_FIRST]
		.list;
}
