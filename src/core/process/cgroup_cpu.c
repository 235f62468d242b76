/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See cgroup_cpu.h.
 */
#include "core/process/cgroup_cpu.h"

#include <fcntl.h>
#include <string.h>

#include "common/syscalls.h"
#include "core/base/text.h"

#define CGROUP_PATH_SIZE          1024
#define PROC_SELF_CGROUP_SIZE_MAX 4096
#define MOUNTINFO_SIZE_MAX        65536 /* what is behind that is not looked at */
#define CGROUP_LEVELS_MAX         32

static struct {
	char directory[CGROUP_PATH_SIZE];
	uint32_t top; /* length of the mount point */
	int version;  /* 0: not found */
} process_cgroup_location;

static size_t read_small_file(const char *path, char *buffer, size_t size)
{
	long fd = sys_open(path, O_RDONLY | O_CLOEXEC, 0), count;
	size_t length = 0;

	buffer[0] = 0;
	if (fd < 0)
		return 0;
	while (length + 1 < size &&
	       (count = sys_read((int)fd, buffer + length, size - length - 1)) > 0)
		length += (size_t)count;
	sys_close((int)fd);
	buffer[length] = 0;
	return length;
}

/* ---- where the group is ---- */

/* A part of a text, without its end. */
struct text_slice {
	const char *start;
	size_t length;
};

static bool slice_equals_text(struct text_slice piece, const char *text)
{
	return piece.length == strlen(text) && !strncmp(piece.start, text, piece.length);
}

/* Takes what stands before the separator or the end of the line. */
static struct text_slice take_text_until_separator(const char **at, char separator)
{
	struct text_slice piece = {*at, 0};

	while (**at && **at != '\n' && **at != separator)
		++*at;
	piece.length = (size_t)(*at - piece.start);
	if (**at == separator)
		++*at;
	return piece;
}

static const char *find_next_line(const char *at)
{
	while (*at && *at != '\n')
		at++;
	return *at ? at + 1 : at;
}

static bool comma_list_has_word(struct text_slice list, const char *word)
{
	size_t length = strlen(word);

	for (size_t i = 0; i + length <= list.length; i++) {
		if ((i == 0 || list.start[i - 1] == ',') &&
		    !strncmp(list.start + i, word, length) &&
		    (i + length == list.length || list.start[i + length] == ','))
			return true;
	}
	return false;
}

/* "number:controllers:path"; version 2 has the number 0 and no controllers. */
static bool find_cgroup_line(const char *groups, int version, struct text_slice *ret)
{
	for (const char *at = groups; *at; at = find_next_line(at)) {
		const char *field = at;
		struct text_slice number = take_text_until_separator(&field, ':'),
				  controllers = take_text_until_separator(&field, ':');

		*ret = take_text_until_separator(&field, '\n');
		if (version == 1 ? comma_list_has_word(controllers, "cpu")
				 : slice_equals_text(number, "0") && !controllers.length)
			return true;
	}
	return false;
}

/* "id parent device root mount-point options… - type source super-options" (proc(5)). */
static bool find_cgroup_mount(const char *mounts, int version, struct text_slice *root,
			      struct text_slice *point)
{
	for (const char *at = mounts; *at; at = find_next_line(at)) {
		const char *field = at;
		struct text_slice piece, type;

		for (int i = 0; i < 3; i++)
			take_text_until_separator(&field, ' ');
		*root = take_text_until_separator(&field, ' ');
		*point = take_text_until_separator(&field, ' ');
		do
			piece = take_text_until_separator(&field, ' ');
		while (piece.length && !slice_equals_text(piece, "-"));
		type = take_text_until_separator(&field, ' ');
		take_text_until_separator(&field, ' ');
		if (version == 1 ? slice_equals_text(type, "cgroup") &&
					   comma_list_has_word(
						   take_text_until_separator(&field, ' '), "cpu")
				 : slice_equals_text(type, "cgroup2"))
			return true;
	}
	return false;
}

static void append_slice(struct text_buffer *text, struct text_slice piece)
{
	for (size_t i = 0; i < piece.length; i++)
		text_append_character(text, piece.start[i]);
}

