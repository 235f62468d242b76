/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See session_path.h. Raw system calls alone: it runs in the library's constructor.
 */
#include "libkymo/session_path.h"

#include <limits.h>
#include <string.h>
#include <sys/utsname.h>

#include "common/array.h"
#include "common/rank.h"
#include "common/syscalls.h"
#include "core/base/ticks.h"

#define SECONDS_PER_DAY   86400u
#define VARIABLE_NAME_MAX 256

static void append_separator_and_two_digits(struct text_buffer *text, uint64_t number, char before)
{
	text_append_character(text, before);
	if (number < 10)
		text_append_character(text, '0');
	text_append_unsigned(text, number);
}

/* Year, month and day of a day since 1970-01-01. The year is counted from March, so that the leap
 * day is its last: (153 m + 2) / 5 is the first day of its month m. */
static void append_date_of_epoch_day(struct text_buffer *text, uint64_t days)
{
	uint64_t since_0 = days + 719468; /* since 0000-03-01 */
	uint64_t era = since_0 / 146097, day = since_0 % 146097;
	uint64_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
	uint64_t month, of_year = day - (365 * year + year / 4 - year / 100);

	month = (5 * of_year + 2) / 153;
	text_append_unsigned(text, era * 400 + year + (month >= 10));
	append_separator_and_two_digits(text, month < 10 ? month + 3 : month - 9, '-');
	append_separator_and_two_digits(text, of_year - (153 * month + 2) / 5 + 1, '-');
}

void session_path_append_date_and_time(struct text_buffer *text)
{
	uint64_t seconds = read_posix_clock_ns(CLOCK_REALTIME) / 1000000000u;

	append_date_of_epoch_day(text, seconds / SECONDS_PER_DAY);
	append_separator_and_two_digits(text, seconds % SECONDS_PER_DAY / 3600, '_');
	append_separator_and_two_digits(text, seconds % 3600 / 60, '.');
	append_separator_and_two_digits(text, seconds % 60, '.');
}

void session_path_append_program_name(struct text_buffer *text)
{
	char path[PATH_MAX];
	long length = sys_call3(SYS_readlink, (long)"/proc/self/exe", (long)path, sizeof(path) - 1);
	const char *name = path;

	path[length > 0 ? length : 0] = 0;
	for (const char *at = path; *at; at++) {
		if (*at == '/')
			name = at + 1;
	}
	text_append_string(text, *name ? name : "program");
}

/* ---- keys ---- */

const char *session_path_find_value(char *const *environment, const char *name)
{
	size_t length = strlen(name);

	for (; *environment; environment++) {
		if (!strncmp(*environment, name, length) && (*environment)[length] == '=')
			return *environment + length + 1;
	}
	return NULL;
}

static void append_without_slashes(struct text_buffer *text, const char *value)
{
	for (; value && *value; value++)
		text_append_character(text, *value == '/' ? '_' : *value);
}

static void append_first_set_value(struct text_buffer *text, char *const *environment,
				   const char *const *names)
{
	for (; *names; names++) {
		const char *value = session_path_find_value(environment, *names);

		if (value && *value) {
			append_without_slashes(text, value);
			return;
		}
	}
	text_append_character(text, '0');
}

static void append_host_name(struct text_buffer *text)
{
	struct utsname names;

	append_without_slashes(text,
			       sys_call1(SYS_uname, (long)&names) ? "unknown" : names.nodename);
}

enum path_key {
	KEY_PID,
	KEY_PARENT,
	KEY_HOST,
	KEY_RANK,
	KEY_SIZE,
	KEY_NODE,
	KEY_JOB,
	KEY_PROGRAM,
	KEY_TIME,
	KEY_LAUNCH_TIME,
	KEY_COUNT
};

