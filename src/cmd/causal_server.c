/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See causal_server.h: the socket. What is answered is made in causal_modules.c.
 */
#include "cmd/causal_server.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "cmd/causal_modules.h"
#include "cmd/request_server.h"

struct causal_server {
	struct causal_modules modules;
	char *socket;       /* what processes connect to */
	char elsewhere[64]; /* where it really is, when the session has no room for one; or "" */
	struct request_server requests;
};

static void server_answer(void *context, const void *request_, void *answer_)
{
	const struct causal_request *request = request_;
	struct causal_server *server = context;
	struct causal_answer *answer = answer_;

	if (request->kind == CAUSAL_REQUEST_MAP)
		causal_modules_answer(&server->modules, request, answer);
	else
		answer->status = -EINVAL;
}

/* ---- life ---- */

/* In the session; its path may be too long for a socket (unix(7)), its directory's number is not.
 */
static int server_bind_here(int listener, const char *directory)
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
static int server_bind_elsewhere(struct causal_server *server, int listener)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char directory[] = "/tmp/kymo-XXXXXX";

	if (!mkdtemp(directory))
		return -errno;
	snprintf(server->elsewhere, sizeof(server->elsewhere), "%s/socket", directory);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", server->elsewhere);
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) ||
	    symlink(server->elsewhere, server->socket))
		return -errno;
	return 0;
}

/* Nobody but this user may ask: files are read, whatever a request names. */
static int server_bind(void *context, int listener)
{
	struct causal_server *server = context;
	int error = server_bind_here(listener, server->modules.directory);

	if (error)
		error = server_bind_elsewhere(server, listener);
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
	error = server->socket
			? request_server_start(
				  &server->requests,
				  &(struct request_server_options){
					  .bind = server_bind,
					  .answer = server_answer,
					  .context = server,
					  .request_size = sizeof(struct causal_request),
					  .request_least = offsetof(struct causal_request, path),
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

int causal_server_prepare(struct causal_server *server, const char *program,
			  struct problem *problem)
{
	return causal_modules_prepare(&server->modules, program, problem);
}

void causal_server_stop(struct causal_server *server)
{
	char *slash;

	request_server_stop(&server->requests);
	if (server->socket)
		unlink(server->socket);
	if (server->elsewhere[0]) {
		unlink(server->elsewhere);
		slash = strrchr(server->elsewhere, '/');
		*slash = '\0';
		rmdir(server->elsewhere);
		server->elsewhere[0] = '\0';
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

struct causal_targets *causal_server_targets(struct causal_server *server)
{
	return server->modules.targets;
}

unsigned causal_server_found(struct causal_server *server, size_t place)
{
	return causal_modules_found(&server->modules, place);
}
