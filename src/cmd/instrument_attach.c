/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See instrument_attach.h. All plans are made before libkymo is loaded into the process; then it
 * maps the stubs, while the program goes on, and says for which modules; and all patches are
 * written in one stop (inject/commit.h). At the end they are taken back from outside in the same
 * way.
 */
#include "cmd/instrument_attach.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cmd/attach.h"
#include "cmd/instrument_file.h"
#include "cmd/instrument_lists.h"
#include "cmd/message.h"
#include "cmd/plan_client.h"
#include "cmd/plan_server.h"
#include "inject/commit.h"

#define PATIENCE_SECONDS 120 /* until everything is mapped and written */

/* A module that a process was given the plan of: libraries that it opens later it patches itself.
 */
struct given {
	pid_t pid;
	uint64_t bias;
	const struct instrument_module *module;
	bool waits; /* is to be written with the next PLAN_REQUEST_DONE */
};

struct instrument_attach {
	struct instrument_request *request;
	const struct instrument_options *options;
	struct plan_server *server;
	char directory[4096];
	pid_t pid;

	pthread_mutex_t lock; /* held while anything is written */
	pthread_cond_t changed;
	bool planned;  /* requests are not ours any more */
	bool attached; /* no thread of the process is held */
	bool leaving;
	bool done; /* the first PLAN_REQUEST_DONE was answered, with: */
	int error;
	struct problem problem;
	struct commit_result result;
	struct given *given;
	size_t given_count, given_capacity;
};

/* ---- what the process asks for; on the server's thread, locked ---- */

static int give(struct instrument_attach *attach, const struct plan_request *request,
		const struct instrument_module *module, struct problem *problem)
{
	for (size_t i = 0; i < attach->given_count; i++) {
		const struct given *given = &attach->given[i];

		if (given->pid == (pid_t)request->pid && given->bias == request->bias &&
		    given->module == module)
			return 0;
	}
	if (attach->given_count == attach->given_capacity) {
		size_t capacity = attach->given_capacity ? 2 * attach->given_capacity : 64;
		struct given *larger = reallocarray(attach->given, capacity, sizeof(*larger));

		if (!larger)
			return problem_set(problem, -ENOMEM, "out of memory");
		attach->given = larger;
		attach->given_capacity = capacity;
	}
	attach->given[attach->given_count++] =
		(struct given){(pid_t)request->pid, request->bias, module, false};
	return 0;
}

static void mark_waiting(struct instrument_attach *attach, const struct plan_request *request,
			 const struct instrument_module *module)
{
	for (size_t i = 0; i < attach->given_count; i++) {
		struct given *given = &attach->given[i];

		if (given->pid == (pid_t)request->pid && given->bias == request->bias &&
		    given->module == module)
			given->waits = true;
	}
}

/* Those of `pid` that wait; or all of it, and of the process that it may be a child of. */
static struct commit_module *list_modules(struct instrument_attach *attach, pid_t pid, bool all,
					  size_t *ret_count)
{
	struct commit_module *list = calloc(attach->given_count + 1, sizeof(*list));

	*ret_count = 0;
	for (size_t i = 0; list && i < attach->given_count; i++) {
		struct given *given = &attach->given[i];
		bool wanted = all ? given->pid == pid || given->pid == attach->pid
				  : given->pid == pid && given->waits;

		if (!wanted)
			continue;
		given->waits = false;
		list[(*ret_count)++] =
			(struct commit_module){.plan = given->module->plan.header,
					       .modes = given->module->selection.modes,
					       .bias = given->bias};
	}
	return list;
}

static int commit(struct instrument_attach *attach, pid_t pid, struct problem *problem)
{
	size_t count;
	struct commit_module *list = list_modules(attach, pid, false, &count);
	struct commit_result result = {0};
	int error = list ? 0 : problem_set(problem, -ENOMEM, "out of memory");

	if (!error && count)
		error = commit_apply(pid, list, count, &result, problem);
	free(list);
	if (attach->done)
		return error;
	attach->done = true;
	attach->error = error;
	attach->result = result;
	if (error)
		attach->problem = *problem;
	pthread_cond_broadcast(&attach->changed);
	return error;
}

/* Not while the borrowed thread is held, for who holds it. */
static void wait_until_attached(struct instrument_attach *attach)
{
	while (!attach->attached && !attach->leaving)
		pthread_cond_wait(&attach->changed, &attach->lock);
}

static int follow(void *context, const struct plan_request *request,
		  const struct instrument_module *module, struct problem *problem)
{
	struct instrument_attach *attach = context;
	int error = 0;

	pthread_mutex_lock(&attach->lock);
	if (attach->planned && request->kind == PLAN_REQUEST_DONE)
		wait_until_attached(attach);
	if (attach->leaving)
		error = problem_set(problem, -ESHUTDOWN, "kymo is leaving");
	else if (attach->planned && request->kind == PLAN_REQUEST_MODULE)
		error = give(attach, request, module, problem);
	else if (attach->planned && request->kind == PLAN_REQUEST_COMMIT)
		mark_waiting(attach, request, module);
	else if (attach->planned && request->kind == PLAN_REQUEST_DONE)
		error = commit(attach, (pid_t)request->pid, problem);
	pthread_mutex_unlock(&attach->lock);
	return error;
}

