/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See map_request.h. Paths of sockets are short (unix(7)), those of sessions are not: the directory
 * is opened, and named by its descriptor.
 */
#include "causal/map_request.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include "common/syscalls.h"
#include "core/base/text.h"

static long connect_to_socket_in_directory(long fd, long directory)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct text_buffer text = text_buffer_init(address.sun_path, sizeof(address.sun_path));

	/* of the thread: its descriptor table is not the process's */
	text_append_string(&text, "/proc/thread-self/fd/");
	text_append_unsigned(&text, (uint64_t)directory);
	text_append_string(&text, "/socket");
	return sys_call3(SYS_connect, fd, (long)&address, sizeof(address));
}

int map_request_connect(const char *path)
{
	long directory = sys_open(path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0), fd, error;

	if (directory < 0)
		return (int)directory;
	fd = sys_call3(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	error = fd < 0 ? fd : connect_to_socket_in_directory(fd, directory);
	sys_close((int)directory);
	if (!error)
		return (int)fd;
	if (fd >= 0)
		sys_close((int)fd);
	return (int)error;
}

int map_request_send(int fd, const struct causal_request *request)
{
	long size = sys_call6(SYS_sendto, fd, (long)request, sizeof(*request),
			      MSG_NOSIGNAL | MSG_DONTWAIT, 0, 0);

	return size == (long)sizeof(*request) ? 0 : size < 0 ? (int)size : -EPIPE;
}

int map_request_receive_answer(int fd, struct causal_answer *answer, uint64_t timeout_ns)
{
	struct timespec timeout = {.tv_nsec = (long)timeout_ns};
	struct pollfd polled = {fd, POLLIN, 0};
	long size;

	sys_call6(SYS_ppoll, (long)&polled, 1, (long)&timeout, 0, 0, 0);
	size = sys_call6(SYS_recvfrom, fd, (long)answer, sizeof(*answer), MSG_DONTWAIT, 0, 0);
	if (size == -EINTR)
		return -EAGAIN;
	if (size != (long)sizeof(*answer))
		return size < 0 ? (int)size : -EPIPE;
	answer->map[sizeof(answer->map) - 1] = 0;
	if (answer->point_count > CAUSAL_ANSWER_POINTS)
		answer->point_count = CAUSAL_ANSWER_POINTS;
	for (uint32_t i = 0; i < answer->point_count; i++)
		answer->points[i].name[CAUSAL_NAME_SIZE - 1] = 0;
	return 0;
}
