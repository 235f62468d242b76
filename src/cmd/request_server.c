/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See request_server.h.
 */
#include "cmd/request_server.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SERVER_LISTENER, SERVER_WAKE, SERVER_FIRST_CLIENT };
#define SERVER_CAPACITY 16 /* at first */

/* ---- the thread ---- */

/* False: the client has gone, or says what no client of ours does. */
static bool server_serve(struct request_server *server, int client)
{
	const struct request_server_options *options = &server->options;
	char *request = server->request;
	ssize_t length;

	do
		length = recv(client, request, options->request_size, MSG_DONTWAIT);
	while (length < 0 && errno == EINTR);
	if (length < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return true;
	if (length < (ssize_t)options->request_least)
		return false;
	memset(request + length, 0, options->request_size - (size_t)length);
	request[options->request_size - 1] = '\0';
	memset(server->answer, 0, options->answer_size);
	options->answer(options->context, request, server->answer);
	return send(client, server->answer, options->answer_size, MSG_NOSIGNAL | MSG_DONTWAIT) ==
	       (ssize_t)options->answer_size;
}

static void server_accept(struct request_server *server)
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
	struct request_server *server = argument;

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

static int server_listen(struct request_server *server)
{
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), wake, error;

	if (listener < 0)
		return -errno;
	server->polled[SERVER_LISTENER] = (struct pollfd){listener, POLLIN, 0};
	server->polled_count = SERVER_LISTENER + 1;
	wake = eventfd(0, EFD_CLOEXEC);
	if (wake < 0)
		return -errno;
	server->polled[SERVER_WAKE] = (struct pollfd){wake, POLLIN, 0};
	server->polled_count = SERVER_FIRST_CLIENT;
	error = server->options.bind(server->options.context, listener);
	if (!error && listen(listener, SOMAXCONN))
		error = -errno;
	return error;
}

static int server_start_thread(struct request_server *server)
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

int request_server_start(struct request_server *server,
			 const struct request_server_options *options)
{
	int error = -ENOMEM;

	*server = (struct request_server){.options = *options};
	server->request = malloc(options->request_size);
	server->answer = malloc(options->answer_size);
	server->polled = calloc(SERVER_CAPACITY, sizeof(*server->polled));
	server->polled_capacity = SERVER_CAPACITY;
	if (server->request && server->answer && server->polled)
		error = server_listen(server);
	if (!error)
		error = server_start_thread(server);
	if (error)
		request_server_stop(server);
	return error;
}

void request_server_stop(struct request_server *server)
{
	static const uint64_t one = 1;

	if (server->running) {
		while (write(server->polled[SERVER_WAKE].fd, &one, sizeof(one)) < 0 &&
		       errno == EINTR)
			;
		pthread_join(server->thread, NULL);
	}
	for (size_t i = 0; i < server->polled_count; i++)
		close(server->polled[i].fd);
	free(server->polled);
	free(server->request);
	free(server->answer);
	*server = (struct request_server){0};
}
