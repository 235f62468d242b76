/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See client.h.
 */
#include "planning/client.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "inject/process.h"
#include "kymo/plan.h"

static int client_connect_to_plan_server(const char *socket_path, struct problem *problem)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int client = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", socket_path);
	if (client >= 0 && !connect(client, (struct sockaddr *)&address, sizeof(address)))
		return client;
	if (client >= 0)
		close(client);
	return problem_set(problem, -errno, "cannot ask for plans at '%s': %s", socket_path,
			   strerror(errno));
}

static bool is_file_in_earlier_mapping(const struct process_maps *maps, size_t index)
{
	for (size_t i = 0; i < index; i++) {
		if (maps->list[i].executable && maps->list[i].inode == maps->list[index].inode &&
		    maps->list[i].device == maps->list[index].device)
			return true;
	}
	return false;
}

static bool client_request_plan(int client, const struct process_mapping *mapping, pid_t pid)
{
	static struct plan_request request;
	static struct plan_answer answer;
	struct stat status;

	request = (struct plan_request){.kind = PLAN_REQUEST_MODULE, .pid = (uint32_t)pid};
	request.device = mapping->device;
	request.inode = mapping->inode;
	/* some file systems have another device in /proc */
	if (!stat(mapping->path, &status) && status.st_ino == mapping->inode)
		request.device = status.st_dev;
	snprintf(request.path, sizeof(request.path), "%s", mapping->path);
	return send(client, &request, sizeof(request), MSG_NOSIGNAL) == sizeof(request) &&
	       recv(client, &answer, sizeof(answer), 0) == sizeof(answer);
}

int plan_client_request_plans_of_process(const char *socket, pid_t pid, struct problem *problem)
{
	int client = client_connect_to_plan_server(socket, problem), error;
	struct process_maps maps;

	if (client < 0)
		return client;
	error = process_maps_read(pid, &maps);
	if (error) {
		close(client);
		return problem_set(problem, -ESRCH, "process %d has ended", (int)pid);
	}
	for (size_t i = 0; !error && i < maps.count; i++) {
		const struct process_mapping *mapping = &maps.list[i];

		if (mapping->executable && mapping->path[0] == '/' &&
		    !is_file_in_earlier_mapping(&maps, i) &&
		    !client_request_plan(client, mapping, pid))
			error = problem_set(problem, -EPIPE, "the server of plans has ended");
	}
	process_maps_free(&maps);
	close(client);
	return error;
}
