/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See ask_outside.h.
 */
#include "libkymo/ask_outside.h"

#include <sys/time.h>

#include "common/outside_request.h"
#include "common/syscalls.h"

static bool ask(const char *spool_directory, const struct outside_request *request)
{
	long file = sys_call3(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct timeval patience = {.tv_sec = 1};
	struct sockaddr_un address;
	uint8_t answer = 0;
	uint32_t size;

	if (file < 0)
		return false;
	size = outside_request_make_address(spool_directory, &address);
	sys_call6(SYS_setsockopt, file, SOL_SOCKET, SO_RCVTIMEO, (long)&patience, sizeof(patience),
		  0);
	if (sys_call3(SYS_connect, file, (long)&address, size) ||
	    sys_call6(SYS_sendto, file, (long)request, sizeof(*request), MSG_NOSIGNAL, 0, 0) !=
		    (long)sizeof(*request) ||
	    sys_call6(SYS_recvfrom, file, (long)&answer, 1, 0, 0, 0) != 1)
		answer = 0;
	sys_close((int)file);
	return answer == 1;
}

bool ask_outside_for_exec(const char *spool_directory)
{
	struct outside_request request = {OUTSIDE_REQUEST_EXEC, (uint32_t)sys_call0(SYS_gettid)};

	return ask(spool_directory, &request);
}

bool ask_outside_for_child(const char *spool_directory, int pid)
{
	struct outside_request request = {OUTSIDE_REQUEST_CHILD, (uint32_t)pid};

	return ask(spool_directory, &request);
}

bool ask_outside_if_there(const char *spool_directory)
{
	struct outside_request request = {OUTSIDE_REQUEST_NOTHING, 0};

	return ask(spool_directory, &request);
}
