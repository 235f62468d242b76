/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See session.h. An own directory is
 *
 *   <KYMO_OUTPUT_PATH, or kymo-<program>-output>/<date_time>-<host>-<pid>/
 *
 * with `latest` beside it (of the first rank of a job, if there are several), the keys that the
 * kymo command knows in the path, and launch.json and spool/ inside. With KYMO_TIME_OUTPUT=off it
 * is the path itself. Runs once, in init.
 */
#include "nccl/session.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/rank.h"
#include "common/settings_value.h"
#include "nccl/clock.h"
#include "nccl/log.h"
#include "nccl/options.h"

/* Text that grows, cut when full. */
struct bounded_text {
	char *text;
	size_t length, size;
};

static void append_text(struct bounded_text *line, const char *text)
{
	for (; *text && line->length + 1 < line->size; text++)
		line->text[line->length++] = *text;
	line->text[line->length] = 0;
}

/* A value never adds a directory. */
static void append_with_slashes_replaced(struct bounded_text *line, const char *text)
{
	size_t from = line->length;

	append_text(line, text);
	for (; from < line->length; from++) {
		if (line->text[from] == '/')
			line->text[from] = '_';
	}
}

static const char *read_program_name(void)
{
	static char path[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
	const char *slash;

	path[length > 0 ? length : 0] = 0;
	slash = strrchr(path, '/');
	return slash && slash[1] ? slash + 1 : "program";
}

static void append_time(struct bounded_text *line)
{
	char text[64];
	time_t now = time(NULL);
	struct tm local;

	localtime_r(&now, &local);
	strftime(text, sizeof(text), "%Y-%m-%d_%H.%M.%S", &local);
	append_text(line, text);
}

static void append_host_name(struct bounded_text *line)
{
	char host[256] = "unknown";

	if (gethostname(host, sizeof(host) - 1))
		strcpy(host, "unknown");
	append_with_slashes_replaced(line, host);
}

/* ---- keys of paths: as the kymo command has them (kymo help path-keys) ---- */

static const char *get_first_set_variable_or_zero(const char *first, const char *second,
						  const char *third)
{
	const char *value = secure_getenv(first);

	if (!value || !*value)
		value = secure_getenv(second);
	if (!value || !*value)
		value = secure_getenv(third);
	return value && *value ? value : "0";
}

static void append_number(struct bounded_text *line, long number)
{
	char text[24];

	snprintf(text, sizeof(text), "%ld", number);
	append_text(line, text);
}

/* The value of a key, by its long name; false: no such key. */
static bool append_value_of_path_key(struct bounded_text *line, const char *name, size_t length)
{
	static const char *const names[] = {"pid", "ppid", "host", "rank", "size",
					    "nid", "job",  "tag",  "time", "launch_time"};
	struct process_rank rank = {0};
	size_t which = 0;

	while (which < 10 &&
	       (strlen(names[which]) != length || strncmp(names[which], name, length)))
		which++;
	rank_read_from_environment(environ, &rank);
	switch (which) {
	case 0:
	case 1:
		append_number(line, which ? getppid() : getpid());
		return true;
	case 2:
		append_host_name(line);
		return true;
	case 3:
	case 4:
		append_number(line, which == 3 ? rank.rank : rank.size);
		return true;
	case 5:
		append_with_slashes_replaced(line, get_first_set_variable_or_zero("SLURM_NODEID",
										  "PBS_NODENUM",
										  "PBS_NODENUM"));
		return true;
	case 6:
		append_with_slashes_replaced(
			line,
			get_first_set_variable_or_zero("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID"));
		return true;
	case 7:
		append_with_slashes_replaced(line, read_program_name());
		return true;
	case 8:
	case 9:
		append_time(line);
		return true;
	default:
		return false;
	}
}

/* %q{NAME}, %env{NAME}%: characters taken, or 0. */
static size_t append_variable_if_reference(struct bounded_text *line, const char *at)
{
	bool is_long = !strncmp(at, "%env{", 5);
	const char *name, *brace, *value;
	char variable[256];

	if (!is_long && strncmp(at, "%q{", 3))
		return 0;
	name = at + (is_long ? 5 : 3);
	brace = strchr(name, '}');
	if (!brace || (is_long && brace[1] != '%') || brace - name >= (ptrdiff_t)sizeof(variable))
		return 0;
	snprintf(variable, sizeof(variable), "%.*s", (int)(brace - name), name);
	value = secure_getenv(variable);
	append_with_slashes_replaced(line, value ? value : "");
	return (size_t)(brace - at) + 1 + is_long;
}

static void append_expanded_pattern(struct bounded_text *line, const char *pattern)
{
	static const char letters[] = "phrnt";
	static const char *const names[] = {"pid", "host", "rank", "tag", "time"};

	while (*pattern) {
		const char *close, *letter;
		size_t taken;
		char one[2] = {*pattern, 0};

		if (*pattern != '%') {
			append_text(line, one);
			pattern++;
			continue;
		}
		taken = append_variable_if_reference(line, pattern);
		close = strchr(pattern + 1, '%');
		letter = pattern[1] ? strchr(letters, pattern[1]) : NULL;
		if (taken) {
			pattern += taken;
		} else if (close && append_value_of_path_key(line, pattern + 1,
							     (size_t)(close - pattern) - 1)) {
			pattern = close + 1;
		} else if (letter) {
			append_value_of_path_key(line, names[letter - letters],
						 strlen(names[letter - letters]));
			pattern += 2;
		} else {
			append_text(line, "%"); /* %% as well, and what is no key */
			pattern += pattern[1] == '%' ? 2 : 1;
		}
	}
}

/* ---- the directory ---- */

/* No link of another user is followed, and the last directory is ours: who owns it could exchange
 * the files in it. */
static int check_directory_owner(const char *path, bool last)
{
	uid_t own = geteuid();
	struct stat status;

	if (lstat(path, &status))
		return -errno;
	if ((S_ISLNK(status.st_mode) || last) && status.st_uid != own && status.st_uid != 0)
		return S_ISLNK(status.st_mode) ? -ELOOP : -EPERM;
	return 0;
}

static int make_directories(char *path)
{
	int result;

	for (char *at = path + 1;; at++) {
		char end = *at;

		if (end && end != '/')
			continue;
		*at = 0;
		if (mkdir(path, 0777) && errno != EEXIST) {
			int error = errno;

			*at = end;
			return -error;
		}
		result = check_directory_owner(path, !end);
		*at = end;
		if (result || !end)
			return result;
	}
}

/* Failing is no harm. */
static void make_latest_link(const char *directory)
{
	const char *name = strrchr(directory, '/');
	char link[PATH_MAX + 16], temporary[PATH_MAX + 64];
	int length = (int)(name - directory);

	snprintf(link, sizeof(link), "%.*s/latest", length, directory);
	snprintf(temporary, sizeof(temporary), "%.*s/.latest-%ld", length, directory,
		 (long)getpid());
	if (symlink(name + 1, temporary) || rename(temporary, link))
		unlink(temporary);
}

static void write_json_string_of_text(FILE *out, const char *text, size_t length)
{
	fputc('"', out);
	for (size_t i = 0; i < length; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c == '"' || c == '\\')
			fprintf(out, "\\%c", c);
		else if (c < ' ' || c >= 0x7f)
			fprintf(out, c < ' ' ? "\\u%04x" : "?", c);
		else
			fputc(c, out);
	}
	fputc('"', out);
}

