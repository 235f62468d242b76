/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The schema of database_write_tables(). Names of columns are the keys of profile.json where it has
 * them, with the unit at the end. NULL is "not known". Times are ns of CLOCK_BOOTTIME, as in every
 * output.
 */
#ifndef KYMO_OUTPUT_DATABASE_SCHEMA_H
#define KYMO_OUTPUT_DATABASE_SCHEMA_H

#define WEIGHT_COLUMNS                                                                             \
	"cpu_ns INTEGER, blocked_ns INTEGER, runnable_ns INTEGER, events INTEGER, samples INTEGER"
#define SUM_WEIGHTS                                                                                \
	"SUM(n.cpu_ns) AS cpu_ns, SUM(n.blocked_ns) AS blocked_ns, SUM(n.runnable_ns) AS "         \
	"runnable_ns, SUM(n.events) AS events, SUM(n.samples) AS samples"

static const char database_schema_sql[] =
	"CREATE TABLE kymo_metadata(tag TEXT PRIMARY KEY, value);"
	"CREATE TABLE kymo_processes(id INTEGER PRIMARY KEY, pid INTEGER, parent_pid INTEGER, rank "
	"INTEGER, name TEXT, executable TEXT, command_line TEXT, host TEXT, start_ns INTEGER, "
	"end_ns INTEGER, wait_status INTEGER, cgroup TEXT);"
	"CREATE TABLE kymo_waits(process_id INTEGER, tid INTEGER, waits INTEGER, blocked_ns "
	"INTEGER, longest_ns INTEGER, stack TEXT, waker TEXT, waker_pid INTEGER, waker_tid "
	"INTEGER, waker_name TEXT, waker_stack TEXT);"
	"CREATE TABLE kymo_cpu_times(process_id INTEGER, cpu INTEGER, cpu_ns INTEGER);"
	"CREATE TABLE kymo_threads(id INTEGER PRIMARY KEY, process_id INTEGER, tid INTEGER, name "
	"TEXT, start_ns INTEGER, end_ns INTEGER, total_cpu_ns INTEGER, " WEIGHT_COLUMNS
	", runs_with_lock_ns INTEGER, runs_without_lock_ns INTEGER, waits_for_lock_ns INTEGER, "
	"waits_otherwise_ns INTEGER, waits_with_lock_ns INTEGER, waits_for_cpu_ns INTEGER);"
	"CREATE TABLE kymo_frames(id INTEGER PRIMARY KEY, function_id INTEGER, function TEXT, "
	"linkage_name TEXT, kind TEXT, module TEXT, file TEXT, line INTEGER, function_line "
	"INTEGER, relative_pc INTEGER);"
	"CREATE TABLE kymo_nodes(id INTEGER PRIMARY KEY, parent_id INTEGER, frame_id INTEGER, "
	"process_id INTEGER, depth INTEGER, " WEIGHT_COLUMNS ");"
	"CREATE TABLE kymo_samples(time_ns INTEGER, thread_id INTEGER, node_id INTEGER, source "
	"TEXT, weight INTEGER, python_lock TEXT);"
	"CREATE TABLE kymo_functions(id INTEGER PRIMARY KEY, function TEXT, module TEXT, file "
	"TEXT, "
	"line INTEGER, self_cpu_ns INTEGER, total_cpu_ns INTEGER, self_real_ns INTEGER, "
	"total_real_ns INTEGER, self_events INTEGER, total_events INTEGER);"
	"CREATE TABLE kymo_regions(id INTEGER PRIMARY KEY, name TEXT, category TEXT, calls "
	"INTEGER, "
	"open INTEGER, total_ns INTEGER, self_ns INTEGER, least_ns INTEGER, most_ns INTEGER);"
	"CREATE TABLE kymo_calls(id INTEGER PRIMARY KEY, parent_id INTEGER, process_id INTEGER, "
	"name TEXT, category TEXT, calls INTEGER, open INTEGER, total_ns INTEGER, self_ns INTEGER, "
	"least_ns INTEGER, most_ns INTEGER);"
	"CREATE TABLE kymo_kernels(name TEXT, agent TEXT, launches INTEGER, total_ns INTEGER, "
	"least_ns INTEGER, most_ns INTEGER, incomplete INTEGER);"
	"CREATE TABLE kymo_copies(direction TEXT, copies INTEGER, bytes INTEGER, total_ns INTEGER);"
	"CREATE TABLE kymo_device_work(pid INTEGER, kind TEXT, name TEXT, queue INTEGER, tid "
	"INTEGER, start_ns INTEGER, duration_ns INTEGER, bytes INTEGER);"
	"CREATE TABLE kymo_steps(pid INTEGER, agent TEXT, name TEXT, step INTEGER, start_ns "
	"INTEGER, duration_ns INTEGER, computing_ns INTEGER, exposed_communication_ns INTEGER, "
	"exposed_copies_ns INTEGER, idle_before_launch_ns INTEGER, idle_after_launch_ns INTEGER, "
	"slow INTEGER);"
	"CREATE TABLE kymo_metrics(process_id INTEGER, time_ns INTEGER, name TEXT, unit TEXT, "
	"value "
	"INTEGER);"
	"CREATE TABLE kymo_losses(process_id INTEGER, reason TEXT, count INTEGER);"
	"CREATE VIEW kymo_stacks AS WITH RECURSIVE path(id, stack) AS (SELECT n.id, f.function "
	"FROM "
	"kymo_nodes n JOIN kymo_frames f ON f.id = n.frame_id WHERE n.parent_id IS NULL UNION ALL "
	"SELECT n.id, p.stack || ';' || f.function FROM path p JOIN kymo_nodes n ON n.parent_id = "
	"p.id JOIN kymo_frames f ON f.id = n.frame_id) SELECT n.process_id, p.stack, " SUM_WEIGHTS
	" FROM path p JOIN kymo_nodes n ON n.id = p.id WHERE n.samples > 0 OR n.cpu_ns > 0 GROUP "
	"BY "
	"n.process_id, p.stack;"
	"CREATE VIEW kymo_lines AS SELECT f.function, f.module, f.file, f.line, " SUM_WEIGHTS
	" FROM kymo_nodes n JOIN kymo_frames f ON f.id = n.frame_id GROUP BY f.function_id, "
	"f.file, "
	"f.line HAVING SUM(n.samples) > 0 OR SUM(n.cpu_ns) > 0;"
	"CREATE VIEW kymo_addresses AS SELECT f.function, f.module, f.relative_pc, f.file, "
	"f.line, " SUM_WEIGHTS " FROM kymo_nodes n JOIN kymo_frames f ON f.id = n.frame_id WHERE "
	"f.module IS NOT NULL GROUP "
	"BY f.function_id, f.relative_pc HAVING SUM(n.samples) > 0;";

static const char database_indexes_sql[] =
	"CREATE INDEX kymo_nodes_by_parent ON kymo_nodes(parent_id);"
	"CREATE INDEX kymo_samples_by_thread ON kymo_samples(thread_id, time_ns);";

#endif
