/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See attach.h. All plans are made before libkymo is loaded into the process; then it
 * maps the stubs, while the program goes on, and says for which modules; and all patches are
 * written in one stop (inject/commit.h). At the end they are taken back from outside in the same
 * way.
 */
#include "planning/attach.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "console/message.h"
#include "inject/commit.h"
#include "planning/client.h"
#include "planning/file.h"
#include "planning/lists.h"
#include "planning/server.h"
#include "runs/attach.h"

#define ATTACH_TIMEOUT_SECONDS 120 /* until everything is mapped and written */

/* A module that a process was given the plan of: libraries that it opens later it patches itself.
 */
struct handed_out_plan {
	pid_t pid;
	uint64_t bias;
	const struct planned_module *module;
	bool waits; /* is to be written with the next PLAN_REQUEST_DONE */
};

struct instrument_attach_state {
	struct instrumentation_request *request;
	const struct instrument_command_options *options;
	struct plan_server *server;
	char directory[4096];
	pid_t pid;

	pthread_mutex_t lock; /* held while anything is written */
	pthread_cond_t changed;
	bool is_planning_done; /* requests are not ours any more */
	bool is_attached;      /* no thread of the process is held */
	bool is_leaving;
	bool done; /* the first PLAN_REQUEST_DONE was answered, with: */
	int error;
	struct problem problem;
	struct commit_result result;
	struct handed_out_plan *handed_out_plans;
	size_t handed_out_plan_count, handed_out_plan_capacity;
};

/* ---- what the process asks for; on the server's thread, locked ---- */

static int record_handed_out_plan(struct instrument_attach_state *attach,
				  const struct plan_request *request,
				  const struct planned_module *module, struct problem *problem)
{
	for (size_t i = 0; i < attach->handed_out_plan_count; i++) {
		const struct handed_out_plan *given = &attach->handed_out_plans[i];

		if (given->pid == (pid_t)request->pid && given->bias == request->bias &&
		    given->module == module)
			return 0;
	}
	if (attach->handed_out_plan_count == attach->handed_out_plan_capacity) {
		size_t capacity = attach->handed_out_plan_capacity
					  ? 2 * attach->handed_out_plan_capacity
					  : 64;
		struct handed_out_plan *larger =
			reallocarray(attach->handed_out_plans, capacity, sizeof(*larger));

		if (!larger)
			return problem_set(problem, -ENOMEM, "out of memory");
		attach->handed_out_plans = larger;
		attach->handed_out_plan_capacity = capacity;
	}
	attach->handed_out_plans[attach->handed_out_plan_count++] =
		(struct handed_out_plan){(pid_t)request->pid, request->bias, module, false};
	return 0;
}

static void mark_plan_for_patching(struct instrument_attach_state *attach,
				   const struct plan_request *request,
				   const struct planned_module *module)
{
	for (size_t i = 0; i < attach->handed_out_plan_count; i++) {
		struct handed_out_plan *given = &attach->handed_out_plans[i];

		if (given->pid == (pid_t)request->pid && given->bias == request->bias &&
		    given->module == module)
			given->waits = true;
	}
}

/* Those of `pid` that wait; or all of it, and of the process that it may be a child of. */
static struct patched_module *
collect_modules_to_patch_or_restore(struct instrument_attach_state *attach, pid_t pid, bool all,
				    size_t *ret_count)
{
	struct patched_module *list = calloc(attach->handed_out_plan_count + 1, sizeof(*list));

	*ret_count = 0;
	for (size_t i = 0; list && i < attach->handed_out_plan_count; i++) {
		struct handed_out_plan *given = &attach->handed_out_plans[i];
		bool wanted = all ? given->pid == pid || given->pid == attach->pid
				  : given->pid == pid && given->waits;

		if (!wanted)
			continue;
		given->waits = false;
		list[(*ret_count)++] =
			(struct patched_module){.plan = given->module->plan.header,
						.modes = given->module->selection.modes,
						.bias = given->bias};
	}
	return list;
}

static int write_patches_of_marked_plans(struct instrument_attach_state *attach, pid_t pid,
					 struct problem *problem)
{
	size_t count;
	struct patched_module *list =
		collect_modules_to_patch_or_restore(attach, pid, false, &count);
	struct commit_result result = {0};
	int error = list ? 0 : problem_set(problem, -ENOMEM, "out of memory");

