/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * An event loop behind epoll(7) that answers two clients over sockets: its own work decides, not
 * that of the clients, who have time to spare.
 */
#include <errno.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "workload.h"

#define CLIENTS 2

WORK(parse_request)
WORK(make_answer)
WORK(use_answer)

static int sockets[CLIENTS][2];
static double length;

static void *run_client(void *argument)
{
	int socket = *(const int *)argument;
	char text[64] = "request";
	while (send(socket, text, sizeof(text), MSG_NOSIGNAL) == sizeof(text) &&
	       read(socket, text, sizeof(text)) == sizeof(text))
		use_answer(0.5 * length);
	return argument;
}

static void answer(int socket)
{
	static struct workload_point answered = {.name = "answered"};
	char text[64];
	CHECK(read(socket, text, sizeof(text)) == sizeof(text));
	parse_request(0.6 * length);
	make_answer(0.4 * length);
	workload_visit(&answered);
	CHECK(write(socket, text, sizeof(text)) == sizeof(text));
}

static void serve(int epoll)
{
	struct epoll_event events[CLIENTS];
	while (workload_running()) {
		int count = epoll_wait(epoll, events, CLIENTS, -1);
		CHECK(count >= 0 || errno == EINTR);
		for (int i = 0; i < count; i++)
			answer(events[i].data.fd);
	}
}

int main(int argc, char **argv)
{
	pthread_t clients[CLIENTS];
	workload_start(argc, argv);
	length = workload_number("length", 800);
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	for (unsigned i = 0; i < CLIENTS; i++) {
		CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets[i]) == 0);
		struct epoll_event event = {.events = EPOLLIN, .data = {.fd = sockets[i][0]}};
		CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, sockets[i][0], &event) == 0);
		CHECK(pthread_create(&clients[i], NULL, run_client, &sockets[i][1]) == 0);
	}
	serve(epoll);
	for (unsigned i = 0; i < CLIENTS; i++) {
		shutdown(sockets[i][0], SHUT_RDWR);
		CHECK(pthread_join(clients[i], NULL) == 0);
	}
	return workload_finish();
}