/* As launch/result_keys.c has them: the long name, and the letter, if any. */
static const struct {
	const char *name;
	char letter;
} path_keys[KEY_COUNT] = {
	[KEY_PID] = {"pid", 'p'},   [KEY_PARENT] = {"ppid", 0},
	[KEY_HOST] = {"host", 'h'}, [KEY_RANK] = {"rank", 'r'},
	[KEY_SIZE] = {"size", 0},   [KEY_NODE] = {"nid", 0},
	[KEY_JOB] = {"job", 0},     [KEY_PROGRAM] = {"tag", 'n'},
	[KEY_TIME] = {"time", 't'}, [KEY_LAUNCH_TIME] = {"launch_time", 0},
};

static void append_key_value(struct text_buffer *text, enum path_key key, char *const *environment)
{
	static const char *const jobs[] = {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID",
					   NULL};
	static const char *const nodes[] = {"SLURM_NODEID", "PBS_NODENUM", NULL};
	struct process_rank rank = {0};

	switch (key) {
	case KEY_PID:
		text_append_unsigned(text, (uint64_t)sys_getpid());
		break;
	case KEY_PARENT:
		text_append_unsigned(text, (uint64_t)sys_call0(SYS_getppid));
		break;
	case KEY_HOST:
		append_host_name(text);
		break;
	case KEY_RANK:
	case KEY_SIZE:
		rank_read_from_environment(environment, &rank);
		text_append_unsigned(text, key == KEY_RANK ? rank.rank : rank.size);
		break;
	case KEY_NODE:
		append_first_set_value(text, environment, nodes);
		break;
	case KEY_JOB:
		append_first_set_value(text, environment, jobs);
		break;
	case KEY_PROGRAM:
		session_path_append_program_name(text);
		break;
	default:
		session_path_append_date_and_time(text);
	}
}

/* %q{NAME} and %env{NAME}%: characters taken, or 0. */
static size_t append_variable_key(struct text_buffer *text, const char *at,
				  char *const *environment)
{
	static const char *const openings[] = {"%q{", "%env{"};
	bool is_long = !strncmp(at, openings[1], strlen(openings[1]));
	const char *name = at + strlen(openings[is_long]), *brace;
	char variable[VARIABLE_NAME_MAX];

	if (strncmp(at, openings[is_long], strlen(openings[is_long])))
		return 0;
	brace = strchr(name, '}');
	if (!brace || (is_long && brace[1] != '%') || (size_t)(brace - name) >= sizeof(variable))
		return 0;
	memcpy(variable, name, (size_t)(brace - name));
	variable[brace - name] = 0;
	append_without_slashes(text, session_path_find_value(environment, variable));
	return (size_t)(brace - at) + 1 + is_long;
}

/* Long names go first: %pid% must not be taken for %p and "id%". Characters taken, or 0. */
static size_t append_value_of_key(struct text_buffer *text, const char *at,
				  char *const *environment)
{
	const char *close = strchr(at + 1, '%');
	size_t taken = append_variable_key(text, at, environment);

	if (taken)
		return taken;
	if (at[1] == '%') {
		text_append_character(text, '%');
		return 2;
	}
	for (unsigned i = 0; close && i < KEY_COUNT; i++) {
		size_t length = strlen(path_keys[i].name);

		if (length == (size_t)(close - at) - 1 &&
		    !strncmp(at + 1, path_keys[i].name, length)) {
			append_key_value(text, i, environment);
			return length + 2;
		}
	}
	for (unsigned i = 0; at[1] && i < KEY_COUNT; i++) {
		if (path_keys[i].letter == at[1]) {
			append_key_value(text, i, environment);
			return 2;
		}
	}
	return 0;
}

void session_path_append_expanded(struct text_buffer *text, const char *pattern,
				  char *const *environment)
{
	while (*pattern) {
		size_t taken =
			*pattern == '%' ? append_value_of_key(text, pattern, environment) : 0;

		if (!taken)
			text_append_character(text, *pattern);
		pattern += taken ? taken : 1;
	}
}
