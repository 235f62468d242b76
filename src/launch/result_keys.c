/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Path keys; see result_path.h. Both the short form (%p, %q{NAME}) and the long one of the peer
 * (%pid%, %env{NAME}%) are taken.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/array.h"
#include "common/rank.h"
#include "launch/result_path.h"
#include "settings/suggest.h"

/* As the usual batch systems say it. */
static const char *const job_id_variables[] = {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID",
					       NULL};
static const char *const node_number_variables[] = {"SLURM_NODEID", "PBS_NODENUM", NULL};

const char *const result_path_key_help_texts[][2] = {
	{"%p  %pid%", "process ID of kymo"},
	{"%ppid%", "its parent"},
	{"%h  %host%", "host name"},
	{"%r  %rank%", "rank from the MPI or Slurm launcher; 0 without one"},
	{"%size%", "number of ranks"},
	{"%nid%", "number of the node"},
	{"%job%", "job ID from the batch system"},
	{"%n  %tag%", "name of the program"},
	{"%t  %time%", "date and time of the start"},
	{"%q{VARIABLE}  %env{VARIABLE}%", "environment variable"},
	{"%%", "a percent sign"},
	{NULL, NULL},
};

static const char *get_first_set_variable_value(const char *const *variables)
{
	for (; *variables; variables++) {
		const char *value = getenv(*variables);

		if (value && *value)
			return value;
	}
	return "0";
}

static const char *path_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void write_value_without_slashes(FILE *out, const char *value)
{
	for (; *value; value++)
		fputc(*value == '/' ? '_' : *value, out);
}

static bool write_rank_or_size_value(FILE *out, bool size)
{
	struct process_rank rank = {0};

	rank_read_from_environment(environ, &rank);
	return fprintf(out, "%u", size ? rank.size : rank.rank) > 0;
}

static void write_start_time_value(FILE *out, const struct result_key_values *keys)
{
	char text[64];
	struct tm local;

	localtime_r(&keys->start.tv_sec, &local);
	strftime(text, sizeof(text), "%Y-%m-%d_%H.%M.%S", &local);
	fputs(text, out);
}

static bool write_named_path_key_value(FILE *out, const char *name, size_t length,
				       const struct result_key_values *keys)
{
	static const char *const names[] = {"pid", "ppid", "host", "rank", "size",
					    "nid", "job",  "tag",  "time", "launch_time"};
	char host[256] = "unknown";
	unsigned which = 0;

	while (which < ARRAY_SIZE(names) &&
	       (strlen(names[which]) != length || strncmp(names[which], name, length)))
		which++;
	switch (which) {
	case 0:
		return fprintf(out, "%ld", keys->pid) > 0;
	case 1:
		return fprintf(out, "%ld", (long)getppid()) > 0;
	case 2:
		gethostname(host, sizeof(host) - 1);
		write_value_without_slashes(out, host);
		return true;
	case 3:
		return write_rank_or_size_value(out, false);
	case 4:
		return write_rank_or_size_value(out, true);
	case 5:
		write_value_without_slashes(out,
					    get_first_set_variable_value(node_number_variables));
		return true;
	case 6:
		write_value_without_slashes(out, get_first_set_variable_value(job_id_variables));
		return true;
	case 7:
		write_value_without_slashes(out, path_base_name(keys->program));
		return true;
	case 8:
	case 9:
		write_start_time_value(out, keys);
		return true;
	default:
		return false;
	}
}

/* %q{NAME} and %env{NAME}%: characters taken, or 0. */
static size_t write_environment_path_key_value(FILE *out, const char *at)
{
	static const char *const openings[] = {"%q{", "%env{"};
	bool is_long = !strncmp(at, openings[1], strlen(openings[1]));
	const char *name = at + strlen(openings[is_long]), *brace;
	char variable[256];

	if (strncmp(at, openings[is_long], strlen(openings[is_long])))
		return 0;
	brace = strchr(name, '}');
	if (!brace || (is_long && brace[1] != '%') || (size_t)(brace - name) >= sizeof(variable))
		return 0;
	snprintf(variable, sizeof(variable), "%.*s", (int)(brace - name), name);
	write_value_without_slashes(out, getenv(variable) ? getenv(variable) : "");
	return (size_t)(brace - at) + 1 + is_long;
}

/* Long names go first: %pid% must not be taken for %p and "id%". */
static size_t write_value_of_key_in_pattern(FILE *out, const char *at,
					    const struct result_key_values *keys)
{
	static const char letters[] = "phrnt";
	static const char *const names[] = {"pid", "host", "rank", "tag", "time"};
	const char *close = strchr(at + 1, '%'), *letter;
	size_t taken = write_environment_path_key_value(out, at);

	if (taken)
		return taken;
	if (at[1] == '%')
		return fputc('%', out) == '%' ? 2 : 0;
	if (close && write_named_path_key_value(out, at + 1, (size_t)(close - at) - 1, keys))
		return (size_t)(close - at) + 1;
	letter = at[1] ? strchr(letters, at[1]) : NULL;
	if (letter && write_named_path_key_value(out, names[letter - letters],
						 strlen(names[letter - letters]), keys))
		return 2;
	return 0;
}

static int set_unknown_key_problem(const char *at, struct problem *problem)
{
	static const char known[] = "pid,ppid,host,rank,size,nid,job,tag,time,env{NAME},q{NAME}";
	size_t length = 1 + strcspn(at + 1, "%/ ");
	struct suggestion suggestion;
	char hint[64];

	suggestion_init(&suggestion, at + 1, length - 1);
	suggestion_offer_list(&suggestion, known);
	return problem_set(
		problem, -EINVAL,
		"unknown key '%.*s' in the output path%s (kymo help keys lists them; %%%% "
		"is a percent sign)",
		(int)length, at, suggestion_format_hint(&suggestion, "%", hint, sizeof(hint)));
}

int result_path_expand_keys(const char *pattern, const struct result_key_values *keys, char **ret,
			    struct problem *problem)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return problem_set(problem, -ENOMEM, "out of memory");
	while (*pattern) {
		size_t taken;

		if (*pattern != '%') {
			fputc(*pattern++, out);
			continue;
		}
		taken = write_value_of_key_in_pattern(out, pattern, keys);
		if (!taken) {
			fclose(out);
			free(text);
			return set_unknown_key_problem(pattern, problem);
		}
		pattern += taken;
	}
	if (fclose(out)) {
		free(text);
		return problem_set(problem, -ENOMEM, "out of memory");
	}
	*ret = text;
	return 0;
}
