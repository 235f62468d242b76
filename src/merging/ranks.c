/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See ranks.h.
 */
#include "merging/ranks.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "analysis/nccl/nccl.h"
#include "analysis/open/open.h"
#include "job/part.h"
#include "job/ranks/collect.h"

bool merge_directory_has_records(const char *directory, const char *name_end)
{
	char path[PATH_MAX];
	struct dirent *entry;
	bool found = false;
	DIR *stream;

	if (snprintf(path, sizeof(path), "%s/spool", directory) >= (int)sizeof(path))
		return false;
	stream = opendir(path);
	while (stream && !found && (entry = readdir(stream))) {
		size_t length = strlen(entry->d_name), end_length = strlen(name_end);

		found = length > end_length &&
			!strcmp(entry->d_name + length - end_length, name_end);
	}
	if (stream)
		closedir(stream);
	return found;
}

__attribute__((format(printf, 3, 4))) static int
refuse_directory(struct job *job, const char *directory, const char *format, ...)
{
	char reason[sizeof(((struct problem *)NULL)->text)];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(reason, sizeof(reason), format, arguments);
	va_end(arguments);
	return job_add_refused(job, directory, reason);
}

/* Records of NCCL are joined without a rank; everything else needs one. */
static int refuse_directory_without_ranks(struct job *job, const struct session *session,
					  const char *directory)
{
	if (merge_directory_has_records(directory, ".nccl"))
		return job_add_refused(job, directory, "");
	if (session && session->process_count)
		return refuse_directory(job, directory,
					"'%s' is not of a parallel job: no process has a rank, as "
					"mpirun and srun give them",
					directory);
	return refuse_directory(job, directory, "'%s' has no readable records%s%s", directory,
				session && session->problem_count ? ": " : "",
				session && session->problem_count ? session->problems[0] : "");
}

static int collect_session(struct job *job, struct session *session, const char *directory,
			   struct problem *problem)
{
	uint32_t ranks, before = job->rank_count;
	int error = session_symbolize(session, problem);

	if (!error)
		error = job_collect_session(job, session, directory, &ranks, problem);
	if (error)
		return error;
	for (uint32_t i = before; i < job->rank_count; i++) {
		if (merge_directory_has_records(directory, ".nccl"))
			job->ranks[i].flags |= JOB_RANK_HAS_NCCL;
	}
	return ranks ? 0 : refuse_directory_without_ranks(job, session, directory);
}

static int collect_directory(struct job *job, const char *directory,
			     const struct session_options *options, struct problem *problem)
{
	struct session *session;
	struct problem here;
	char path[PATH_MAX];
	int error;

	if (snprintf(path, sizeof(path), "%s/spool", directory) >= (int)sizeof(path) ||
	    access(path, R_OK | X_OK))
		return refuse_directory(job, directory,
					"'%s' has no recorded data: cannot read spool/: %s",
					directory, strerror(errno));
	if (!merge_directory_has_records(directory, ".spool"))
		return refuse_directory_without_ranks(job, NULL, directory);
	error = session_open(directory, options, &session, &here);
	if (error == -ENOMEM)
		return problem_set(problem, error, "%s", here.text);
	if (error)
		return job_add_refused(job, directory, here.text);
	error = collect_session(job, session, directory, problem);
	session_close(session);
	return error;
}

/* A directory that an earlier merge made has its ranks in one file. */
static int collect_merged_directory(struct job *job, const char *directory, const char *part,
				    struct problem *problem)
{
	struct problem here;
	struct job read;
	int error;

	job_init(&read);
	error = job_part_read_file(&read, part, &here);
	if (error && error != -ENOMEM)
		error = job_add_refused(job, directory, here.text);
	else if (!error)
		error = job_merge(job, &read, problem);
	job_deinit(&read);
	return error;
}

int merge_collect_ranks(struct job *job, const struct merge_inputs *inputs, size_t first,
			size_t step, const struct session_options *options, struct problem *problem)
{
	int error = 0;

	problem_set(problem, 0, "out of memory");
	for (size_t i = first; !error && i < inputs->count; i += step) {
		const struct merge_input *input = &inputs->list[i];
		char part[PATH_MAX];

		if (input->reason)
			error = job_add_refused(job, input->directory, input->reason);
		else if (snprintf(part, sizeof(part), "%s/" JOB_PART_FILE_NAME, input->directory) <
				 (int)sizeof(part) &&
			 !access(part, F_OK))
			error = collect_merged_directory(job, input->directory, part, problem);
		else
			error = collect_directory(job, input->directory, options, problem);
	}
	return error;
}

int merge_join_parts(struct job *job, char *const *paths, size_t count, struct problem *problem)
{
	int error = 0;

	for (size_t i = 0; !error && i < count; i++) {
		struct job part;

		job_init(&part);
		error = job_part_read_file(&part, paths[i], problem);
		if (!error)
			error = job_merge(job, &part, problem);
		job_deinit(&part);
	}
	return error;
}
