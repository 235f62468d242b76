/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A server with 32 busy threads, and clients that check every answer: for attaching to, again and
 * again. Between requests and behind them the functions of the server call one another in all ways,
 * a timer's handler too. SIGTERM ends it; a lost or wrong answer ends it with 99.
 */
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "check.h"

#define SERVING 16
#define WORKING 16
#define CLIENTS SERVING

static atomic_int stop;
static atomic_ulong ticks, rounds;
static int listener;

__attribute__((noinline)) static uint64_t leaf(uint64_t value)
{
	return value * 3 + 1;
}

__attribute__((noinline)) static uint64_t recurse(uint64_t depth)
{
	return depth < 2 ? depth : recurse(depth - 1) + recurse(depth - 2);
}

__attribute__((noinline)) static int compare(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

__attribute__((noinline)) static uint64_t sort(uint64_t seed)
{
	uint64_t list[16];

	for (int i = 0; i < 16; i++)
		list[i] = seed = seed * 6364136223846793005u + 1442695040888963407u;
	qsort(list, 16, sizeof(*list), compare);
	for (int i = 1; i < 16; i++)
		CHECK(list[i - 1] <= list[i]);
	return list[0];
}

__attribute__((noinline)) static void leap_from(jmp_buf where, int depth)
{
	if (depth)
		leap_from(where, depth - 1);
	else if (atomic_load(&stop) < 2) /* always, which the compiler does not see */
		longjmp(where, 7);
	atomic_fetch_add(&rounds, 1); /* no tail call */
}

__attribute__((noinline)) static int leap(void)
{
	jmp_buf here;
	int value = setjmp(here);

	if (!value)
		leap_from(here, 5);
	return value;
}

/* What is asked for. */
__attribute__((noinline)) static uint64_t answer(uint64_t question)
{
	CHECK(recurse(12) == 144 && leap() == 7);
	sort(question);
	return leaf(question) ^ 0x5a5a;
}

static void on_tick(int signal)
{
	(void)signal;
	atomic_fetch_add(&ticks, leaf(1) / 4);
}

static void on_end(int signal)
{
	(void)signal;
	atomic_store(&stop, 1);
}

static void *serve(void *argument)
{
	int client = accept(listener, NULL, NULL);
	uint64_t question;
	ssize_t length;

	(void)argument;
	CHECK(client >= 0);
	while ((length = recv(client, &question, sizeof(question), MSG_WAITALL)) ==
	       sizeof(question)) {
		question = answer(question);
		CHECK(send(client, &question, sizeof(question), MSG_NOSIGNAL) == sizeof(question));
	}
	CHECK(length == 0);
	close(client);
	return NULL;
}

static void *work(void *argument)
{
	uint64_t value = (uint64_t)(uintptr_t)argument;

	while (!atomic_load(&stop)) {
		CHECK(answer(value) == ((value * 3 + 1) ^ 0x5a5a));
		value++;
		usleep(200);
	}
	return NULL;
}

/* ---- clients, in a process of their own ---- */

static uint16_t port;
static atomic_ulong asked;

static void *ask(void *argument)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = port};
	int server = socket(AF_INET, SOCK_STREAM, 0);
	uint64_t value = (uint64_t)(uintptr_t)argument << 32, got;

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK(!connect(server, (struct sockaddr *)&address, sizeof(address)));
	while (!atomic_load(&stop)) {
		value++;
		CHECK(send(server, &value, sizeof(value), 0) == sizeof(value));
		CHECK(recv(server, &got, sizeof(got), MSG_WAITALL) == sizeof(got));
		CHECK(got == ((value * 3 + 1) ^ 0x5a5a));
		atomic_fetch_add(&asked, 1);
		usleep(200);
	}
	close(server);
	return NULL;
}

static _Noreturn void run_clients(void)
{
	pthread_t threads[CLIENTS];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (uintptr_t i = 0; i < CLIENTS; i++)
		CHECK(!pthread_create(&threads[i], NULL, ask, (void *)i));
	for (int i = 0; i < CLIENTS; i++)
		pthread_join(threads[i], NULL);
	_exit(atomic_load(&asked) ? 0 : 97);
}

static void listen_somewhere(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	socklen_t size = sizeof(address);

	listener = socket(AF_INET, SOCK_STREAM, 0);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK(!bind(listener, (struct sockaddr *)&address, sizeof(address)));
	CHECK(!listen(listener, CLIENTS));
	CHECK(!getsockname(listener, (struct sockaddr *)&address, &size));
	port = address.sin_port;
}

int main(void)
{
	struct sigaction end = {.sa_handler = on_end, .sa_flags = SA_RESTART},
			 tick = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
	struct itimerval timer = {{0, 2000}, {0, 2000}};
	pthread_t threads[SERVING + WORKING];
	int status;
	pid_t clients;

	sigaction(SIGTERM, &end, NULL);
	listen_somewhere();
	clients = fork();
	if (!clients)
		run_clients();
	sigaction(SIGALRM, &tick, NULL);
	for (uintptr_t i = 0; i < SERVING + WORKING; i++)
		CHECK(!pthread_create(&threads[i], NULL, i < SERVING ? serve : work, (void *)i));
	setitimer(ITIMER_REAL, &timer, NULL);
	while (!atomic_load(&stop))
		usleep(10000);
	kill(clients, SIGTERM);
	CHECK(waitpid(clients, &status, 0) == clients);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	for (int i = 0; i < SERVING + WORKING; i++)
		pthread_join(threads[i], NULL);
	return check_passed("busy_server");
}