static void write_command_line_as_json(FILE *out)
{
	char arguments[16384];
	FILE *in = fopen("/proc/self/cmdline", "re");
	size_t size = in ? fread(arguments, 1, sizeof(arguments) - 1, in) : 0;

	if (in)
		fclose(in);
	arguments[size] = 0;
	for (size_t at = 0; at < size; at += strlen(arguments + at) + 1) {
		fputs(at ? ", " : "", out);
		write_json_string_of_text(out, arguments + at, strlen(arguments + at));
	}
}

/* What the kymo command writes about a program it starts, as far as it is known from inside. */
static int write_launch_json(const char *directory)
{
	char path[PATH_MAX + 32], text[PATH_MAX];
	FILE *out;
	int failed;

	snprintf(path, sizeof(path), "%s/launch.json", directory);
	if (!access(path, F_OK))
		return 0;
	out = fopen(path, "wxe");
	if (!out)
		return errno == EEXIST ? 0 : -errno;
	fputs("{\n  \"schema\": \"kymo.launch/1\",\n  \"kymo_version\": \"" KYMO_VERSION
	      "\",\n  \"command\": [",
	      out);
	write_command_line_as_json(out);
	fputs("],\n", out);
	if (getcwd(text, sizeof(text))) {
		fputs("  \"working_directory\": ", out);
		write_json_string_of_text(out, text, strlen(text));
		fputs(",\n", out);
	}
	if (!gethostname(text, sizeof(text) - 1)) {
		fputs("  \"host\": ", out);
		write_json_string_of_text(out, text, strlen(text));
		fputs(",\n", out);
	}
	fprintf(out, "  \"pid\": %ld,\n  \"start_realtime_ns\": %llu,\n  \"settings\": {}\n}\n",
		(long)getpid(), (unsigned long long)nccl_clock_read_ns(CLOCK_REALTIME));
	failed = ferror(out);
	failed |= fclose(out);
	return failed ? -EIO : 0;
}

static bool should_output_path_have_time(void)
{
	const char *text = secure_getenv("KYMO_TIME_OUTPUT");
	bool timed = true;

	if (text)
		(void)setting_parse_bool(setting_slice_from_text(text), &timed);
	return timed;
}

static int make_result_directory(char *ret, size_t size)
{
	const char *pattern = secure_getenv("KYMO_OUTPUT_PATH");
	struct bounded_text line = {ret, 0, size - 16};
	struct process_rank rank = {0};
	bool timed = should_output_path_have_time();
	int result;

	*ret = 0;
	if (!pattern || !*pattern)
		pattern = "kymo-%n-output";
	if (*pattern != '/') {
		if (!getcwd(ret, line.size))
			return -errno;
		line.length = strlen(ret);
		append_text(&line, "/");
	}
	append_expanded_pattern(&line, pattern);
	if (timed) {
		append_text(&line, "/");
		append_time(&line);
		append_text(&line, "-");
		append_host_name(&line);
		append_text(&line, "-");
		append_number(&line, getpid());
	}
	if (line.length + 1 >= line.size)
		return -ENAMETOOLONG;
	result = make_directories(ret);
	if (!result)
		result = write_launch_json(ret);
	if (!result && timed && (!rank_read_from_environment(environ, &rank) || !rank.rank))
		make_latest_link(ret);
	return result;
}

int session_make_spool_directory(char *ret, size_t size)
{
	int result;

	if (*options.spool) {
		if ((size_t)snprintf(ret, size, "%s", options.spool) >= size)
			return -ENAMETOOLONG;
		return access(ret, W_OK | X_OK) ? -errno : 0;
	}
	result = make_result_directory(ret, size);
	if (result)
		return result;
	log_info_to_nccl("records go to %s", ret);
	strcat(ret, "/spool");
	return mkdir(ret, 0777) && errno != EEXIST ? -errno : 0;
}
