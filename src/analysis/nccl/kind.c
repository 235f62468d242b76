/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Records of the NCCL plugin as a kind of data of a session. They have files of their own.
 */
#include "analysis/nccl/nccl.h"

#include "analysis/session_kind.h"
#include "analysis/session_private.h"

/* The plugin can be loaded without the rest of kymo. */
static void set_session_times_if_nccl_only(struct session *session, const struct nccl_data *nccl)
{
	if (!nccl || !nccl->process_count || session->process_count)
		return;
	session->start_ns = nccl->start_ns;
	session->end_ns = nccl->end_ns;
	session->realtime_minus_boottime_ns = nccl->hosts[0].realtime_minus_boottime_ns;
}

static int nccl_kind_read_data_of_session(struct session *session, struct problem *problem)
{
	struct nccl_data *nccl = NULL;
	int result = nccl_data_read_directory(session->directory, &nccl, problem);

	if (result < 0)
		return result;
	if (nccl && nccl->process_count && session->has_only_part_of_time) {
		result = session_add_problem_line(
			session, "what NCCL did is left out: it is shown without --from and --to, "
				 "for the whole run only");
		nccl_data_free(nccl);
		nccl = NULL;
	}
	session_set_kind_data(session, NCCL_DATA_KIND_NAME, nccl);
	set_session_times_if_nccl_only(session, nccl);
	return result;
}

static void nccl_kind_free_data_of_session(struct session *session)
{
	nccl_data_free(session_get_nccl_data(session));
}

const struct session_data_kind_operations nccl_data_kind_operations = {
	.name = NCCL_DATA_KIND_NAME,
	.open = nccl_kind_read_data_of_session,
	.free = nccl_kind_free_data_of_session};
