/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Work between waits that no speedup of the program shortens: sleeps, time-outs of poll(2) and
 * answers of another process that takes its time.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "workload.h"

WORK(compute)
WORK(format)

static int to_device[2], from_device[2];

static void sleep_us(long microseconds)
{
	struct timespec pause = {.tv_nsec = microseconds * 1000};
	nanosleep(&pause, NULL);
}

static void wait_sleeping(void)
{
	sleep_us(1000);
}

static void wait_in_poll(void)
{
	struct pollfd nothing = {.fd = from_device[0], .events = POLLIN};
	CHECK(poll(&nothing, 1, 1) == 0);
}

static void wait_for_device(void)
{
	char byte = 0;
	CHECK(write(to_device[1], &byte, 1) == 1);
	while (read(from_device[0], &byte, 1) != 1)
		CHECK(errno == EINTR);
}

/* A disk, say. It sleeps: nothing that is sped up makes it faster. */
static void be_device(void)
{
	char byte;
	close(to_device[1]);
	while (read(to_device[0], &byte, 1) == 1) {
		sleep_us(1000);
		CHECK(write(from_device[1], &byte, 1) == 1);
	}
	_exit(0);
}

int main(int argc, char **argv)
{
	static const char *const kinds[] = {"sleep", "poll", "device", NULL};
	static void (*const waits[])(void) = {wait_sleeping, wait_in_poll, wait_for_device};
	static struct workload_point done = {.name = "done"};
	workload_start(argc, argv);
	double length = workload_number("length", 1000);
	void (*wait_for_it)(void) = waits[workload_choice("kind", kinds)];
	CHECK(pipe(to_device) == 0 && pipe(from_device) == 0);
	pid_t device = fork();
	CHECK(device >= 0);
	if (!device)
		be_device();
	int file = open("/dev/null", O_WRONLY | O_CLOEXEC);
	while (workload_running()) {
		compute(0.7 * length);
		wait_for_it();
		format(0.3 * length);
		CHECK(write(file, "formatted\n", 10) == 10);
		workload_visit(&done);
	}
	close(to_device[1]);
	CHECK(waitpid(device, NULL, 0) == device);
	return workload_finish();
}
