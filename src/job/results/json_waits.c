/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See json_waits.h.
 */
#include "job/results/json_waits.h"

#include "job/results/waits.h"

static void put_states(struct json_writer *json, const char *key, const uint64_t *values)
{
	json_object_begin(json, key);
	for (unsigned i = 0; i < JOB_WAIT_STATE_COUNT; i++)
		json_put_count(json, job_wait_state_get_key((enum job_wait_state)i), values[i]);
	json_object_end(json);
}

static void put_row(struct json_writer *json, const struct job_wait_row *row)
{
	json_object_begin(json, NULL);
	json_put_text(json, "state", job_wait_state_get_key(row->state));
	json_put_count(json, "site", row->name);
	json_put_count(json, "cause_rank", row->cause_rank);
	json_put_count(json, "cause_site", row->cause_name);
	json_put_count(json, "wait_ns", row->wait_ns);
	json_put_count(json, "calls", row->calls);
	json_put_count(json, "longest_ns", row->longest_ns);
	json_put_count(json, "longest_rank", row->longest_rank);
	json_object_end(json);
}

static void put_ranks(struct json_writer *json, const struct job *job,
		      const struct job_waits *waits)
{
	json_array_begin(json, "ranks");
	for (uint32_t i = 0; i < job->rank_count; i++) {
		json_object_begin(json, NULL);
		json_put_count(json, "rank", job->ranks[i].rank);
		put_states(json, "wait_ns", waits->rank_ns[i]);
		json_put_count(json, "caused_ns", waits->caused_ns[i]);
		json_object_end(json);
	}
	json_array_end(json);
}

static void put_found(struct json_writer *json, const struct job *job,
		      const struct job_waits *waits)
{
	put_states(json, "wait_ns", waits->state_ns);
	put_states(json, "calls", waits->state_calls);
	json_put_count(json, "messages", waits->messages);
	json_put_count(json, "collectives", waits->collectives);
	json_put_count(json, "unmatched", waits->unmatched);
	json_put_count(json, "clock_error_ns", waits->clock_error_ns);
	json_put_count(json, "below_clock_error", waits->below_clock_error);
	json_put_count(json, "hosts_without_clock", waits->hosts_without_clock);
	json_array_begin(json, "rows");
	for (uint32_t i = 0; i < waits->row_count; i++)
		put_row(json, &waits->rows[i]);
	json_array_end(json);
	put_ranks(json, job, waits);
}

int json_put_job_waits(struct json_writer *json, const struct job *job)
{
	static const char *const verdicts[] = {[JOB_WAITS_NO_EVENTS] = "no_events",
					       [JOB_WAITS_INCOMPLETE] = "incomplete",
					       [JOB_WAITS_FOUND] = "found"};
	struct job_waits waits;
	int error = job_find_waits(job, &waits);

	if (error)
		return error;
	json_object_begin(json, "mpi_waits");
	json_put_text(json, "verdict", verdicts[waits.verdict]);
	json_put_count(json, "not_compared", waits.cut);
	json_put_count(json, "unknown", waits.unknown);
	if (waits.verdict == JOB_WAITS_FOUND)
		put_found(json, job, &waits);
	json_object_end(json);
	job_waits_deinit(&waits);
	return 0;
}
