/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See server.h: the socket. What is answered is made in modules.c.
 */
#include "experiments/server.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "experiments/modules.h"
#include "planning/request_server.h"

struct causal_server {
	struct causal_modules modules;
	char *socket;              /* what processes connect to */
	char real_socket_path[64]; /* where it really is, when the session has no room for one; or
				      "" */
	struct request_server request_server;
};

static void server_answer_request(void *context, const void *request_, void *answer_)
{
	const struct causal_request *request = request_;
	struct causal_server *server = context;
	struct causal_answer *answer = answer_;

	if (request->kind == CAUSAL_REQUEST_MAP)
		causal_modules_answer_request(&server->modules, request, answer);
	else
		answer->status = -EINVAL;
}

/* ---- life ---- */

/* In the session; its path may be too long for a socket (unix(7)), its directory's number is not.
 */
static int server_bind_socket_in_session(int listener, const char *directory)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int at = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC), error = 0;

	if (at < 0)
		return -errno;
	unlinkat(at, "socket", 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/socket", at);
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)))
		error = -errno;
	close(at);
	return error;
}

/* On a file system that has no sockets: elsewhere, and a link leads there. */
static int server_bind_socket_in_tmp(struct causal_server *server, int listener)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char directory[] = "/tmp/kymo-XXXXXX";

	if (!mkdtemp(directory))
		return -errno;
	snprintf(server->real_socket_path, sizeof(server->real_socket_path), "%s/socket",
		 directory);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", server->real_socket_path);
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) ||
	    symlink(server->real_socket_path, server->socket))
		return -errno;
	return 0;
}

/* Nobody but this user may ask: files are read, whatever a request names. */
static int server_bind_socket(void *context, int listener)
{
	struct causal_server *server = context;
	int error = server_bind_socket_in_session(listener, server->modules.directory);

	if (error)
		error = server_bind_socket_in_tmp(server, listener);
	return error ? error : chmod(server->socket, 0600) ? -errno : 0;
}

int causal_server_start(const struct causal_server_options *options, struct causal_server **ret,
			struct problem *problem)
{
	struct causal_server *server = calloc(1, sizeof(*server));
	int error;

	if (!server)
		return problem_set(problem, -ENOMEM, "out of memory");
	error = causal_modules_init(&server->modules, options, problem);
	if (error) {
		causal_server_destroy(server);
		return error;
	}
	if (asprintf(&server->socket, "%s/socket", options->directory) < 0)
		server->socket = NULL;
	error = server->socket ? request_server_open_and_start_thread(
					 &server->request_server,
					 &(struct request_server_options){
						 .bind_socket = server_bind_socket,
						 .answer = server_answer_request,
						 .context = server,
						 .request_size = sizeof(struct causal_request),
						 .request_size_least =
							 offsetof(struct causal_request, path),
						 .answer_size = sizeof(struct causal_answer),
					 })
			       : -ENOMEM;
	if (error) {
		causal_server_destroy(server);
		return problem_set(problem, error, "cannot serve causal maps in '%s': %s",
				   options->directory, strerror(-error));
	}
	*ret = server;
	return 0;
}

int causal_server_make_program_map(struct causal_server *server, const char *program,
				   struct problem *problem)
{
	return causal_modules_make_program_map(&server->modules, program, problem);
}

void causal_server_stop(struct causal_server *server)
{
	char *slash;

	request_server_end_thread_and_close(&server->request_server);
	if (server->socket)
		unlink(server->socket);
	if (server->real_socket_path[0]) {
		unlink(server->real_socket_path);
		slash = strrchr(server->real_socket_path, '/');
		*slash = '\0';
		rmdir(server->real_socket_path);
		server->real_socket_path[0] = '\0';
	}
}

void causal_server_destroy(struct causal_server *server)
{
	if (!server)
		return;
	causal_server_stop(server);
	causal_modules_deinit(&server->modules);
	free(server->socket);
	free(server);
}

struct causal_targets *causal_server_get_targets(struct causal_server *server)
{
	return server->modules.targets;
}

unsigned causal_server_count_modules_with_place(struct causal_server *server, size_t place)
{
	return causal_modules_count_having_place(&server->modules, place);
}
