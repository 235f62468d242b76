/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Closed loop: clients that ask a server, wait for the answer, think, and ask again. Latency is
 * from asking to the answer; what the server does after answering delays whoever asks next.
 */
#include <pthread.h>

#include "workload.h"

#define CLIENTS 2

WORK(think)
WORK(serve)
WORK(write_log)

struct client {
	pthread_t thread;
	bool asks, answered;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t asked = PTHREAD_COND_INITIALIZER, answered = PTHREAD_COND_INITIALIZER;
static struct client clients[CLIENTS];
static double length;
static unsigned active = CLIENTS;

static void ask(struct client *client)
{
	pthread_mutex_lock(&lock);
	client->asks = true;
	client->answered = false;
	pthread_cond_signal(&asked);
	while (!client->answered)
		pthread_cond_wait(&answered, &lock);
	pthread_mutex_unlock(&lock);
}

static void *run_client(void *argument)
{
	static struct workload_point request = {.name = "request"};
	while (workload_running()) {
		think(0.6 * length);
		uint64_t arrival = workload_begin(&request);
		ask(argument);
		workload_end(&request, arrival);
	}
	pthread_mutex_lock(&lock);
	active--;
	pthread_cond_signal(&asked);
	pthread_mutex_unlock(&lock);
	return argument;
}

/* Whose turn it is: in turns, so that none starves. */
static struct client *next_client(void)
{
	static unsigned last;
	struct client *found = NULL;
	pthread_mutex_lock(&lock);
	while (active && !found) {
		for (unsigned i = 1; i <= CLIENTS && !found; i++) {
			struct client *client = &clients[(last + i) % CLIENTS];
			found = client->asks ? client : NULL;
		}
		if (!found)
			pthread_cond_wait(&asked, &lock);
	}
	if (found) {
		found->asks = false;
		last = (unsigned)(found - clients);
	}
	pthread_mutex_unlock(&lock);
	return found;
}

static void run_server(void)
{
	struct client *client = next_client();
	for (; client; client = next_client()) {
		serve(0.7 * length);
		pthread_mutex_lock(&lock);
		client->answered = true;
		pthread_cond_broadcast(&answered);
		pthread_mutex_unlock(&lock);
		write_log(0.3 * length);
	}
}

int main(int argc, char **argv)
{
	workload_start(argc, argv);
	length = workload_number("length", 1000);
	for (unsigned i = 0; i < CLIENTS; i++)
		CHECK(pthread_create(&clients[i].thread, NULL, run_client, &clients[i]) == 0);
	run_server();
	for (unsigned i = 0; i < CLIENTS; i++)
		CHECK(pthread_join(clients[i].thread, NULL) == 0);
	return workload_finish();
}
