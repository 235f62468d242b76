/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A thread that answers what the processes of a session ask through a SOCK_SEQPACKET socket, one
 * message each way at a time, one request after the other. Used by the servers of plans and of
 * causal maps, which say what is answered.
 */
#ifndef KYMO_PLANNING_REQUEST_SERVER_H
#define KYMO_PLANNING_REQUEST_SERVER_H

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

struct request_server_options {
	/* Binds the socket, such that nobody but this user may ask. 0 or negative errno. */
	int (*bind_socket)(void *context, int listener);
	/* On the server's thread; the answer is zeroed. */
	void (*answer)(void *context, const void *request, void *answer);
	void *context;
	/* Requests end with a string (a path), which may be cut where it ends: `request_size_least`
	 * is what comes before it. It is ended in any case. */
	size_t request_size, request_size_least, answer_size;
};

struct request_server {
	struct request_server_options options;
	pthread_t thread;
	bool running;
	struct pollfd *poll_entries; /* the listener, the wake-up, then clients */
	size_t poll_entry_count, poll_entry_capacity;
	void *request, *answer;
	struct ucred peer; /* who asks what is being answered: pid and user that connected */
};

/* Starts the thread; it takes no signals. 0 or negative errno, and the server is as stopped. */
int request_server_open_and_start_thread(struct request_server *server,
					 const struct request_server_options *options);
/* Ends the thread and closes everything; removing the socket is the caller's. A zeroed server may
 * be stopped, and a stopped one again. */
void request_server_end_thread_and_close(struct request_server *server);

#endif
