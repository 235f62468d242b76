/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Shorthands of the SQL of tables.h and views.h, which would be twice as long without them, in the
 * library and in the kymo command. "@x a b;" stands for the text of the letter x, with a for $1 and
 * b for $2; texts may have shorthands themselves (schema.c expands them).
 */
#ifndef KYMO_LIBKYMO_SDK_ROCPD_SHORTHANDS_H
#define KYMO_LIBKYMO_SDK_ROCPD_SHORTHANDS_H

#define SQL_SHORTHAND_ARGUMENTS_MAX 4

static const struct sql_shorthand {
	char letter;
	const char *text;
} sql_shorthands[] = {
	/* columns of tables */
	{'n', "nid INTEGER NOT NULL REFERENCES rocpd_info_node{{uuid}}(id), "},
	{'p', "pid INTEGER NOT NULL REFERENCES rocpd_info_process{{uuid}}(id), "},
	{'r', "$1 INTEGER REFERENCES rocpd_$2{{uuid}}(id), "},
	{'q', "@r queue_id info_queue;@r stream_id info_stream;"},
	{'t', "start BIGINT NOT NULL, end BIGINT NOT NULL, "},
	{'x', "extdata TEXT DEFAULT '{}'"},
	/* the row $2 of table $1 that column $3 of $4 has the id of */
	{'J', " JOIN rocpd_$1 $2 ON $2.id = $4.$3 AND $2.guid = $4.guid"},
	{'L', " LEFT@J $1 $2 $3 $4;"},
	{'P', "@J info_process P pid $1;"},
	{'T', "@J info_thread T tid $1;"},
	{'E', "@J event E event_id $1;"},
	{'Q', "@L info_queue Q queue_id $1;@L info_stream ST stream_id $1;"},
	{'R', " FROM rocpd_sample R@J track TR track_id R;@E R;@P TR;@T TR;"},
	{'M', " FROM rocpd_pmc_event PMC_E@J info_pmc PMC_I pmc_id PMC_E;@E PMC_E; JOIN "
	      "rocpd_kernel_dispatch K ON K.event_id = PMC_E.event_id AND K.guid = PMC_E.guid"},
	/* columns of views */
	{'S', "(SELECT string FROM rocpd_string RS WHERE RS.id = $2.$1 AND RS.guid = $2.guid)"},
	{'C', "@S category_id E; AS category, "},
	{'X', "json_extract($1.extdata, '$.$2') AS $3"},
	{'K', "E.stack_id, E.parent_stack_id, E.correlation_id AS corr_id"},
	{'V', "@K;, E.extdata, E.call_stack, E.line_info"},
	{'N', "N.id AS nid, N.machine_id, N.system_name, N.hostname, N.release AS system_release, "
	      "N.version AS system_version, P.guid, P.ppid, P.pid, "},
	{'A', "$1.absolute_index AS $2agent_abs_index, $1.logical_index AS $2agent_log_index, "
	      "$1.type_index AS $2agent_type_index, $1.type AS $2agent_type, "},
	{'D', "$1.start, $1.end, ($1.end - $1.start) AS duration, "},
};

#endif
