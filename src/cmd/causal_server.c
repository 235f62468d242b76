/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See causal_server.h: the socket and its thread. What is answered is made in causal_modules.c.
 */
#include "cmd/causal_server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "cmd/causal_modules.h"

enum { SERVER_LISTENER, SERVER_WAKE, SERVER_FIRST_CLIENT };

struct causal_server {
	struct causal_modules modules;
	char *socket;       /* what processes connect to */
	char elsewhere[64]; /* where it really is, when the session has no room for one; or "" */
	pthread_t thread;
	bool running;
	struct pollfd *polled; /* the listener, the wake-up, then clients */
	size_t polled_count, polled_capacity;
};

/* ---- the thread ---- */

/* False: the client has gone, or says what no client of ours does. */
static bool server_serve(struct causal_server *server, int client)
{
	static struct causal_request request; /* one thread; 4 KiB and 8 KiB are much for a stack */
	static struct causal_answer answer;
	ssize_t length;

	do
		length = recv(client, &request, sizeof(request), MSG_DONTWAIT);
	while (length < 0 && errno == EINTR);
	if (length < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return true;
	if (length < (ssize_t)offsetof(struct causal_request, path))
		return false;
	memset((char *)&request + length, 0, sizeof(request) - (size_t)length);
	request.path[sizeof(request.path) - 1] = '\0';
	memset(&answer, 0, sizeof(answer));
	if (request.kind == CAUSAL_REQUEST_MAP)
		causal_modules_answer(&server->modules, &request, &answer);
	else
		answer.status = -EINVAL;
	return send(client, &answer, sizeof(answer), MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(answer);
}

static void server_accept(struct causal_server *server)
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
	struct causal_server *server = argument;

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

static int server_listen(struct causal_server *server, const char *directory)
{
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int wake = eventfd(0, EFD_CLOEXEC), error;

	server->polled = calloc(16, sizeof(*server->polled));
	if (listener < 0 || wake < 0 || !server->polled ||
	    asprintf(&server->socket, "%s/socket", directory) < 0) {
		error = listener < 0 || wake < 0 ? -errno : -ENOMEM;
		server->socket = NULL;
		if (listener >= 0)
			close(listener);
		if (wake >= 0)
			close(wake);
		return error;
	}
	server->polled_capacity = 16;
	server->polled[SERVER_LISTENER] = (struct pollfd){listener, POLLIN, 0};
	server->polled[SERVER_WAKE] = (struct pollfd){wake, POLLIN, 0};
	server->polled_count = SERVER_FIRST_CLIENT;
	error = server_bind_here(listener, directory);
	if (error)
		error = server_bind_elsewhere(server, listener);
	/* nobody but this user may ask: files are read, whatever a request names */
	if (!error && (chmod(server->socket, 0600) || listen(listener, SOMAXCONN)))
		error = -errno;
	return error;
}

static int server_start_thread(struct causal_server *server)
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
	error = server_listen(server, options->directory);
	if (!error)
		error = server_start_thread(server);
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
	static const uint64_t one = 1;
	char *slash;

	if (server->running) {
		while (write(server->polled[SERVER_WAKE].fd, &one, sizeof(one)) < 0 &&
		       errno == EINTR)
			;
		pthread_join(server->thread, NULL);
		server->running = false;
	}
	for (size_t i = 0; i < server->polled_count; i++)
		close(server->polled[i].fd);
	server->polled_count = 0;
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
	free(server->polled);
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