	if (!error && count)
		error = commit_write_patches(pid, list, count, &result, problem);
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
static void wait_until_attached(struct instrument_attach_state *attach)
{
	while (!attach->is_attached && !attach->is_leaving)
		pthread_cond_wait(&attach->changed, &attach->lock);
}

static int handle_plan_request(void *context, const struct plan_request *request,
			       const struct planned_module *module, struct problem *problem)
{
	struct instrument_attach_state *attach = context;
	int error = 0;

	pthread_mutex_lock(&attach->lock);
	if (attach->is_planning_done && request->kind == PLAN_REQUEST_DONE)
		wait_until_attached(attach);
	if (attach->is_leaving)
		error = problem_set(problem, -ESHUTDOWN, "kymo is leaving");
	else if (attach->is_planning_done && request->kind == PLAN_REQUEST_MODULE)
		error = record_handed_out_plan(attach, request, module, problem);
	else if (attach->is_planning_done && request->kind == PLAN_REQUEST_COMMIT)
		mark_plan_for_patching(attach, request, module);
	else if (attach->is_planning_done && request->kind == PLAN_REQUEST_DONE)
		error = write_patches_of_marked_plans(attach, (pid_t)request->pid, problem);
	pthread_mutex_unlock(&attach->lock);
	return error;
}

/* ---- beside attaching ---- */

static int attach_start_plan_server(void *context, struct attach_session *session,
				    const struct injection_target *target, struct problem *problem)
{
	struct instrument_attach_state *attach = context;
	struct launch *launch = &session->launch;
	struct plan_server_options options;
	int error;

	attach->pid = target->pid;
	snprintf(attach->directory, sizeof(attach->directory), "%s/instrumentation",
		 launch->session);
	if (mkdir(attach->directory, 0777) && errno != EEXIST)
		return problem_set(problem, -errno, "cannot make '%s': %s", attach->directory,
				   strerror(errno));
	/* The process reads there, whatever our umask; the directory stays ours. */
	if (target->user != geteuid() &&
	    (chown(attach->directory, (uid_t)-1, target->group) || chmod(attach->directory, 0750)))
		return problem_set(problem, -errno, "cannot let user %u read '%s': %s",
				   (unsigned)target->user, attach->directory, strerror(errno));
	attach->request->setup.directory = attach->directory;
	options = (struct plan_server_options){.instrumentation_setup = attach->request->setup,
					       .session = launch->session,
					       .write = handle_plan_request,
					       .context = attach};
	error = plan_server_start(&options, &attach->server, problem);
	if (error)
		return error;
	launch->plan_socket_path = plan_server_get_socket_path(attach->server);
	if (target->user != geteuid() &&
	    chown(launch->plan_socket_path, target->user, target->group))
		return problem_set(problem, -errno, "cannot give '%s' to user %u: %s",
				   launch->plan_socket_path, (unsigned)target->user,
				   strerror(errno));
	error = plan_client_request_plans_of_process(launch->plan_socket_path, target->pid,
						     problem);
	pthread_mutex_lock(&attach->lock);
	attach->is_planning_done = true;
	pthread_mutex_unlock(&attach->lock);
	return error;
}

static void print_stop_time(const struct commit_result *result)
{
	double longest_ms = (double)result->longest_stop_ns / 1e6;

	if (result->stop_count > 1)
		message_note("%u functions instrumented; the process was stopped for at most %.1f "
			     "ms, %u times, until kymo could stop every thread",
			     result->sites, longest_ms, result->stop_count);
	else
		message_note("%u functions instrumented; the process was stopped for %.1f ms",
			     result->sites, longest_ms);
}

static int attach_wait_until_patched(void *context, struct problem *problem)
{
	struct instrument_attach_state *attach = context;
	struct timespec end;
	int error = 0;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += ATTACH_TIMEOUT_SECONDS;
	pthread_mutex_lock(&attach->lock);
	attach->is_attached = true;
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
			    "process %d did not ask what to instrument (is it stopped?)",
			    (int)attach->pid);
	else if (attach->error)
		error = problem_set(problem, attach->error, "%s", attach->problem.text);
	else
		print_stop_time(&attach->result);
	if (!error && attach->result.skipped)
		message_warning("%u functions are not instrumented: their code in memory differs "
				"from the file, or a thread was executing the bytes to be replaced",
				attach->result.skipped);
	pthread_mutex_unlock(&attach->lock);
	return error;
}

/* What a library that is opened just now makes of its answer is found the second time, when the
 * process has left. */
static void attach_restore_code_on_leave(void *context, pid_t pid, bool left)
{
	struct instrument_attach_state *attach = context;
	struct commit_result result;
	struct patched_module *list;
	struct problem problem;
	size_t count;

	(void)left;
	pthread_mutex_lock(&attach->lock);
	attach->is_leaving = true;
	pthread_cond_broadcast(&attach->changed);
	list = collect_modules_to_patch_or_restore(attach, pid, true, &count);
	if (list && count && !kill(pid, 0) &&
	    commit_restore_code(pid, list, count, &result, &problem) && !kill(pid, 0))
		message_error("%s; its functions stay patched, and do nothing", problem.text);
	free(list);
	pthread_mutex_unlock(&attach->lock);
}

static void attach_stop_server_and_report(void *context, struct launch *launch)
{
	struct instrument_attach_state *attach = context;
	struct function_list_output_args lists = {
		.labels = attach->request->setup.signature_part_flags,
		.rules = attach->request->rules};
	struct problem problem;

	pthread_mutex_lock(&attach->lock);
	attach->is_leaving = true;
	pthread_cond_broadcast(&attach->changed);
	pthread_mutex_unlock(&attach->lock);
	if (!attach->server)
		return;
	plan_server_stop(attach->server);
	lists.modules = plan_server_get_modules(attach->server, &lists.count);
	if (attach->done && !attach->error &&
	    instrument_print_and_write_lists(&lists, launch, attach->options, stderr, &problem))
		message_error("%s", problem.text);
}

int instrument_running_process(struct effective_settings *settings,
			       struct instrumentation_request *request,
			       const struct instrument_command_options *options)
{
	struct instrument_attach_state attach = {.request = request,
						 .options = options,
						 .lock = PTHREAD_MUTEX_INITIALIZER,
						 .changed = PTHREAD_COND_INITIALIZER};
	struct attach_callbacks beside = {.start = attach_start_plan_server,
					  .attached = attach_wait_until_patched,
					  .leave_process = attach_restore_code_on_leave,
					  .end = attach_stop_server_and_report,
					  .context = &attach};
	int status = attach_and_profile_process(options->pid, settings, &beside);

	plan_server_destroy(attach.server);
	free(attach.handed_out_plans);
	return status;
}