/* ---- beside attaching ---- */

static int on_start(void *context, struct attach_session *session,
		    const struct inject_target *target, struct problem *problem)
{
	struct instrument_attach *attach = context;
	struct launch *launch = &session->launch;
	struct plan_server_options options;
	int error;

	attach->pid = target->pid;
	snprintf(attach->directory, sizeof(attach->directory), "%s/instrumentation",
		 launch->session);
	if (mkdir(attach->directory, 0777) && errno != EEXIST)
		return problem_set(problem, -errno, "cannot make '%s': %s", attach->directory,
				   strerror(errno));
	attach->request->setup.directory = attach->directory;
	options = (struct plan_server_options){.setup = attach->request->setup,
					       .session = launch->session,
					       .write = follow,
					       .context = attach};
	error = plan_server_start(&options, &attach->server, problem);
	if (error)
		return error;
	launch->plan_socket = plan_server_socket(attach->server);
	if (target->user != geteuid() && chown(launch->plan_socket, target->user, target->group))
		return problem_set(problem, -errno, "cannot give '%s' to user %u: %s",
				   launch->plan_socket, (unsigned)target->user, strerror(errno));
	error = plan_client_ask_all(launch->plan_socket, target->pid, problem);
	pthread_mutex_lock(&attach->lock);
	attach->planned = true;
	pthread_mutex_unlock(&attach->lock);
	return error;
}

static void tell_stop(const struct commit_result *result)
{
	double longest_ms = (double)result->stopped_ns / 1e6;

	if (result->stops > 1)
		message_note("%u functions instrumented; the process stood still for %.1f ms at "
			     "most, %u times, until all of its threads were met",
			     result->sites, longest_ms, result->stops);
	else
		message_note("%u functions instrumented; the process stood still for %.1f ms",
			     result->sites, longest_ms);
}

static int on_attached(void *context, struct problem *problem)
{
	struct instrument_attach *attach = context;
	struct timespec end;
	int error = 0;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += PATIENCE_SECONDS;
	pthread_mutex_lock(&attach->lock);
	attach->attached = true;
	pthread_cond_broadcast(&attach->changed);
	while (!attach->done && !error && !kill(attach->pid, 0)) {
		struct timespec moment;

		clock_gettime(CLOCK_REALTIME, &moment);
		if (moment.tv_sec > end.tv_sec)
			error = -ETIMEDOUT;
		moment.tv_sec++;
		pthread_cond_timedwait(&attach->changed, &attach->lock, &moment);
	}
	if (error)
		problem_set(problem, error,
			    "process %d does not ask what to instrument (is it stopped?)",
			    (int)attach->pid);
	else if (attach->error)
		error = problem_set(problem, attach->error, "%s", attach->problem.text);
	else
		tell_stop(&attach->result);
	if (!error && attach->result.skipped)
		message_warning("%u functions are not instrumented: their code in the process is "
				"not that of the file, or a thread was in the midst of what would "
				"be replaced",
				attach->result.skipped);
	pthread_mutex_unlock(&attach->lock);
	return error;
}

/* What a library that is opened just now makes of its answer is found the second time, when the
 * process has left. */
static void on_leave(void *context, pid_t pid, bool left)
{
	struct instrument_attach *attach = context;
	struct commit_result result;
	struct commit_module *list;
	struct problem problem;
	size_t count;

	(void)left;
	pthread_mutex_lock(&attach->lock);
	attach->leaving = true;
	pthread_cond_broadcast(&attach->changed);
	list = list_modules(attach, pid, true, &count);
	if (list && count && !kill(pid, 0) && commit_undo(pid, list, count, &result, &problem) &&
	    !kill(pid, 0))
		message_error("%s; its functions stay patched, and do nothing", problem.text);
	free(list);
	pthread_mutex_unlock(&attach->lock);
}

static void on_end(void *context, struct launch *launch)
{
	struct instrument_attach *attach = context;
	struct instrument_lists lists = {.labels = attach->request->setup.labels,
					 .rules = attach->request->rules};
	struct problem problem;

	pthread_mutex_lock(&attach->lock);
	attach->leaving = true;
	pthread_cond_broadcast(&attach->changed);
	pthread_mutex_unlock(&attach->lock);
	if (!attach->server)
		return;
	plan_server_stop(attach->server);
	lists.modules = plan_server_modules(attach->server, &lists.count);
	if (attach->done && !attach->error &&
	    instrument_report(&lists, launch, attach->options, stderr, &problem))
		message_error("%s", problem.text);
}

int instrument_attach(struct resolved *settings, struct instrument_request *request,
		      const struct instrument_options *options)
{
	struct instrument_attach attach = {.request = request,
					   .options = options,
					   .lock = PTHREAD_MUTEX_INITIALIZER,
					   .changed = PTHREAD_COND_INITIALIZER};
	struct attach_beside beside = {.start = on_start,
				       .attached = on_attached,
				       .leave = on_leave,
				       .end = on_end,
				       .context = &attach};
	int status = attach_process(options->pid, settings, &beside);

	plan_server_destroy(attach.server);
	free(attach.given);
	return status;
}
