/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A server and its client over TCP, in threads: 100 requests, each answered in two parts. What the
 * client writes are no answers.
 */
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>

#include "check.h"

#define REQUESTS 100

static struct sockaddr_in address = {.sin_family = AF_INET};

static void *ask(void *argument)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char answer[2];

	CHECK(!connect(fd, (void *)&address, sizeof(address)));
	for (int i = 0; i < REQUESTS; i++) {
		CHECK(send(fd, "?", 1, 0) == 1);
		CHECK(recv(fd, answer, 2, MSG_WAITALL) == 2);
		CHECK(answer[0] == 'o' && answer[1] == 'k');
	}
	close(fd);
	return argument;
}

int main(void)
{
	int server = socket(AF_INET, SOCK_STREAM, 0), fd;
	socklen_t size = sizeof(address);
	pthread_t client;
	char question;

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK(!bind(server, (void *)&address, sizeof(address)) && !listen(server, 1));
	CHECK(!getsockname(server, (void *)&address, &size));
	CHECK(!pthread_create(&client, NULL, ask, NULL));
	fd = accept(server, NULL, NULL);
	CHECK(fd >= 0);
	while (read(fd, &question, 1) == 1) {
		CHECK(write(fd, "o", 1) == 1);
		CHECK(write(fd, "k", 1) == 1);
	}
	CHECK(!pthread_join(client, NULL));
	return check_passed("causal_requests");
}
