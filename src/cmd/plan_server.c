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
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include "binary/elf.h"

enum { SERVER_LISTENER, SERVER_WAKE, SERVER_FIRST_CLIENT };

struct module_list {
	struct instrument_module **list;
	size_t count, capacity;
};

struct plan_server {
	struct plan_server_options options;
	char socket[sizeof(((struct sockaddr_un *)0)->sun_path)];
	char directory[32]; /* of the socket where the session's path is too long; or "" */
	pthread_t thread;
	bool running;
	struct pollfd *polled; /* the listener, the wake-up, then clients */
	size_t polled_count, polled_capacity;
	/* By where the arena lies. Those behind the first are the same modules once more, for
	 * processes that have something else there. */
	struct module_list modules[PLAN_PLACEMENT_BEHIND];
};

/* ---- finding the file ---- */

static bool server_same_build(const char *path, const struct plan_request *request)
{
	struct elf_file *file;
	bool same;

	if (!request->build_id_size || request->build_id_size > sizeof(request->build_id) ||
	    elf_open(path, &file, NULL))
		return false;
	same = file->build_id_size == request->build_id_size &&
	       !memcmp(file->build_id, request->build_id, request->build_id_size);
	elf_close(file);
	return same;
}

/* /proc/PID/maps and stat(2) name devices differently on some file systems (btrfs, overlayfs), so a
 * build-id is good enough. */
static bool server_is_mapped(const char *path, const struct plan_request *request,
			     struct stat *status)
{
	uint64_t device;

	if (stat(path, status) || !S_ISREG(status->st_mode))
		return false;
	device = (uint64_t)major(status->st_dev) << 20 | minor(status->st_dev);
	if (status->st_ino == request->inode &&
	    (device == request->device || status->st_dev == request->device))
		return true;
	return server_same_build(path, request);
}

/* The path as kymo can open it: its own, or in the process's root directory. */
static int server_find_file(const struct plan_request *request, char *ret, size_t size,
			    struct stat *status, struct problem *problem)
{
	snprintf(ret, size, "%s", request->path);
	if (request->path[0] == '/' && server_is_mapped(ret, request, status))
		return 0;
	snprintf(ret, size, "/proc/%u/root%s", request->pid, request->path);
	if (request->path[0] == '/' && server_is_mapped(ret, request, status))
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

/* Whether the file is the program itself: what /proc/PID/exe leads to. */
static bool server_is_program(const struct plan_request *request, const struct stat *status)
{
	struct stat program;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/exe", request->pid);
	return !stat(path, &program) && program.st_dev == status->st_dev &&
	       program.st_ino == status->st_ino;
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
				       server_is_program(request, &status), module);
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

static void server_answer(struct plan_server *server, const struct plan_request *request,
			  struct plan_answer *answer)
{
	memset(answer, 0, sizeof(*answer));
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

/* ---- the thread ---- */

/* False: the client has gone, or says what no client of ours does. */
static bool server_serve(struct plan_server *server, int client)
{
	static struct plan_request request; /* one thread; 4 KiB and 9 KiB are much for a stack */
	static struct plan_answer answer;
	ssize_t length;

	do
		length = recv(client, &request, sizeof(request), MSG_DONTWAIT);
	while (length < 0 && errno == EINTR);
	if (length < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return true;
	if (length < (ssize_t)offsetof(struct plan_request, path))
		return false;
	memset((char *)&request + length, 0, sizeof(request) - (size_t)length);
	request.path[sizeof(request.path) - 1] = '\0';
	server_answer(server, &request, &answer);
	return send(client, &answer, sizeof(answer), MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(answer);
}

static void server_accept(struct plan_server *server)
{
	int client = accept4(server->polled[SERVER_LISTENER].fd, NULL, NULL, SOCK_CLOEXEC);

	if (client < 0)
		return;
	if (server->polled_count == server->polled_capacity) {
		size_t capacity = server->polled_capacity * 2;
		struct pollfd *polled = reallocarray(server->polled, capacity, sizeof(*polled));

		if (!polled) {
			close(client);
			return;
		}
		server->polled = polled;
		server->polled_capacity = capacity;
	}
	server->polled[server->polled_count++] = (struct pollfd){client, POLLIN, 0};
}

static void *server_run(void *argument)
{
	struct plan_server *server = argument;

	for (;;) {
		size_t count = server->polled_count;

		if (poll(server->polled, count, -1) < 0 && errno != EINTR)
			return NULL;
		if (server->polled[SERVER_WAKE].revents)
			return NULL;
		for (size_t i = count; i-- > SERVER_FIRST_CLIENT;) {
			if (!server->polled[i].revents ||
			    server_serve(server, server->polled[i].fd))
				continue;
			close(server->polled[i].fd);
			server->polled[i] = server->polled[--server->polled_count];
		}
		if (server->polled[SERVER_LISTENER].revents)
			server_accept(server);
	}
}

/* ---- life ---- */

/* Paths of sockets are short (unix(7)): a session whose own is too long, or whose file system has
 * no sockets, gets one in the directory for temporary files. */
static int server_bind(struct plan_server *server, int listener)
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

static int server_listen(struct plan_server *server)
{
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), error;

	server->polled = calloc(16, sizeof(*server->polled));
	if (listener < 0 || !server->polled) {
		error = listener < 0 ? -errno : -ENOMEM;
		if (listener >= 0)
			close(listener);
		return error;
	}
	server->polled_capacity = 16;
	server->polled[SERVER_LISTENER] = (struct pollfd){listener, POLLIN, 0};
	server->polled[SERVER_WAKE] = (struct pollfd){eventfd(0, EFD_CLOEXEC), POLLIN, 0};
	server->polled_count = SERVER_FIRST_CLIENT;
	if (server->polled[SERVER_WAKE].fd < 0)
		return -errno;
	error = server_bind(server, listener);
	if (error)
		return error;
	/* nobody but this user may ask: plans are made from whatever file a request names */
	if (chmod(server->socket, 0600) || listen(listener, SOMAXCONN))
		return -errno;
	return 0;
}

static int server_start_thread(struct plan_server *server)
{
	sigset_t all, before;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&server->thread, NULL, server_run, server);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	server->running = !error;
	return -error;
}

int plan_server_start(const struct plan_server_options *options, struct plan_server **ret,
		      struct problem *problem)
{
	struct plan_server *server = calloc(1, sizeof(*server));
	int error;

	if (!server)
		return problem_set(problem, -ENOMEM, "out of memory");
	server->options = *options;
	error = server_listen(server);
	if (!error)
		error = server_start_thread(server);
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
	static const uint64_t one = 1;

	if (server->running) {
		while (write(server->polled[SERVER_WAKE].fd, &one, sizeof(one)) < 0 &&
		       errno == EINTR)
			;
		pthread_join(server->thread, NULL);
		server->running = false;
	}
	for (size_t i = 0; i < server->polled_count; i++) {
		if (server->polled[i].fd >= 0)
			close(server->polled[i].fd);
	}
	server->polled_count = 0;
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
	free(server->polled);
	free(server);
}

const struct instrument_module *const *plan_server_modules(const struct plan_server *server,
							   size_t *ret_count)
{
	*ret_count = server->modules[PLAN_PLACEMENT_FIRST].count;
	return (const struct instrument_module *const *)server->modules[PLAN_PLACEMENT_FIRST].list;
}
