/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Changes directory, umask and, as root, the root directory, after which relative paths and paths
 * of before mean something else: results still go where they were to go, and files of the program's
 * have the mode it asked for.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "check.h"

static void *thread_main(void *argument)
{
	check_burn_ms(40);
	return argument;
}

static void work(void)
{
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, thread_main, NULL) == 0);
	check_burn_ms(30);
	pthread_join(thread, NULL);
}

int main(void)
{
	char directory[] = "/tmp/directories-XXXXXX";
	struct stat info;
	int fd, status;
	pid_t child;

	CHECK(mkdtemp(directory) && chdir(directory) == 0);
	umask(0777);
	work();
	umask(0);
	fd = open("here", O_CREAT | O_EXCL | O_WRONLY, 0666);
	CHECK(fd >= 0 && fstat(fd, &info) == 0 && (info.st_mode & 07777) == 0666);
	close(fd);
	CHECK(unlink("here") == 0);
	if (getuid() == 0)
		CHECK(chroot(directory) == 0 && chdir("/") == 0);
	work();
	child = fork();
	if (child == 0) {
		work();
		exit(0);
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
	/* Nothing of the profiler's may lie here. */
	CHECK(getuid() == 0 || (chdir("/") == 0 && rmdir(directory) == 0));
	return check_passed("directories");
}
