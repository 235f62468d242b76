/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See own_session.h. Runs once, in the library's constructor.
 */
#include "libkymo/own_session.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "common/settings_value.h"
#include "common/syscalls.h"
#include "libkymo/session_path.h"

#define SPOOL_DIRECTORY_VARIABLE_PREFIX "KYMO_SPOOL_DIRECTORY="

/* ---- does this process want one? ---- */

static bool own_session_is_wanted(char *const *environment)
{
	const char *enabled = session_path_find_value(environment, "KYMO_ENABLED");
	const char *session = session_path_find_value(environment, "KYMO_SPOOL_DIRECTORY");
	bool on = false;

	return enabled && !(session && *session) &&
	       !setting_parse_bool(setting_slice_from_text(enabled), &on) && on;
}

/* ---- its directory ---- */

/* One that is there already must be a directory of the user's own or of root's: who owns it, or a
 * link by that name, chooses where our files go. */
static bool make_trusted_directory(const char *path, int mode)
{
	long result = sys_call2(SYS_mkdir, (long)path, mode);
	struct stat status;

	if (result != -EEXIST)
		return !result;
	return !sys_call4(SYS_newfstatat, AT_FDCWD, (long)path, (long)&status,
			  AT_SYMLINK_NOFOLLOW) &&
	       S_ISDIR(status.st_mode) && !(status.st_mode & S_IWOTH) &&
	       (status.st_uid == 0 || status.st_uid == (uid_t)sys_call0(SYS_geteuid));
}

/* The user asked for a session, and there will be none. */
static void report_session_directory_not_made(const char *path)
{
	char line[PATH_MAX + 100];
	struct text_buffer text = text_buffer_init(line, sizeof(line));

	text_append_string(&text, "kymo: the program runs unprofiled: cannot make '");
	text_append_string(&text, path);
	text_append_string(&text, "', or it belongs to another user\n");
	/* a terminal is not to obey the name of a directory */
	for (size_t i = 0; i + 1 < text.length; i++) {
		if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
			line[i] = '?';
	}
	sys_write(2, line, text.length);
}

/* `latest` -> `name`, in the directory that ends at `length`. Failing is no harm. */
static void make_latest_session_symlink(const char *path, size_t length, const char *name)
{
	char target[PATH_MAX], link[PATH_MAX], temporary[PATH_MAX];
	struct text_buffer text = text_buffer_init(target, sizeof(target));

	text_append_string(&text, name);
	text = text_buffer_init(link, sizeof(link));
	for (size_t i = 0; i < length; i++)
		text_append_character(&text, path[i]);
	memcpy(temporary, link, sizeof(link));
	text_append_string(&text, "/latest");
	text = (struct text_buffer){temporary, length, sizeof(temporary)};
	text_append_string(&text, "/.latest-");
	text_append_unsigned(&text, (uint64_t)sys_getpid());
	if (!sys_call2(SYS_symlink, (long)target, (long)temporary) &&
	    sys_call2(SYS_rename, (long)temporary, (long)link))
		sys_call1(SYS_unlink, (long)temporary);
}

/* Directories on the way to the one that the user named. */
static void make_parent_directories(char *path)
{
	for (char *slash = path + 1; *slash; slash++) {
		if (*slash != '/')
			continue;
		*slash = 0;
		sys_call2(SYS_mkdir, (long)path, 0775);
		*slash = '/';
	}
}

static bool results_have_directory_by_time(char *const *environment)
{
	const char *value = session_path_find_value(environment, "KYMO_TIME_OUTPUT");
	bool on = true;

	if (value && setting_parse_bool(setting_slice_from_text(value), &on))
		on = true;
	return on;
}

/* Appends OUTPUT_PATH; by default "kymo-PROGRAM-output", here. */
static bool append_output_path(struct text_buffer *text, char *const *environment)
{
	const char *wanted = session_path_find_value(environment, "KYMO_OUTPUT_PATH");
	size_t begin = text->length;
	long got;

	if (!wanted || !*wanted)
		wanted = "kymo-%n-output";
	if (*wanted != '/') {
		got = sys_call2(SYS_getcwd, (long)(text->start + begin),
				(long)(text->size - begin));
		if (got <= 0 || text->start[begin] != '/')
			return false;
		text->length += strlen(text->start + begin);
		if (text->start[text->length - 1] != '/')
			text_append_character(text, '/');
	}
	session_path_append_expanded(text, wanted, environment);
	while (text->length > begin + 1 && text->start[text->length - 1] == '/')
		text->start[--text->length] = 0;
	return text->length + 2 * NAME_MAX < text->size;
}

/* Writes SESSION and the path of the spool directory to `variable`. */
static bool make_session_and_spool_directories(char variable[PATH_MAX], char *const *environment)
{
	struct text_buffer text = text_buffer_init(variable, PATH_MAX);
	char *path = variable + sizeof(SPOOL_DIRECTORY_VARIABLE_PREFIX) - 1;
	size_t parent, name;

	text_append_string(&text, SPOOL_DIRECTORY_VARIABLE_PREFIX);
	if (!append_output_path(&text, environment))
		return false;
	make_parent_directories(path);
	if (!make_trusted_directory(path, 0775)) {
		report_session_directory_not_made(path);
		return false;
	}
	parent = text.length;
	if (!results_have_directory_by_time(environment)) {
		text_append_string(&text, "/spool");
		if (!sys_call2(SYS_mkdir, (long)path, 0700))
			return true;
		/* Results of another run are there: these go into a directory of their own. */
		variable[text.length = parent] = 0;
	}
	text_append_character(&text, '/');
	name = text.length;
	session_path_append_date_and_time(&text);
	text_append_character(&text, '-');
	text_append_unsigned(&text, (uint64_t)sys_getpid());
	if (!make_trusted_directory(path, 0775))
		return false;
	make_latest_session_symlink(path, parent - (sizeof(SPOOL_DIRECTORY_VARIABLE_PREFIX) - 1),
				    variable + name);
	text_append_string(&text, "/spool");
	return make_trusted_directory(path, 0700);
}

char *const *own_session_add_to_environment_if_wanted(char *const *environment)
{
	size_t count = 0;
	char **copy, *variable;

	if (!own_session_is_wanted(environment))
		return environment;
	while (environment[count])
		count++;
	copy = sys_mmap(NULL, (count + 2) * sizeof(*copy) + PATH_MAX, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (sys_mmap_failed(copy))
		return environment;
	variable = (char *)(copy + count + 2);
	if (!make_session_and_spool_directories(variable, environment)) {
		sys_munmap(copy, (count + 2) * sizeof(*copy) + PATH_MAX);
		return environment;
	}
	copy[0] = variable;
	memcpy(copy + 1, environment, (count + 1) * sizeof(*copy));
	return copy;
}
