/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What results.db has beside the tables and views of rocpd. Rows are put into the tables of the run
 * ({{uuid}} is its suffix); views and readers go by the names without it.
 */
#ifndef KYMO_OUTPUT_COUNTERS_SCHEMA_H
#define KYMO_OUTPUT_COUNTERS_SCHEMA_H

/* A row for each reading of a device and counter. */
static const char device_counters_view_sql[] =
	"CREATE VIEW device_counters AS SELECT sample.timestamp, process.pid, agent.absolute_index "
	"AS agent_abs_index, counter.name AS counter_name, SUM(value.value) AS value FROM "
	"rocpd_sample sample JOIN rocpd_pmc_event value ON value.event_id = sample.event_id AND "
	"value.guid = sample.guid JOIN rocpd_info_pmc counter ON counter.id = value.pmc_id AND "
	"counter.guid = value.guid JOIN rocpd_info_process process ON process.id = counter.pid AND "
	"process.guid = counter.guid LEFT JOIN rocpd_info_agent agent ON agent.id = "
	"counter.agent_id AND agent.guid = counter.guid GROUP BY sample.id, value.pmc_id;";

enum sql_insert_statement_kind {
	INSERT_METADATA,
	INSERT_STRING,
	INSERT_NODE,
	INSERT_PROCESS,
	INSERT_THREAD,
	INSERT_AGENT,
	INSERT_QUEUE,
	INSERT_COUNTER,
	INSERT_KERNEL,
	INSERT_EVENT,
	INSERT_DISPATCH,
	INSERT_TRACK,
	INSERT_SAMPLE,
	INSERT_VALUE,
	SQL_INSERT_STATEMENT_COUNT
};

#define STRING_ID_SQL(place) "(SELECT id FROM rocpd_string{{uuid}} WHERE string = " place ")"

static const char *const sql_insert_statement_texts[SQL_INSERT_STATEMENT_COUNT] = {
	[INSERT_METADATA] = "INSERT INTO rocpd_metadata{{uuid}}(tag, value) VALUES(?1, ?2)",
	[INSERT_STRING] = "INSERT OR IGNORE INTO rocpd_string{{uuid}}(string) VALUES(?1)",
	[INSERT_NODE] = "INSERT INTO rocpd_info_node{{uuid}}(id, hash, machine_id, hostname) "
			"VALUES(1, 1, ?1, ?1)",
	[INSERT_PROCESS] = "INSERT INTO rocpd_info_process{{uuid}}(id, nid, pid, start, command) "
			   "VALUES(?1, 1, ?2, ?3, ?4)",
	[INSERT_THREAD] = "INSERT OR IGNORE INTO rocpd_info_thread{{uuid}}(id, nid, pid, tid) "
			  "VALUES(?1, 1, ?2, ?3)",
	[INSERT_AGENT] = "INSERT INTO rocpd_info_agent{{uuid}}(id, nid, pid, type, absolute_index, "
			 "logical_index, type_index, name, model_name, vendor_name, product_name) "
			 "VALUES(?1, 1, ?2, ?3, ?4, ?4, ?5, ?6, ?7, ?8, ?7)",
	[INSERT_QUEUE] = "INSERT OR IGNORE INTO rocpd_info_queue{{uuid}}(id, nid, pid, name) "
			 "VALUES(?1, 1, ?2, ?3)",
	[INSERT_COUNTER] =
		"INSERT INTO rocpd_info_pmc{{uuid}}(id, nid, pid, agent_id, target_arch, "
		"name, symbol, description, block, expression, value_type, is_constant, "
		"is_derived) "
		"VALUES(?1, 1, ?2, ?3, ?4, ?5, ?5, ?6, ?7, ?8, 'ABS', ?9, ?10)",
	[INSERT_KERNEL] = "INSERT OR IGNORE INTO rocpd_info_kernel_symbol{{uuid}}(id, nid, pid, "
			  "kernel_name, display_name) VALUES(?1, 1, ?2, ?3, ?4)",
	[INSERT_EVENT] = "INSERT INTO rocpd_event{{uuid}}(id, stack_id, extdata, "
			 "category_id) VALUES(?1, ?2, ?3, " STRING_ID_SQL("?4") ")",
	[INSERT_DISPATCH] =
		"INSERT INTO rocpd_kernel_dispatch{{uuid}}(nid, pid, tid, agent_id, kernel_id, "
		"dispatch_id, queue_id, start, end, private_segment_size, group_segment_size, "
		"workgroup_size_x, workgroup_size_y, workgroup_size_z, grid_size_x, grid_size_y, "
		"grid_size_z, event_id, region_name_id) VALUES(1, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, "
		"?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, " STRING_ID_SQL("?18") ")",
	[INSERT_TRACK] = "INSERT OR IGNORE INTO rocpd_track{{uuid}}(id, nid, pid, name_id) "
			 "VALUES(?1, 1, ?2, " STRING_ID_SQL("?3") ")",
	[INSERT_SAMPLE] = "INSERT INTO rocpd_sample{{uuid}}(track_id, timestamp, event_id) "
			  "VALUES(?1, ?2, ?3)",
	[INSERT_VALUE] = "INSERT INTO rocpd_pmc_event{{uuid}}(event_id, pmc_id, value, extdata) "
			 "VALUES(?1, ?2, ?3, ?4)",
};

#undef STRING_ID_SQL

#endif
