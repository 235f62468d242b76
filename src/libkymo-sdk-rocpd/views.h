/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The views of data of rocpd: names and columns are upstream's. Rows of several runs may stand in
 * one table, so each join is by id and guid.
 *
 * A kernel without a region is in the view, too. Values of counters are added up for each launch,
 * by its event: the number of a dispatch is one of its process alone.
 */
#ifndef KYMO_LIBKYMO_SDK_ROCPD_VIEWS_H
#define KYMO_LIBKYMO_SDK_ROCPD_VIEWS_H

static const struct rocpd_view_definition {
	const char *name, *select_sql;
} rocpd_data_view_definitions[] = {
	{"code_objects",
	 "CO.id, CO.guid, CO.nid, P.pid, A.absolute_index AS agent_abs_index, CO.uri, "
	 "CO.load_base, CO.load_size, CO.load_delta, CO.storage_type AS storage_type_str, "
	 "@X CO size code_object_size;, @X CO storage_type storage_type;, @X CO "
	 "memory_base memory_base;, @X CO memory_size memory_size; FROM "
	 "rocpd_info_code_object CO@J info_agent A agent_id CO;@P CO;"},
	{"kernel_symbols",
	 "KS.id, KS.guid, KS.nid, P.pid, KS.code_object_id, KS.kernel_name, "
	 "KS.display_name, KS.kernel_object, KS.kernarg_segment_size, "
	 "KS.kernarg_segment_alignment, KS.group_segment_size, KS.private_segment_size, "
	 "KS.sgpr_count, KS.arch_vgpr_count, KS.accum_vgpr_count, @X KS size "
	 "kernel_symbol_size;, @X KS kernel_id kernel_id;, @X KS "
	 "kernel_code_entry_byte_offset kernel_code_entry_byte_offset;, @X KS "
	 "formatted_kernel_name formatted_kernel_name;, @X KS demangled_kernel_name "
	 "demangled_kernel_name;, @X KS truncated_kernel_name truncated_kernel_name;, @X "
	 "KS kernel_address.handle kernel_address; FROM rocpd_info_kernel_symbol KS@P KS;"},
	{"processes", "@N;P.init, P.start, P.end, P.fini, P.command FROM rocpd_info_process P@J "
		      "info_node N nid P;"},
	{"threads", "@N;T.tid, T.start, T.end, T.name FROM rocpd_info_thread T@P T;@J info_node N "
		    "nid T;"},
	{"regions", "R.id, R.guid, @C;S.string AS name, R.nid, P.pid, T.tid, @D R;R.event_id, @V; "
		    "FROM rocpd_region R@E R;@J string S name_id R;@P R;@T R;"},
	{"region_args",
	 "R.id, R.guid, R.nid, P.pid, A.type, A.name, A.value FROM rocpd_region R@E R; "
	 "JOIN rocpd_arg A ON A.event_id = E.id AND A.guid = R.guid@P R;"},
	{"samples", "R.id, R.guid, @C;@S name_id TR; AS name, TR.nid, P.pid, T.tid, R.timestamp, "
		    "R.event_id, @V;@R;"},
	{"sample_regions",
	 "R.id, R.guid, @C;@S name_id TR; AS name, TR.nid, P.pid, T.tid, R.timestamp AS "
	 "start, R.timestamp AS end, 0 AS duration, R.event_id, @V;@R;"},
	{"regions_and_samples", "* FROM regions UNION ALL SELECT * FROM sample_regions"},
	{"kernels",
	 "K.id, K.guid, T.tid, @C;@S region_name_id K; AS region, S.display_name AS name, "
	 "K.nid, P.pid, @A A;S.code_object_id, K.kernel_id, K.dispatch_id, K.stream_id, "
	 "K.queue_id, Q.name AS queue, ST.name AS stream, @D K;K.grid_size_x AS grid_x, "
	 "K.grid_size_y AS grid_y, K.grid_size_z AS grid_z, K.workgroup_size_x AS "
	 "workgroup_x, K.workgroup_size_y AS workgroup_y, K.workgroup_size_z AS "
	 "workgroup_z, K.group_segment_size AS lds_size, K.private_segment_size AS "
	 "scratch_size, S.arch_vgpr_count AS vgpr_count, S.accum_vgpr_count, "
	 "S.sgpr_count, S.group_segment_size AS static_lds_size, S.private_segment_size "
	 "AS static_scratch_size, @K; FROM rocpd_kernel_dispatch K@J info_agent A "
	 "agent_id K;@E K;@J info_kernel_symbol S kernel_id K;@Q K;@P K;@T K;"},
	{"pmc_info",
	 "PMC_I.id, PMC_I.guid, PMC_I.nid, P.pid, A.absolute_index AS agent_abs_index, "
	 "PMC_I.is_constant, PMC_I.is_derived, PMC_I.name, PMC_I.description, "
	 "PMC_I.block, PMC_I.expression FROM rocpd_info_pmc PMC_I@J info_agent A agent_id "
	 "PMC_I;@P PMC_I;"},
	{"pmc_events",
	 "PMC_E.id, PMC_E.guid, PMC_E.pmc_id, E.id AS event_id, @C;S.display_name AS "
	 "name, K.nid, P.pid, K.dispatch_id, @D K;PMC_I.name AS counter_name, PMC_E.value "
	 "AS counter_value@M;@L info_kernel_symbol S kernel_id K;@P K;"},
	{"events_args",
	 "E.id AS event_id, @C;E.stack_id, E.parent_stack_id, E.correlation_id, "
	 "A.position AS arg_position, A.type AS arg_type, A.name AS arg_name, A.value AS "
	 "arg_value, E.call_stack, E.line_info, A.extdata FROM rocpd_event E JOIN "
	 "rocpd_arg A ON A.event_id = E.id AND A.guid = E.guid"},
	{"stream_args",
	 "A.id AS argument_id, A.event_id, A.position AS arg_position, A.type AS "
	 "arg_type, A.value AS arg_value, S.id AS stream_id, S.nid, P.pid, S.name AS "
	 "stream_name, S.extdata FROM rocpd_arg A JOIN rocpd_info_stream S ON "
	 "json_extract(A.extdata, '$.stream_id') = S.id AND A.guid = S.guid@P S; WHERE "
	 "A.name = 'stream'"},
	{"memory_copies",
	 "M.id, M.guid, @C;M.nid, P.pid, T.tid, @D M;S.string AS name, @S region_name_id "
	 "M; AS region_name, M.stream_id, M.queue_id, ST.name AS stream_name, Q.name AS "
	 "queue_name, M.size, DST.name AS dst_device, @A DST dst_;M.dst_address, SRC.name "
	 "AS src_device, @A SRC src_;M.src_address, @K; FROM rocpd_memory_copy M@J string "
	 "S name_id M;@J info_agent DST dst_agent_id M;@J info_agent SRC src_agent_id "
	 "M;@Q M;@E M;@P M;@T M;"},
	{"memory_allocations",
	 "M.id, M.guid, @C;M.nid, P.pid, T.tid, @D M;M.type, M.level, A.name AS "
	 "agent_name, @A A;M.address, M.size, M.queue_id, Q.name AS queue_name, "
	 "M.stream_id, ST.name AS stream_name, @K; FROM rocpd_memory_allocate M@L "
	 "info_agent A agent_id M;@Q M;@E M;@P M;@T M;"},
	{"scratch_memory",
	 "M.id, M.guid, M.nid, P.pid, M.type AS operation, A.name AS agent_name, @A "
	 "A;M.queue_id, T.tid, @X M flags alloc_flags;, @D M;M.size, M.address, "
	 "E.correlation_id, @K;, @C;E.extdata AS event_extdata FROM rocpd_memory_allocate "
	 "M@L info_agent A agent_id M;@E M;@P M;@T M; WHERE M.level = 'SCRATCH' ORDER BY "
	 "M.start"},
	{"counters_collection",
	 "MIN(PMC_E.id) AS id, PMC_E.guid, K.dispatch_id, K.kernel_id, E.id AS event_id, "
	 "E.correlation_id, E.stack_id, E.parent_stack_id, P.pid, T.tid, K.agent_id, @A "
	 "A;K.queue_id, K.grid_size_x, K.grid_size_y, K.grid_size_z, (K.grid_size_x * "
	 "K.grid_size_y * K.grid_size_z) AS grid_size, S.display_name AS kernel_name, @S "
	 "region_name_id K; AS kernel_region, K.workgroup_size_x, K.workgroup_size_y, "
	 "K.workgroup_size_z, (K.workgroup_size_x * K.workgroup_size_y * "
	 "K.workgroup_size_z) AS workgroup_size, K.group_segment_size AS lds_block_size, "
	 "K.private_segment_size AS scratch_size, S.arch_vgpr_count AS vgpr_count, "
	 "S.accum_vgpr_count, S.sgpr_count, PMC_I.name AS counter_name, PMC_I.symbol AS "
	 "counter_symbol, PMC_I.component, PMC_I.description, PMC_I.block, "
	 "PMC_I.expression, PMC_I.value_type, PMC_I.id AS counter_id, SUM(PMC_E.value) AS "
	 "value, K.start, K.end, PMC_I.is_constant, PMC_I.is_derived, (K.end - K.start) "
	 "AS duration, @C;K.nid, E.extdata, S.code_object_id@M;@J info_agent A agent_id "
	 "K;@J info_kernel_symbol S kernel_id K;@P K;@T K; GROUP BY PMC_E.guid, "
	 "PMC_E.event_id, PMC_E.pmc_id"},
};

#endif
