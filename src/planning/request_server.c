/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See request_server.h.
 */
#include "planning/request_server.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SERVER_POLL_LISTENER, SERVER_POLL_WAKE_EVENT, SERVER_POLL_FIRST_CLIENT };
#define SERVER_POLLED_CAPACITY_START 16 /* at first */

/* ---- the thread ---- */

/* False: the client has gone, or says what no client of ours does. */
static bool server_answer_client(struct request_server *server, int client)
{
	const struct request_server_options *options = &server->options;
	socklen_t peer_size = sizeof(server->peer);
	char *request = server->request;
	ssize_t length;

	do
		length = recv(client, request, options->request_size, MSG_DONTWAIT);
	while (length < 0 && errno == EINTR);
	if (length < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return true;
	if (length < (ssize_t)options->request_size_least)
		return false;
	if (getsockopt(client, SOL_SOCKET, SO_PEERCRED, &server->peer, &peer_size))
		return false;
	memset(request + length, 0, options->request_size - (size_t)length);
	request[options->request_size - 1] = '\0';
	memset(server->answer, 0, options->answer_size);
	options->answer(options->context, request, server->answer);
	return send(client, server->answer, options->answer_size, MSG_NOSIGNAL | MSG_DONTWAIT) ==
	       (ssize_t)options->answer_size;
}

static void server_accept_client(struct request_server *server)
{
	int client =
		accept4(server->poll_entries[SERVER_POLL_LISTENER].fd, NULL, NULL, SOCK_CLOEXEC);

	if (client < 0)
		return;
	if (server->poll_entry_count == server->poll_entry_capacity) {
		size_t capacity = server->poll_entry_capacity * 2;
		struct pollfd *polled =
			reallocarray(server->poll_entries, capacity, sizeof(*polled));

		if (!polled) {
			close(client);
			return;
		}
		server->poll_entries = polled;
		server->poll_entry_capacity = capacity;
	}
	server->poll_entries[server->poll_entry_count++] = (struct pollfd){client, POLLIN, 0};
}

static void *server_thread_main(void *argument)
{
	struct request_server *server = argument;

	for (;;) {
		size_t count = server->poll_entry_count;

		if (poll(server->poll_entries, count, -1) < 0 && errno != EINTR)
			return NULL;
		if (server->poll_entries[SERVER_POLL_WAKE_EVENT].revents)
			return NULL;
		for (size_t i = count; i-- > SERVER_POLL_FIRST_CLIENT;) {
			if (!server->poll_entries[i].revents ||
			    server_answer_client(server, server->poll_entries[i].fd))
				continue;
			close(server->poll_entries[i].fd);
			server->poll_entries[i] = server->poll_entries[--server->poll_entry_count];
		}
		if (server->poll_entries[SERVER_POLL_LISTENER].revents)
			server_accept_client(server);
	}
}

/* ---- life ---- */

static int server_open_socket(struct request_server *server)
{
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), wake, error;

	if (listener < 0)
		return -errno;
	server->poll_entries[SERVER_POLL_LISTENER] = (struct pollfd){listener, POLLIN, 0};
	server->poll_entry_count = SERVER_POLL_LISTENER + 1;
	wake = eventfd(0, EFD_CLOEXEC);
	if (wake < 0)
		return -errno;
	server->poll_entries[SERVER_POLL_WAKE_EVENT] = (struct pollfd){wake, POLLIN, 0};
	server->poll_entry_count = SERVER_POLL_FIRST_CLIENT;
	error = server->options.bind_socket(server->options.context, listener);
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
	error = pthread_create(&server->thread, NULL, server_thread_main, server);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	server->running = !error;
	return -error;
}

int request_server_open_and_start_thread(struct request_server *server,
					 const struct request_server_options *options)
{
	int error = -ENOMEM;

	*server = (struct request_server){.options = *options};
	server->request = malloc(options->request_size);
	server->answer = malloc(options->answer_size);
	server->poll_entries = calloc(SERVER_POLLED_CAPACITY_START, sizeof(*server->poll_entries));
	server->poll_entry_capacity = SERVER_POLLED_CAPACITY_START;
	if (server->request && server->answer && server->poll_entries)
		error = server_open_socket(server);
	if (!error)
		error = server_start_thread(server);
	if (error)
		request_server_end_thread_and_close(server);
	return error;
}

void request_server_end_thread_and_close(struct request_server *server)
{
	static const uint64_t one = 1;

	if (server->running) {
		while (write(server->poll_entries[SERVER_POLL_WAKE_EVENT].fd, &one, sizeof(one)) <
			       0 &&
		       errno == EINTR)
			;
		pthread_join(server->thread, NULL);
	}
	for (size_t i = 0; i < server->poll_entry_count; i++)
		close(server->poll_entries[i].fd);
	free(server->poll_entries);
	free(server->request);
	free(server->answer);
	*server = (struct request_server){0};
}
