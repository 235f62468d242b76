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

#include "common/settings_value.h"
#include "common/syscalls.h"
#include "core/text.h"
#include "core/ticks.h"

#define SESSION     "KYMO_SPOOL_DIRECTORY="
#define ENABLED     "KYMO_ENABLED="
#define DAY_SECONDS 86400u

/* ---- does this process want one? ---- */

static const char *value_of(char *const *environment, const char *variable)
{
	for (; *environment; environment++) {
		if (!strncmp(*environment, variable, strlen(variable)))
			return *environment + strlen(variable);
	}
	return NULL;
}

static bool is_wanted(char *const *environment)
{
	const char *enabled = value_of(environment, ENABLED);
	const char *session = value_of(environment, SESSION);
	bool on = false;

	return enabled && !(session && *session) &&
	       !setting_parse_bool(setting_slice(enabled), &on) && on;
}

/* ---- its directory ---- */

static void put_padded(struct text *text, uint64_t number, char before)
{
	text_character(text, before);
	if (number < 10)
		text_character(text, '0');
	text_unsigned(text, number);
}

/* Year, month and day of a day since 1970-01-01. The year is counted from March, so that the leap
 * day is its last: (153 m + 2) / 5 is the first day of its month m. */
static void put_date(struct text *text, uint64_t days)
{
	uint64_t since_0 = days + 719468; /* since 0000-03-01 */
	uint64_t era = since_0 / 146097, day = since_0 % 146097;
	uint64_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
	uint64_t month, of_year = day - (365 * year + year / 4 - year / 100);

	month = (5 * of_year + 2) / 153;
	text_unsigned(text, era * 400 + year + (month >= 10));
	put_padded(text, month < 10 ? month + 3 : month - 9, '-');
	put_padded(text, of_year - (153 * month + 2) / 5 + 1, '-');
}

static void put_time(struct text *text)
{
	uint64_t seconds = ticks_clock_ns(CLOCK_REALTIME) / 1000000000u;

	put_date(text, seconds / DAY_SECONDS);
	put_padded(text, seconds % DAY_SECONDS / 3600, '_');
	put_padded(text, seconds % 3600 / 60, '.');
	put_padded(text, seconds % 60, '.');
}

static void put_program(struct text *text)
{
	char path[PATH_MAX];
	long length = sys_call3(SYS_readlink, (long)"/proc/self/exe", (long)path, sizeof(path) - 1);
	const char *name = path;

	path[length > 0 ? length : 0] = 0;
	for (const char *at = path; *at; at++) {
		if (*at == '/')
			name = at + 1;
	}
	text_string(text, *name ? name : "program");
}

static bool make_directory(const char *path, int mode)
{
	long result = sys_call2(SYS_mkdir, (long)path, mode);

	return !result || result == -EEXIST;
}

/* `latest` -> `name`, in the directory that ends at `length`. Failing is no harm. */
static void link_latest(const char *path, size_t length, const char *name)
{
	char target[PATH_MAX], link[PATH_MAX], temporary[PATH_MAX];
	struct text text = text_on(target, sizeof(target));

	text_string(&text, name);
	text = text_on(link, sizeof(link));
	for (size_t i = 0; i < length; i++)
		text_character(&text, path[i]);
	memcpy(temporary, link, sizeof(link));
	text_string(&text, "/latest");
	text = (struct text){temporary, length, sizeof(temporary)};
	text_string(&text, "/.latest-");
	text_unsigned(&text, (uint64_t)sys_getpid());
	if (!sys_call2(SYS_symlink, (long)target, (long)temporary) &&
	    sys_call2(SYS_rename, (long)temporary, (long)link))
		sys_call1(SYS_unlink, (long)temporary);
}

/* Writes SESSION and the path of the spool directory to `variable`. */
static bool make_session(char variable[PATH_MAX])
{
	struct text text = text_on(variable, PATH_MAX);
	char *path = variable + sizeof(SESSION) - 1;
	size_t parent, name;

	text_string(&text, SESSION);
	if (sys_call2(SYS_getcwd, (long)path, (long)(PATH_MAX - sizeof(SESSION))) <= 0 ||
	    *path != '/')
		return false;
	text.length += strlen(path);
	if (text.length > PATH_MAX - 2 * NAME_MAX)
		return false;
	text_string(&text, path[1] ? "/kymo-" : "kymo-");
	put_program(&text);
	text_string(&text, "-output");
	if (!make_directory(path, 0777))
		return false;
	parent = text.length - (sizeof(SESSION) - 1);
	text_character(&text, '/');
	name = text.length;
	put_time(&text);
	text_character(&text, '-');
	text_unsigned(&text, (uint64_t)sys_getpid());
	if (!make_directory(path, 0777))
		return false;
	link_latest(path, parent, variable + name);
	text_string(&text, "/spool");
	return make_directory(path, 0700);
}

char *const *own_session_environment(char *const *environment)
{
	size_t count = 0;
	char **copy, *variable;

	if (!is_wanted(environment))
		return environment;
	while (environment[count])
		count++;
	copy = sys_mmap(NULL, (count + 2) * sizeof(*copy) + PATH_MAX, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (sys_failed(copy))
		return environment;
	variable = (char *)(copy + count + 2);
	if (!make_session(variable)) {
		sys_munmap(copy, (count + 2) * sizeof(*copy) + PATH_MAX);
		return environment;
	}
	copy[0] = variable;
	memcpy(copy + 1, environment, (count + 1) * sizeof(*copy));
	return copy;
}
