/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * kymo merge -j N: N forked processes make a part each, in a file of memory that the parent reads.
 * Nothing of a directory is said by a worker; it notes it in the part.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "job/part.h"
#include "merging/ranks.h"

struct merge_worker {
	pid_t pid;
	int file; /* what it makes: a part, or after a failure the text of its problem */
};

static int make_part(const struct merge_inputs *inputs, size_t first, size_t step,
		     const struct session_options *options, int file, struct problem *problem)
{
	FILE *stream = fdopen(file, "we");
	struct job job;
	int error;

	job_init(&job);
	error = stream ? merge_collect_ranks(&job, inputs, first, step, options, problem)
		       : problem_set(problem, -errno, "cannot write a part: %s", strerror(errno));
	if (!error && job_sort(&job) < 0)
		error = problem_set(problem, -ENOMEM, "out of memory");
	if (!error)
		error = job_part_write(&job, stream, problem);
	if (error && stream)
		fputs(problem->text, stream);
	if (stream && fflush(stream) && !error)
		error = -EIO;
	return error;
}

static int start_worker(struct merge_worker *worker, const struct merge_inputs *inputs,
			size_t first, size_t step, const struct session_options *options,
			struct problem *problem)
{
	worker->file = memfd_create("kymo-part", MFD_CLOEXEC);
	if (worker->file >= 0) {
		fflush(NULL);
		worker->pid = fork();
	}
	if (worker->file < 0 || worker->pid < 0)
		return problem_set(problem, -errno, "cannot start a worker: %s", strerror(errno));
	if (!worker->pid)
		_exit(make_part(inputs, first, step, options, worker->file, problem)
			      ? EXIT_FAILURE
			      : EXIT_SUCCESS);
	return 0;
}

static int read_worker_file(int file, char **ret, size_t *ret_size)
{
	struct stat status;
	size_t done = 0;

	if (fstat(file, &status))
		return -errno;
	*ret = malloc((size_t)status.st_size + 1);
	while (*ret && done < (size_t)status.st_size) {
		ssize_t got = pread(file, *ret + done, (size_t)status.st_size - done, (off_t)done);

		if (got <= 0)
			break;
		done += (size_t)got;
	}
	if (!*ret)
		return -ENOMEM;
	(*ret)[done] = '\0';
	*ret_size = done;
	return 0;
}

static int take_part(struct job *job, const char *bytes, size_t size, struct problem *problem)
{
	struct job part;
	int error;

	job_init(&part);
	error = job_part_read(&part, bytes, size, "the part of a worker", problem);
	if (!error)
		error = job_merge(job, &part, problem);
	job_deinit(&part);
	return error;
}

static int wait_for_worker(const struct merge_worker *worker, int *ret_status)
{
	while (waitpid(worker->pid, ret_status, 0) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	return 0;
}

/* After an error only waits. */
static int finish_worker(struct job *job, const struct merge_worker *worker, int error,
			 struct problem *problem)
{
	char *bytes = NULL;
	size_t size = 0;
	int status = 0, waited = wait_for_worker(worker, &status);

	if (!error && waited)
		error = problem_set(problem, waited, "cannot wait for a worker: %s",
				    strerror(-waited));
	if (!error && read_worker_file(worker->file, &bytes, &size) < 0)
		error = problem_set(problem, -ENOMEM, "out of memory");
	if (!error && WIFSIGNALED(status))
		error = problem_set(problem, -EIO, "a worker was ended by signal %d",
				    WTERMSIG(status));
	else if (!error && status)
		error = problem_set(problem, -EIO, "%s", bytes);
	if (!error)
		error = take_part(job, bytes, size, problem);
	free(bytes);
	return error;
}

int merge_collect_ranks_by_workers(struct job *job, const struct merge_inputs *inputs,
				   unsigned workers, const struct session_options *options,
				   struct problem *problem)
{
	struct merge_worker list[MERGE_WORKERS_MAX];
	unsigned started = 0;
	int error = 0;

	if (workers > inputs->count)
		workers = (unsigned)inputs->count;
	if (workers < 2)
		return merge_collect_ranks(job, inputs, 0, 1, options, problem);
	for (; !error && started < workers; started++) {
		list[started] = (struct merge_worker){.pid = -1, .file = -1};
		error = start_worker(&list[started], inputs, started, workers, options, problem);
	}
	for (unsigned i = 0; i < started; i++) {
		if (list[i].pid > 0)
			error = finish_worker(job, &list[i], error, problem);
		if (list[i].file >= 0)
			close(list[i].file);
	}
	return error;
}