bool cgroup_cpu_find_directory(const char *groups, const char *mounts, char *directory,
			       uint32_t size, int *version, uint32_t *top)
{
	struct text_slice path, root, point;
	struct text_buffer text = text_buffer_init(directory, size);

	for (*version = 1; *version <= 2; ++*version) {
		if (find_cgroup_line(groups, *version, &path) &&
		    find_cgroup_mount(mounts, *version, &root, &point))
			break;
	}
	if (*version > 2)
		return false;
	/* A container may see no more than its own part of the tree: the path begins with what is
	 * mounted, or is below it. */
	if (root.length > 1 && path.length >= root.length &&
	    !strncmp(path.start, root.start, root.length)) {
		path.start += root.length;
		path.length -= root.length;
	}
	append_slice(&text, point);
	*top = (uint32_t)text.length;
	if (path.length > 1)
		append_slice(&text, path);
	return text.length + 1 < size;
}

void cgroup_cpu_find_cgroup_of_process(void)
{
	static char groups[PROC_SELF_CGROUP_SIZE_MAX], mounts[MOUNTINFO_SIZE_MAX];

	process_cgroup_location.version = 0;
	if (!read_small_file("/proc/self/cgroup", groups, sizeof(groups)) ||
	    !read_small_file("/proc/self/mountinfo", mounts, sizeof(mounts)) ||
	    !cgroup_cpu_find_directory(groups, mounts, process_cgroup_location.directory,
				       sizeof(process_cgroup_location.directory),
				       &process_cgroup_location.version,
				       &process_cgroup_location.top))
		process_cgroup_location.version = 0;
}

/* ---- what it says ---- */

static uint64_t parse_number_at(const char *at)
{
	uint64_t value = 0;

	while (*at == ' ' || *at == '\t')
		at++;
	for (; *at >= '0' && *at <= '9'; at++)
		value = value * 10 + (unsigned)(*at - '0');
	return value;
}

static uint64_t find_number_after_key(const char *text, const char *key)
{
	size_t length = strlen(key);

	for (const char *at = text; *at; at = find_next_line(at)) {
		if (!strncmp(at, key, length) && at[length] == ' ')
			return parse_number_at(at + length);
	}
	return 0;
}

/* A file of the group at the first `length` characters of its path. */
static bool read_cgroup_file(uint32_t length, const char *name, char *buffer, size_t size)
{
	char path[CGROUP_PATH_SIZE + 32];
	struct text_buffer text = text_buffer_init(path, sizeof(path));

	append_slice(&text, (struct text_slice){process_cgroup_location.directory, length});
	text_append_string(&text, name);
	return read_small_file(path, buffer, size) > 0;
}

static uint64_t read_cpu_limit(uint32_t length)
{
	char buffer[64];
	uint64_t quota, period;
	const char *at = buffer;

	if (process_cgroup_location.version == 2) { /* "max period" or "quota period" */
		if (!read_cgroup_file(length, "/cpu.max", buffer, sizeof(buffer)))
			return 0;
		take_text_until_separator(&at, ' ');
		quota = parse_number_at(buffer);
		period = parse_number_at(at);
	} else { /* -1: none */
		if (!read_cgroup_file(length, "/cpu.cfs_quota_us", buffer, sizeof(buffer)))
			return 0;
		quota = parse_number_at(buffer);
		if (!read_cgroup_file(length, "/cpu.cfs_period_us", buffer, sizeof(buffer)))
			return 0;
		period = parse_number_at(buffer);
	}
	return period ? quota * 1000 / period : 0;
}

static void add_cgroup_level_limit_and_counts(struct cgroup_cpu_limits *sum, uint32_t length)
{
	char buffer[1024];
	uint64_t limit;

	if (!read_cgroup_file(length, "/cpu.stat", buffer, sizeof(buffer)))
		return;
	limit = read_cpu_limit(length);
	if (limit && (!sum->limit_millicpus || limit < sum->limit_millicpus))
		sum->limit_millicpus = limit;
	sum->enforcement_period_count += find_number_after_key(buffer, "nr_periods");
	sum->throttled_period_count += find_number_after_key(buffer, "nr_throttled");
	sum->throttled_ns += find_number_after_key(buffer, "throttled_time") +
			     find_number_after_key(buffer, "throttled_usec") * 1000;
}

bool cgroup_cpu_read(struct cgroup_cpu_limits *ret)
{
	uint32_t length = (uint32_t)strlen(process_cgroup_location.directory);

	*ret = (struct cgroup_cpu_limits){0};
	if (!process_cgroup_location.version)
		return false;
	for (int i = 0; i < CGROUP_LEVELS_MAX && length >= process_cgroup_location.top; i++) {
		add_cgroup_level_limit_and_counts(ret, length);
		if (length == process_cgroup_location.top)
			break;
		while (length > process_cgroup_location.top &&
		       process_cgroup_location.directory[length - 1] != '/')
			length--;
		if (length > process_cgroup_location.top)
			length--;
	}
	return ret->limit_millicpus || ret->enforcement_period_count;
}
