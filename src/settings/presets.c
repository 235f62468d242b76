/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See presets.h.
 */
#include "settings/presets.h"

#include "common/array.h"
#include "common/settings_value.h"

const struct preset presets[] = {
	{"gpu",
	 "programs that use GPUs: who waits for the device, all calls of its runtime, power and "
	 "clocks 20 times a second",
	 {{SETTING_SAMPLING_REALTIME, "on"},
	  {SETTING_GPU_CALLS, "all"},
	  {SETTING_GPU_METRICS_FREQ, "20"},
	  {SETTING_TRACE_THREAD_CONDITIONS, "on"}}},
	{"server",
	 "servers: where threads wait, locks, conditions, input and output; 200 samples a second, "
	 "the last 1 GiB of each process",
	 {{SETTING_SAMPLING_REALTIME, "on"},
	  {SETTING_SAMPLING_FREQ, "200"},
	  {SETTING_TRACE_THREAD_LOCKS, "on"},
	  {SETTING_TRACE_THREAD_RW_LOCKS, "on"},
	  {SETTING_TRACE_THREAD_CONDITIONS, "on"},
	  {SETTING_TRACE_IO, "on"},
	  {SETTING_SPOOL_LIMIT, "1G"},
	  {SETTING_SPOOL_RING, "on"}}},
	{"python",
	 "Python programs: the interpreter's lock, waits, input and output; kymo instrument "
	 "records calls of Python functions",
	 {{SETTING_SAMPLING_REALTIME, "on"},
	  {SETTING_TRACE_IO, "on"},
	  {SETTING_PYTHON_CALLS, "on"}}},
	{"mpi",
	 "parallel jobs: waits, MPI calls; 200 samples a second and small results for each rank, "
	 "for kymo merge",
	 {{SETTING_SAMPLING_REALTIME, "on"},
	  {SETTING_SAMPLING_FREQ, "200"},
	  {SETTING_USE_MPIP, "on"},
	  {SETTING_PROCESS_SAMPLING_FREQ, "1"},
	  {SETTING_OUTPUT_FORMATS, "text,json"}}},
	{"light",
	 "the least overhead: 100 samples a second of CPU time, no calls of libraries or devices, "
	 "three result files",
	 {{SETTING_SAMPLING_FREQ, "100"},
	  {SETTING_SAMPLING_METRICS, "off"},
	  {SETTING_USE_WRAPPERS, "off"},
	  {SETTING_USE_MPIP, "off"},
	  {SETTING_USE_NCCL, "off"},
	  {SETTING_USE_GPU, "off"},
	  {SETTING_USE_OMPT, "off"},
	  {SETTING_USE_KOKKOSP, "off"},
	  {SETTING_PROCESS_SAMPLING_FREQ, "1"},
	  {SETTING_OUTPUT_FORMATS, "text,json,report"}}},
	{"full",
	 "everything that kymo records without more rights: waits, locks, sleeps, input and "
	 "output, allocations, the loader, devices; slower",
	 {{SETTING_SAMPLING_REALTIME, "on"},
	  {SETTING_TRACE_THREAD_LOCKS, "on"},
	  {SETTING_TRACE_THREAD_RW_LOCKS, "on"},
	  {SETTING_TRACE_THREAD_SPIN_LOCKS, "on"},
	  {SETTING_TRACE_THREAD_CONDITIONS, "on"},
	  {SETTING_TRACE_SLEEP, "on"},
	  {SETTING_TRACE_IO, "on"},
	  {SETTING_TRACE_LOADER, "on"},
	  {SETTING_TRACE_MEMORY, "on"},
	  {SETTING_GPU_CALLS, "all"},
	  {SETTING_CPU_FREQ_ENABLED, "on"}}},
};
const size_t preset_count = ARRAY_SIZE(presets);

/* The next preset of the list; NULL: it has ended. The words were checked when PRESET was set. */
static const struct preset *find_next_preset(struct text_slice *rest)
{
	struct text_slice word;

	while (setting_next_list_word(rest, &word)) {
		for (size_t i = 0; i < preset_count; i++) {
			if (setting_slice_equals_word(word, presets[i].name))
				return &presets[i];
		}
	}
	return NULL;
}

static int apply_preset(struct effective_settings *settings, const struct preset *preset,
			bool (*accepts)(enum setting_id id), struct problem *problem)
{
	int error = 0;

	for (const struct preset_value *value = preset->values; !error && value->value; value++) {
		if (!accepts || accepts(value->id))
			error = effective_set_if_not_overridden(settings, value->id, value->value,
								ORIGIN_PRESET, preset->name,
								problem);
	}
	return error;
}

int presets_apply(struct effective_settings *settings, bool (*accepts)(enum setting_id id),
		  struct problem *problem)
{
	struct text_slice rest =
		setting_slice_from_text(effective_setting_text(settings, SETTING_PRESET));
	const struct preset *preset;
	int error = 0;

	while (!error && (preset = find_next_preset(&rest)) != NULL)
		error = apply_preset(settings, preset, accepts, problem);
	return error;
}

bool presets_have_value(const struct effective_settings *settings, enum setting_id id)
{
	struct text_slice rest =
		setting_slice_from_text(effective_setting_text(settings, SETTING_PRESET));
	const struct preset *preset;

	while ((preset = find_next_preset(&rest)) != NULL) {
		for (const struct preset_value *value = preset->values; value->value; value++) {
			if (value->id == id)
				return true;
		}
	}
	return false;
}
