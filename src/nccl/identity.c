/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See identity.h. A process number is unique in its PID namespace, and a namespace's inode on its
 * machine (namespaces(7)), so the two together are. The container's own id is what people know: 64
 * hexadecimal digits, in the path of its control group or, where that is hidden by a namespace, of
 * what is mounted on its /etc/hostname.
 */
#include "nccl/identity.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "nccl/store.h"

#define INITIAL_PID_NAMESPACE_INODE 0xEFFFFFFCu /* PROC_PID_INIT_INO of Linux's proc_ns.h */
#define CONTAINER_ID_DIGITS         64
#define CONTAINER_ID_SHOWN_DIGITS   12 /* as docker ps and crictl ps show them */

static void append_label(char *text, size_t size, const char *name, const char *value)
{
	size_t length = strlen(text);

	if (!*value || length + strlen(name) + 2 * strlen(value) + 5 > size)
		return;
	length += (size_t)snprintf(text + length, size - length, "%s=\"", name);
	for (; *value; value++)
		length += identity_escape_label_character(*value, text + length);
	memcpy(text + length, "\",", 3);
}

static void append_number_label(char *text, size_t size, const char *name, long long value)
{
	char number[24];

	snprintf(number, sizeof(number), "%lld", value);
	append_label(text, size, name, number);
}

/* The first run of exactly so many hexadecimal digits. */
static const char *find_container_id(const char *line)
{
	size_t digits;

	for (; *line; line += digits ? digits : 1) {
		digits = strspn(line, "0123456789abcdef");
		if (digits == CONTAINER_ID_DIGITS)
			return line;
	}
	return NULL;
}

/* `wanted`: what the line must contain. */
static int read_container_id(const char *path, const char *wanted, char *ret)
{
	FILE *in = fopen(path, "re");
	const char *found = NULL;
	char line[4096];

	while (in && !found && fgets(line, sizeof(line), in)) {
		if (strstr(line, wanted))
			found = find_container_id(line);
	}
	if (found)
		snprintf(ret, CONTAINER_ID_SHOWN_DIGITS + 1, "%.*s", CONTAINER_ID_SHOWN_DIGITS,
			 found);
	if (in)
		fclose(in);
	return found != NULL;
}

void identity_format_labels(char *ret, size_t size)
{
	const struct nccl_file_header *header = store.header;
	char container[CONTAINER_ID_SHOWN_DIGITS + 1] = "";
	struct stat namespace;

	*ret = '\0';
	append_label(ret, size, "job", header->job);
	append_label(ret, size, "host", header->host);
	if (header->world_rank >= 0)
		append_number_label(ret, size, "world_rank", header->world_rank);
	append_number_label(ret, size, "pid", getpid());
	if (!read_container_id("/proc/self/cgroup", "", container))
		(void)read_container_id("/proc/self/mountinfo", " /etc/hostname ", container);
	append_label(ret, size, "container", container);
	if (!stat("/proc/self/ns/pid", &namespace) &&
	    namespace.st_ino != INITIAL_PID_NAMESPACE_INODE)
		append_number_label(ret, size, "pid_namespace", (long long)namespace.st_ino);
}
