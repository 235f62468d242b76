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

#include "cmd/nearest.h"
#include "cmd/result_path.h"
#include "common/rank.h"

/* As the usual batch systems say it. */
static const char *const job_variables[] = {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID",
					    NULL};
static const char *const node_variables[] = {"SLURM_NODEID", "PBS_NODENUM", NULL};

const char *const result_path_keys[][2] = {
	{"%p  %pid%", "process id of kymo"},
	{"%ppid%", "its parent"},
	{"%h  %host%", "host name"},
	{"%r  %rank%", "rank as MPI and Slurm launchers say it; 0 without one"},
	{"%size%", "number of ranks"},
	{"%nid%", "number of the node"},
	{"%job%", "job as batch systems say it"},
	{"%n  %tag%", "name of the program"},
	{"%t  %time%", "date and time of the start"},
	{"%q{VARIABLE}  %env{VARIABLE}%", "environment variable"},
	{"%%", "a percent sign"},
	{NULL, NULL},
};

static const char *key_first_variable(const char *const *variables)
{
	for (; *variables; variables++) {
		const char *value = getenv(*variables);

		if (value && *value)
			return value;
	}
	return "0";
}

static const char *key_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void key_put(FILE *out, const char *value)
{
	for (; *value; value++)
		fputc(*value == '/' ? '_' : *value, out);
}

static bool key_put_rank(FILE *out, bool size)
{
	struct rank rank = {0};

	rank_from_environment(environ, &rank);
	return fprintf(out, "%u", size ? rank.size : rank.rank) > 0;
}

static void key_put_time(FILE *out, const struct result_keys *keys)
{
	char text[64];
	struct tm local;

	localtime_r(&keys->start.tv_sec, &local);
	strftime(text, sizeof(text), "%Y-%m-%d_%H.%M.%S", &local);
	fputs(text, out);
}

static bool key_put_named(FILE *out, const char *name, size_t length,
			  const struct result_keys *keys)
{
	static const char *const names[] = {"pid", "ppid", "host", "rank", "size",
					    "nid", "job",  "tag",  "time", "launch_time"};
	char host[256] = "unknown";
	unsigned which = 0;

	while (which < sizeof(names) / sizeof(names[0]) &&
	       (strlen(names[which]) != length || strncmp(names[which], name, length)))
		which++;
	switch (which) {
	case 0:
		return fprintf(out, "%ld", keys->pid) > 0;
	case 1:
		return fprintf(out, "%ld", (long)getppid()) > 0;
	case 2:
		gethostname(host, sizeof(host) - 1);
		key_put(out, host);
		return true;
	case 3:
		return key_put_rank(out, false);
	case 4:
		return key_put_rank(out, true);
	case 5:
		key_put(out, key_first_variable(node_variables));
		return true;
	case 6:
		key_put(out, key_first_variable(job_variables));
		return true;
	case 7:
		key_put(out, key_base_name(keys->program));
		return true;
	case 8:
	case 9:
		key_put_time(out, keys);
		return true;
	default:
		return false;
	}
}

/* %q{NAME} and %env{NAME}%: characters taken, or 0. */
static size_t key_put_variable(FILE *out, const char *at)
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
	key_put(out, getenv(variable) ? getenv(variable) : "");
	return (size_t)(brace - at) + 1 + is_long;
}

/* Long names go first: %pid% must not be taken for %p and "id%". */
static size_t key_put_any(FILE *out, const char *at, const struct result_keys *keys)
{
	static const char letters[] = "phrnt";
	static const char *const names[] = {"pid", "host", "rank", "tag", "time"};
	const char *close = strchr(at + 1, '%'), *letter;
	size_t taken = key_put_variable(out, at);

	if (taken)
		return taken;
	if (at[1] == '%')
		return fputc('%', out) == '%' ? 2 : 0;
	if (close && key_put_named(out, at + 1, (size_t)(close - at) - 1, keys))
		return (size_t)(close - at) + 1;
	letter = at[1] ? strchr(letters, at[1]) : NULL;
	if (letter &&
	    key_put_named(out, names[letter - letters], strlen(names[letter - letters]), keys))
		return 2;
	return 0;
}

static int key_unknown(const char *at, struct problem *problem)
{
	static const char known[] = "pid,ppid,host,rank,size,nid,job,tag,time,env{NAME},q{NAME}";
	size_t length = 1 + strcspn(at + 1, "%/ ");
	struct nearest nearest;
	char hint[64];

	nearest_init(&nearest, at + 1, length - 1);
	nearest_offer_list(&nearest, known);
	return problem_set(
		problem, -EINVAL,
		"unknown key '%.*s' in the output path%s (kymo help keys lists them; %%%% "
		"is a percent sign)",
		(int)length, at, nearest_hint(&nearest, "%", hint, sizeof(hint)));
}

int result_path_expand(const char *pattern, const struct result_keys *keys, char **ret,
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
		taken = key_put_any(out, pattern, keys);
		if (!taken) {
			fclose(out);
			free(text);
			return key_unknown(pattern, problem);
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
