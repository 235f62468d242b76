/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The tables of rocpd, schema 3: names and columns are upstream's. Each begins with its id and the
 * guid of its run.
 */
#ifndef KYMO_LIBKYMO_SDK_ROCPD_TABLES_H
#define KYMO_LIBKYMO_SDK_ROCPD_TABLES_H

#define NODE    "nid INTEGER NOT NULL REFERENCES rocpd_info_node{{uuid}}(id), "
#define PROCESS "pid INTEGER NOT NULL REFERENCES rocpd_info_process{{uuid}}(id), "
#define THREAD  "tid INTEGER REFERENCES rocpd_info_thread{{uuid}}(id), "
#define AGENT   "agent_id INTEGER REFERENCES rocpd_info_agent{{uuid}}(id), "
#define QUEUE                                                                                      \
	"queue_id INTEGER REFERENCES rocpd_info_queue{{uuid}}(id), "                               \
	"stream_id INTEGER REFERENCES rocpd_info_stream{{uuid}}(id), "
#define EVENT       "event_id INTEGER REFERENCES rocpd_event{{uuid}}(id), "
#define REGION_NAME "region_name_id INTEGER REFERENCES rocpd_string{{uuid}}(id), "
#define TIMES       "start BIGINT NOT NULL, end BIGINT NOT NULL, "
#define MORE        "extdata TEXT DEFAULT '{}'"

static const struct table {
	const char *name, *columns;
} tables[] = {
	{"metadata", "tag TEXT NOT NULL, value TEXT NOT NULL"},
	{"string", "string TEXT NOT NULL UNIQUE"},
	{"info_node", "hash BIGINT NOT NULL UNIQUE, machine_id TEXT NOT NULL UNIQUE, system_name "
		      "TEXT, hostname TEXT, release TEXT, version TEXT, hardware_name TEXT, "
		      "domain_name TEXT"},
	{"info_process", NODE "ppid INTEGER, pid INTEGER NOT NULL, init BIGINT, fini BIGINT, start "
			      "BIGINT, end BIGINT, command TEXT, environment TEXT, " MORE},
	{"info_thread", NODE "ppid INTEGER, " PROCESS
			     "tid INTEGER NOT NULL, name TEXT, start BIGINT, end BIGINT, " MORE},
	{"info_agent", NODE PROCESS
	 "type TEXT CHECK(type IN ('CPU', 'GPU')), absolute_index INTEGER, "
	 "logical_index INTEGER, type_index INTEGER, uuid INTEGER, name TEXT, "
	 "model_name TEXT, vendor_name TEXT, product_name TEXT, user_name TEXT, " MORE},
	{"info_queue", NODE PROCESS "name TEXT, " MORE},
	{"info_stream", NODE PROCESS "name TEXT, " MORE},
	{"info_pmc", NODE PROCESS AGENT
	 "target_arch TEXT CHECK(target_arch IN ('CPU', 'GPU')), event_code INTEGER, instance_id "
	 "INTEGER, name TEXT NOT NULL, symbol TEXT NOT NULL, description TEXT, long_description "
	 "TEXT, component TEXT, units TEXT, value_type TEXT CHECK(value_type IN ('ABS', 'ACCUM', "
	 "'RELATIVE')), block TEXT, expression TEXT, is_constant INTEGER, is_derived "
	 "INTEGER, " MORE},
	{"info_code_object",
	 NODE PROCESS AGENT "uri TEXT, load_base BIGINT, load_size BIGINT, load_delta BIGINT, "
			    "storage_type TEXT CHECK(storage_type IN ('FILE', 'MEMORY')), " MORE},
	{"info_kernel_symbol", NODE PROCESS
	 "code_object_id INTEGER REFERENCES rocpd_info_code_object{{uuid}}(id), kernel_name TEXT, "
	 "display_name TEXT, kernel_object INTEGER, kernarg_segment_size INTEGER, "
	 "kernarg_segment_alignment INTEGER, group_segment_size INTEGER, private_segment_size "
	 "INTEGER, sgpr_count INTEGER, arch_vgpr_count INTEGER, accum_vgpr_count INTEGER, " MORE},
	{"track", NODE "pid INTEGER REFERENCES rocpd_info_process{{uuid}}(id), " THREAD
		       "name_id INTEGER REFERENCES rocpd_string{{uuid}}(id), " MORE},
	{"event", "category_id INTEGER REFERENCES rocpd_string{{uuid}}(id), stack_id INTEGER, "
		  "parent_stack_id INTEGER, correlation_id INTEGER, call_stack TEXT DEFAULT '{}', "
		  "line_info TEXT DEFAULT '{}', " MORE},
	{"arg", "event_id INTEGER NOT NULL REFERENCES rocpd_event{{uuid}}(id), position INTEGER "
		"NOT NULL, type TEXT NOT NULL, name TEXT NOT NULL, value TEXT, " MORE},
	{"pmc_event",
	 EVENT "pmc_id INTEGER NOT NULL REFERENCES rocpd_info_pmc{{uuid}}(id), value REAL, " MORE},
	{"region", NODE PROCESS THREAD TIMES
	 "name_id INTEGER NOT NULL REFERENCES rocpd_string{{uuid}}(id), " EVENT MORE},
	{"sample", "track_id INTEGER NOT NULL REFERENCES rocpd_track{{uuid}}(id), timestamp BIGINT "
		   "NOT NULL, " EVENT MORE},
	{"kernel_dispatch", NODE PROCESS THREAD AGENT
	 "kernel_id INTEGER NOT NULL REFERENCES rocpd_info_kernel_symbol{{uuid}}(id), dispatch_id "
	 "INTEGER NOT NULL, " QUEUE TIMES
	 "private_segment_size INTEGER, group_segment_size INTEGER, workgroup_size_x INTEGER NOT "
	 "NULL, workgroup_size_y INTEGER NOT NULL, workgroup_size_z INTEGER NOT NULL, grid_size_x "
	 "INTEGER NOT NULL, grid_size_y INTEGER NOT NULL, grid_size_z INTEGER NOT "
	 "NULL, " REGION_NAME EVENT MORE},
	{"memory_copy", NODE PROCESS THREAD TIMES
	 "name_id INTEGER NOT NULL REFERENCES rocpd_string{{uuid}}(id), dst_agent_id INTEGER "
	 "REFERENCES rocpd_info_agent{{uuid}}(id), dst_address INTEGER, src_agent_id INTEGER "
	 "REFERENCES rocpd_info_agent{{uuid}}(id), src_address INTEGER, size INTEGER NOT "
	 "NULL, " QUEUE REGION_NAME EVENT MORE},
	{"memory_allocate", NODE PROCESS THREAD AGENT
	 "type TEXT CHECK(type IN ('ALLOC', 'FREE', 'REALLOC', 'RECLAIM')), level TEXT CHECK(level "
	 "IN ('REAL', 'VIRTUAL', 'SCRATCH')), " TIMES
	 "address INTEGER, size INTEGER NOT NULL, " QUEUE EVENT MORE},
};

#undef NODE
#undef PROCESS
#undef THREAD
#undef AGENT
#undef QUEUE
#undef EVENT
#undef REGION_NAME
#undef TIMES
#undef MORE

#endif
