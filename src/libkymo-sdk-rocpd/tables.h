/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The tables of rocpd, schema 3: names and columns are upstream's. Each begins with its id and the
 * guid of its run. "@..;" is in shorthands.h.
 */
#ifndef KYMO_LIBKYMO_SDK_ROCPD_TABLES_H
#define KYMO_LIBKYMO_SDK_ROCPD_TABLES_H

#define NODE_ID_COLUMN_SQL              "@n;"
#define PROCESS_ID_COLUMN_SQL           "@p;"
#define THREAD_ID_COLUMN_SQL            "@r tid info_thread;"
#define AGENT_ID_COLUMN_SQL             "@r agent_id info_agent;"
#define QUEUE_AND_STREAM_ID_COLUMNS_SQL "@q;"
#define EVENT_ID_COLUMN_SQL             "@r event_id event;"
#define REGION_NAME_ID_COLUMN_SQL       "@r region_name_id string;"
#define START_AND_END_COLUMNS_SQL       "@t;"
#define EXTDATA_COLUMN_SQL              "@x;"

static const struct rocpd_table_definition {
	const char *name, *column_definitions_sql;
} rocpd_table_definitions[] = {
	{"metadata", "tag TEXT NOT NULL, value TEXT NOT NULL"},
	{"string", "string TEXT NOT NULL UNIQUE"},
	{"info_node", "hash BIGINT NOT NULL UNIQUE, machine_id TEXT NOT NULL UNIQUE, system_name "
		      "TEXT, hostname TEXT, release TEXT, version TEXT, hardware_name TEXT, "
		      "domain_name TEXT"},
	{"info_process", NODE_ID_COLUMN_SQL
	 "ppid INTEGER, pid INTEGER NOT NULL, init BIGINT, fini BIGINT, start "
	 "BIGINT, end BIGINT, command TEXT, environment TEXT, " EXTDATA_COLUMN_SQL},
	{"info_thread", NODE_ID_COLUMN_SQL
	 "ppid INTEGER, " PROCESS_ID_COLUMN_SQL
	 "tid INTEGER NOT NULL, name TEXT, start BIGINT, end BIGINT, " EXTDATA_COLUMN_SQL},
	{"info_agent", NODE_ID_COLUMN_SQL PROCESS_ID_COLUMN_SQL
	 "type TEXT CHECK(type IN ('CPU', 'GPU')), absolute_index INTEGER, "
	 "logical_index INTEGER, type_index INTEGER, uuid INTEGER, name TEXT, "
	 "model_name TEXT, vendor_name TEXT, product_name TEXT, user_name "
	 "TEXT, " EXTDATA_COLUMN_SQL},
	{"info_queue", NODE_ID_COLUMN_SQL PROCESS_ID_COLUMN_SQL "name TEXT, " EXTDATA_COLUMN_SQL},
	{"info_stream", NODE_ID_COLUMN_SQL PROCESS_ID_COLUMN_SQL "name TEXT, " EXTDATA_COLUMN_SQL},
	{"info_pmc", NODE_ID_COLUMN_SQL PROCESS_ID_COLUMN_SQL AGENT_ID_COLUMN_SQL
	 "target_arch TEXT CHECK(target_arch IN ('CPU', 'GPU')), event_code INTEGER, instance_id "
	 "INTEGER, name TEXT NOT NULL, symbol TEXT NOT NULL, description TEXT, long_description "
	 "TEXT, component TEXT, units TEXT, value_type TEXT CHECK(value_type IN ('ABS', 'ACCUM', "
	 "'RELATIVE')), block TEXT, expression TEXT, is_constant INTEGER, is_derived "
	 "INTEGER, " EXTDATA_COLUMN_SQL},
	{"info_code_object", NODE_ID_COLUMN_SQL PROCESS_ID_COLUMN_SQL AGENT_ID_COLUMN_SQL
	 "uri TEXT, load_base BIGINT, load_size BIGINT, load_delta BIGINT, "
	 "storage_type TEXT CHECK(storage_type IN ('FILE', 'MEMORY')), " EXTDATA_COLUMN_SQL},
	{"info_kernel_symbol", NODE_ID_COLUMN_SQL PROCESS_ID_COLUMN_SQL
	 "code_object_id INTEGER REFERENCES rocpd_info_code_object{{uuid}}(id), kernel_name TEXT, "
	 "display_name TEXT, kernel_object INTEGER, kernarg_segment_size INTEGER, "
	 "kernarg_segment_alignment INTEGER, group_segment_size INTEGER, private_segment_size "
	 "INTEGER, sgpr_count INTEGER, arch_vgpr_count INTEGER, accum_vgpr_count "
	 "INTEGER, " EXTDATA_COLUMN_SQL},
	{"track", NODE_ID_COLUMN_SQL
	 "pid INTEGER REFERENCES rocpd_info_process{{uuid}}(id), " THREAD_ID_COLUMN_SQL
	 "name_id INTEGER REFERENCES rocpd_string{{uuid}}(id), " EXTDATA_COLUMN_SQL},
	{"event", "category_id INTEGER REFERENCES rocpd_string{{uuid}}(id), stack_id INTEGER, "
		  "parent_stack_id INTEGER, correlation_id INTEGER, call_stack TEXT DEFAULT '{}', "
		  "line_info TEXT DEFAULT '{}', " EXTDATA_COLUMN_SQL},
	{"arg",
	 "event_id INTEGER NOT NULL REFERENCES rocpd_event{{uuid}}(id), position INTEGER "
	 "NOT NULL, type TEXT NOT NULL, name TEXT NOT NULL, value TEXT, " EXTDATA_COLUMN_SQL},
	{"pmc_event",
	 EVENT_ID_COLUMN_SQL "pmc_id INTEGER NOT NULL REFERENCES "
			     "rocpd_info_pmc{{uuid}}(id), value REAL, " EXTDATA_COLUMN_SQL},
	{"region",
	 NODE_ID_COLUMN_SQL PROCESS_ID_COLUMN_SQL THREAD_ID_COLUMN_SQL START_AND_END_COLUMNS_SQL
	 "name_id INTEGER NOT NULL REFERENCES rocpd_string{{uuid}}(id), " EVENT_ID_COLUMN_SQL
		 EXTDATA_COLUMN_SQL},
	{"sample", "track_id INTEGER NOT NULL REFERENCES rocpd_track{{uuid}}(id), timestamp BIGINT "
		   "NOT NULL, " EVENT_ID_COLUMN_SQL EXTDATA_COLUMN_SQL},
	{"kernel_dispatch",
	 NODE_ID_COLUMN_SQL PROCESS_ID_COLUMN_SQL THREAD_ID_COLUMN_SQL AGENT_ID_COLUMN_SQL
	 "kernel_id INTEGER NOT NULL REFERENCES rocpd_info_kernel_symbol{{uuid}}(id), dispatch_id "
	 "INTEGER NOT NULL, " QUEUE_AND_STREAM_ID_COLUMNS_SQL START_AND_END_COLUMNS_SQL
	 "private_segment_size INTEGER, group_segment_size INTEGER, workgroup_size_x INTEGER NOT "
	 "NULL, workgroup_size_y INTEGER NOT NULL, workgroup_size_z INTEGER NOT NULL, grid_size_x "
	 "INTEGER NOT NULL, grid_size_y INTEGER NOT NULL, grid_size_z INTEGER NOT "
	 "NULL, " REGION_NAME_ID_COLUMN_SQL EVENT_ID_COLUMN_SQL EXTDATA_COLUMN_SQL},
	{"memory_copy",
	 NODE_ID_COLUMN_SQL PROCESS_ID_COLUMN_SQL THREAD_ID_COLUMN_SQL START_AND_END_COLUMNS_SQL
	 "name_id INTEGER NOT NULL REFERENCES rocpd_string{{uuid}}(id), dst_agent_id INTEGER "
	 "REFERENCES rocpd_info_agent{{uuid}}(id), dst_address INTEGER, src_agent_id INTEGER "
	 "REFERENCES rocpd_info_agent{{uuid}}(id), src_address INTEGER, size INTEGER NOT "
	 "NULL, " QUEUE_AND_STREAM_ID_COLUMNS_SQL REGION_NAME_ID_COLUMN_SQL EVENT_ID_COLUMN_SQL
		 EXTDATA_COLUMN_SQL},
	{"memory_allocate",
	 NODE_ID_COLUMN_SQL PROCESS_ID_COLUMN_SQL THREAD_ID_COLUMN_SQL AGENT_ID_COLUMN_SQL
	 "type TEXT CHECK(type IN ('ALLOC', 'FREE', 'REALLOC', 'RECLAIM')), level TEXT CHECK(level "
	 "IN ('REAL', 'VIRTUAL', 'SCRATCH')), " START_AND_END_COLUMNS_SQL
	 "address INTEGER, size INTEGER NOT NULL, " QUEUE_AND_STREAM_ID_COLUMNS_SQL
		 EVENT_ID_COLUMN_SQL EXTDATA_COLUMN_SQL},
};

#undef NODE_ID_COLUMN_SQL
#undef PROCESS_ID_COLUMN_SQL
#undef THREAD_ID_COLUMN_SQL
#undef AGENT_ID_COLUMN_SQL
#undef QUEUE_AND_STREAM_ID_COLUMNS_SQL
#undef EVENT_ID_COLUMN_SQL
#undef REGION_NAME_ID_COLUMN_SQL
#undef START_AND_END_COLUMNS_SQL
#undef EXTDATA_COLUMN_SQL

#endif
