/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See request.h.
 */
#include "instrument/request.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "common/syscalls.h"
#include "core/base/text.h"

#define DESCRIPTOR_NUMBER_LEAST 500 /* select(2) and shells use low numbers */

int request_connect(const char *socket_path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct text_buffer text = text_buffer_init(address.sun_path, sizeof(address.sun_path));
	long fd = sys_call3(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), high, error;

	if (fd < 0)
		return (int)fd;
	high = sys_call3(SYS_fcntl, fd, F_DUPFD_CLOEXEC, DESCRIPTOR_NUMBER_LEAST);
	if (high >= 0) {
		sys_close((int)fd);
		fd = high;
	}
	text_append_string(&text, socket_path);
	error = sys_call3(SYS_connect, fd, (long)&address, sizeof(address));
	if (error < 0) {
		sys_close((int)fd);
		return (int)error;
	}
	return (int)fd;
}

int request_send_and_receive(int fd, const struct plan_request *request, struct plan_answer *answer)
{
	long size;

	do {
		size = sys_call6(SYS_sendto, fd, (long)request, sizeof(*request), MSG_NOSIGNAL, 0,
				 0);
	} while (size == -EINTR);
	if (size != (long)sizeof(*request))
		return size < 0 ? (int)size : -EPIPE;
	do {
		size = sys_call6(SYS_recvfrom, fd, (long)answer, sizeof(*answer), 0, 0, 0);
	} while (size == -EINTR);
	if (size != (long)sizeof(*answer))
		return size < 0 ? (int)size : -EPIPE;
	answer->plan[sizeof(answer->plan) - 1] = answer->modes[sizeof(answer->modes) - 1] = 0;
	answer->reason[sizeof(answer->reason) - 1] = 0;
	return 0;
}

void request_disconnect(int fd)
{
	sys_close(fd);
}
