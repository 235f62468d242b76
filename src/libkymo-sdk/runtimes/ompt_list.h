/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Functions that OpenMP runtimes call, by the shapes that they come in:
 * OMPT_INSTANT_EVENT_ROW(name, parameters, members) for what happens at once,
 * OMPT_SCOPE_EVENT_ROW(name, parameters, members) for what begins and ends, as `endpoint` says.
 * Members are those of rocprofiler_ompt_args_t, in the order of parameters (OpenMP 5.2, 19.5.2). A
 * list for macros.
 */
/* clang-format off */
OMPT_INSTANT_EVENT_ROW(thread_begin, (ompt_thread_t a, ompt_data_t *b), (a, b))
OMPT_INSTANT_EVENT_ROW(thread_end, (ompt_data_t *a), (a))
OMPT_INSTANT_EVENT_ROW(parallel_begin, (ompt_data_t *a, const ompt_frame_t *b, ompt_data_t *c, unsigned d, int e, const void *f),
	(a, b, c, d, e, f))
OMPT_INSTANT_EVENT_ROW(parallel_end, (ompt_data_t *a, ompt_data_t *b, int c, const void *d), (a, b, c, d))
OMPT_INSTANT_EVENT_ROW(task_create, (ompt_data_t *a, const ompt_frame_t *b, ompt_data_t *c, int d, int e, const void *f),
	(a, b, c, d, e, f))
OMPT_INSTANT_EVENT_ROW(task_schedule, (ompt_data_t *a, ompt_task_status_t b, ompt_data_t *c), (a, b, c))
OMPT_INSTANT_EVENT_ROW(device_initialize, (int a, const char *b, ompt_device_t *c, ompt_function_lookup_t d, const char *e),
	(a, b, c, d, e))
OMPT_INSTANT_EVENT_ROW(device_finalize, (int a), (a))
OMPT_INSTANT_EVENT_ROW(device_load, (int a, const char *b, int64_t c, void *d, size_t e, void *f, void *g, uint64_t h),
	(a, b, c, d, e, f, g, h))
OMPT_INSTANT_EVENT_ROW(mutex_released, (ompt_mutex_t a, ompt_wait_id_t b, const void *c), (a, b, c))
OMPT_INSTANT_EVENT_ROW(dependences, (ompt_data_t *a, const ompt_dependence_t *b, int c), (a, b, c))
OMPT_INSTANT_EVENT_ROW(task_dependence, (ompt_data_t *a, ompt_data_t *b), (a, b))
OMPT_INSTANT_EVENT_ROW(lock_init, (ompt_mutex_t a, unsigned b, unsigned c, ompt_wait_id_t d, const void *e), (a, b, c, d, e))
OMPT_INSTANT_EVENT_ROW(lock_destroy, (ompt_mutex_t a, ompt_wait_id_t b, const void *c), (a, b, c))
OMPT_INSTANT_EVENT_ROW(mutex_acquire, (ompt_mutex_t a, unsigned b, unsigned c, ompt_wait_id_t d, const void *e), (a, b, c, d, e))
OMPT_INSTANT_EVENT_ROW(mutex_acquired, (ompt_mutex_t a, ompt_wait_id_t b, const void *c), (a, b, c))
OMPT_INSTANT_EVENT_ROW(nest_lock, (ompt_scope_endpoint_t a, ompt_wait_id_t b, const void *c), (a, b, c))
OMPT_INSTANT_EVENT_ROW(flush, (ompt_data_t *a, const void *b), (a, b))
OMPT_INSTANT_EVENT_ROW(cancel, (ompt_data_t *a, int b, const void *c), (a, b, c))
OMPT_INSTANT_EVENT_ROW(dispatch, (ompt_data_t *a, ompt_data_t *b, ompt_dispatch_t c, ompt_data_t d), (a, b, c, d))
OMPT_INSTANT_EVENT_ROW(error, (ompt_severity_t a, const char *b, size_t c, const void *d), (a, b, c, d))
OMPT_SCOPE_EVENT_ROW(implicit_task, (ompt_scope_endpoint_t endpoint, ompt_data_t *b, ompt_data_t *c, unsigned d, unsigned e,
	int f), (endpoint, b, c, d, e, f))
OMPT_SCOPE_EVENT_ROW(sync_region_wait, (ompt_sync_region_t a, ompt_scope_endpoint_t endpoint, ompt_data_t *c, ompt_data_t *d,
	const void *e), (a, endpoint, c, d, e))
OMPT_SCOPE_EVENT_ROW(sync_region, (ompt_sync_region_t a, ompt_scope_endpoint_t endpoint, ompt_data_t *c, ompt_data_t *d,
	const void *e), (a, endpoint, c, d, e))
OMPT_SCOPE_EVENT_ROW(reduction, (ompt_sync_region_t a, ompt_scope_endpoint_t endpoint, ompt_data_t *c, ompt_data_t *d,
	const void *e), (a, endpoint, c, d, e))
OMPT_SCOPE_EVENT_ROW(work, (ompt_work_t a, ompt_scope_endpoint_t endpoint, ompt_data_t *c, ompt_data_t *d, uint64_t e,
	const void *f), (a, endpoint, c, d, e, f))
OMPT_SCOPE_EVENT_ROW(masked, (ompt_scope_endpoint_t endpoint, ompt_data_t *b, ompt_data_t *c, const void *d),
	(endpoint, b, c, d))
OMPT_SCOPE_EVENT_ROW(target_emi, (ompt_target_t a, ompt_scope_endpoint_t endpoint, int c, ompt_data_t *d, ompt_data_t *e,
	ompt_data_t *f, const void *g), (a, endpoint, c, d, e, f, g))
OMPT_SCOPE_EVENT_ROW(target_data_op_emi, (ompt_scope_endpoint_t endpoint, ompt_data_t *b, ompt_data_t *c, ompt_data_t *d,
	ompt_target_data_op_t e, void *f, int g, void *h, int i, size_t j, const void *k),
	(endpoint, b, c, d, e, f, g, h, i, j, k))
OMPT_SCOPE_EVENT_ROW(target_submit_emi, (ompt_scope_endpoint_t endpoint, ompt_data_t *b, ompt_data_t *c, unsigned d),
	(endpoint, b, c, d))
