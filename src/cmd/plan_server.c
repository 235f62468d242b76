/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See plan_server.h. A request is believed in nothing: strings are ended, the file that it names
 * must be the one that is mapped (same device and inode, or same build-id).
 */
#include "cmd/plan_server.h"

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

#include "cmd/mapped_file.h"
#include "cmd/request_server.h"

struct module_list {
	struct instrument_module **list;
	size_t count, capacity;
};

struct plan_server {
	struct plan_server_options options;
	char socket[sizeof(((struct sockaddr_un *)0)->sun_path)];
	char directory[32]; /* of the socket where the session's path is too long; or "" */
	struct request_server requests;
	/* By where the arena lies. Those behind the first are the same modules once more, for
	 * processes that have something else there. */
	struct module_list modules[PLAN_PLACEMENT_BEHIND];
};

static int server_find_file(const struct plan_request *request, char *ret, size_t size,
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

	if (mapped_file_find(&file, ret, size, status))
		return 0;
	return problem_set(problem, -ENOENT,
			   "'%s' is no longer the file that process %u has loaded", request->path,
			   request->pid);
}

/* ---- modules ---- */

static struct instrument_module *server_known(const struct module_list *modules,
					      const struct stat *status)
{
	for (size_t i = 0; i < modules->count; i++) {
		struct instrument_module *module = modules->list[i];

		if (module->device == status->st_dev && module->inode == status->st_ino &&
		    module->changed.tv_sec == status->st_mtim.tv_sec &&
		    module->changed.tv_nsec == status->st_mtim.tv_nsec)
			return module;
	}
	return NULL;
}

static struct instrument_module *server_add(struct module_list *modules)
{
	if (modules->count == modules->capacity) {
		size_t capacity = modules->capacity ? modules->capacity * 2 : 64;
		struct instrument_module **larger =
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
static void server_follow(struct plan_server *server, const struct plan_request *request,
			  const struct instrument_module *module, struct plan_answer *answer)
{
	struct problem problem = {""};

	answer->status = -ENOTSUP;
	if (server->options.write)
		answer->status =
			server->options.write(server->options.context, request, module, &problem);
	if (answer->status)
		snprintf(answer->reason, sizeof(answer->reason), "%.500s", problem.text);
}

static void server_answer_module(struct plan_server *server, const struct plan_request *request,
				 struct plan_answer *answer)
{
	struct instrument_setup setup = server->options.setup;
	struct instrument_module *module = NULL;
	struct module_list *modules;
	struct problem problem;
	char path[2 * PATH_MAX];
	struct stat status;

	if (request->placement >= PLAN_PLACEMENT_BEHIND) {
		answer->status = -EINVAL;
		return;
	}
	modules = &server->modules[request->placement];
	answer->status = server_find_file(request, path, sizeof(path), &status, &problem);
	if (answer->status) {
		snprintf(answer->reason, sizeof(answer->reason), "%.500s", problem.text);
		return;
	}
	module = server_known(modules, &status);
	if (request->kind != PLAN_REQUEST_MODULE) {
		if (!module)
			answer->status = -ENOENT;
		else
			server_follow(server, request, module, answer);
		return;
	}
	if (!module && (module = server_add(modules))) {
		setup.plan.placement = (uint8_t)request->placement;
		instrument_module_load(&setup, path, request->path,
				       mapped_file_is_program(request->pid, &status), module);
		modules->count++;
	}
	answer->status = !module          ? -ENOMEM
			 : module->status ? module->status
					  : (module->selection.chosen ? 0 : -ENOENT);
	if (module && module->status)
		snprintf(answer->reason, sizeof(answer->reason), "%.500s", module->problem.text);
	if (!answer->status && server->options.write)
		server_follow(server, request, module, answer);
	if (answer->status)
		return;
	answer->function_count = (uint32_t)module->selection.count;
	snprintf(answer->plan, sizeof(answer->plan), "%s", module->plan_file);
	snprintf(answer->modes, sizeof(answer->modes), "%s", module->modes_file);
}

static void server_answer(void *context, const void *request_, void *answer_)
{
	const struct plan_request *request = request_;
	struct plan_server *server = context;
	struct plan_answer *answer = answer_;

	switch (request->kind) {
	case PLAN_REQUEST_MODULE:
	case PLAN_REQUEST_COMMIT:
		server_answer_module(server, request, answer);
		return;
	case PLAN_REQUEST_DONE:
		if (server->options.write)
			server_follow(server, request, NULL, answer);
		return;
	default:
		answer->status = -EINVAL;
	}
}

/* ---- life ---- */

/* Paths of sockets are short (unix(7)): a session whose own is too long, or whose file system has
 * no sockets, gets one in the directory for temporary files. */
static int server_bind_somewhere(struct plan_server *server, int listener)
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
static int server_bind(void *context, int listener)
{
	struct plan_server *server = context;
	int error = server_bind_somewhere(server, listener);

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
	error = request_server_start(&server->requests,
				     &(struct request_server_options){
					     .bind = server_bind,
					     .answer = server_answer,
					     .context = server,
					     .request_size = sizeof(struct plan_request),
					     .request_least = offsetof(struct plan_request, path),
					     .answer_size = sizeof(struct plan_answer),
				     });
	if (error) {
		plan_server_destroy(server);
		return problem_set(problem, error, "cannot serve plans of instrumentation: %s",
				   strerror(-error));
	}
	*ret = server;
	return 0;
}

const char *plan_server_socket(const struct plan_server *server)
{
	return server->socket;
}

void plan_server_stop(struct plan_server *server)
{
	request_server_stop(&server->requests);
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
	for (size_t i = 0; i < PLAN_PLACEMENT_BEHIND; i++) {
		for (size_t j = 0; j < server->modules[i].count; j++) {
			instrument_module_deinit(server->modules[i].list[j]);
			free(server->modules[i].list[j]);
		}
		free(server->modules[i].list);
	}
	free(server);
}

const struct instrument_module *const *plan_server_modules(const struct plan_server *server,
							   size_t *ret_count)
{
	*ret_count = server->modules[PLAN_PLACEMENT_FIRST].count;
	return (const struct instrument_module *const *)server->modules[PLAN_PLACEMENT_FIRST].list;
}
