/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Frames of open regions that are not simply the innermost one, between the files of this room:
 * those that overlap others (left_frames.c), and those that began outside the collection windows
 * (waiting_frames.c). For a thread that is marked busy.
 */
#ifndef KYMO_REGIONS_FRAMES_H
#define KYMO_REGIONS_FRAMES_H

#include "regions/state.h"

/* ---- regions.c ---- */

/* What an ending region leaves besides its record. */
void region_finish_frame(struct region_thread_state *thread, uint32_t at, uint64_t ticks);
/* Enters the profile's node of a frame below the node that the thread is at. */
void region_enter_profile_node_of_frame(struct region_thread_state *thread, uint32_t at);
void region_write_end_of_outer_region(struct region_thread_state *thread, uint64_t ticks,
				      region_id region, enum spool_region_end how);

/* ---- region_switches.c ---- */

/* With SELECTED_REGIONS: one of them begins, ends. */
void region_select_thread(struct region_thread_state *thread, struct region_frame *frame);
void region_deselect_thread(struct region_thread_state *thread);

/* ---- left_frames.c ---- */

/* Ends frame `at` alone: those inside it go on. Either they overlap it, or their ends are missing;
 * as long as that is not known, the profile takes them for the latter. */
void left_frames_end_outer_frame_alone(struct region_thread_state *thread, uint32_t at);
/* A frame that was left so has an end of its own, now. */
void left_frames_take_back(struct region_thread_state *thread, struct region_frame *frame,
			   uint64_t ticks);
/* Its end is missing: it ended where it was left. The caller takes it off the stack. */
void left_frames_drop(struct region_thread_state *thread, const struct region_frame *frame);
/* Before a region begins: where the innermost frame was left by the same region, what begins is
 * not inside it, but the next round of a loop. */
void left_frames_leave_profile_node_for(struct region_thread_state *thread, region_id region);

/* ---- waiting_frames.c ---- */

/* The frame begins between two windows. False: it does not, a window has opened. */
bool waiting_frames_add(struct region_thread_state *thread, struct region_frame *frame);
/* Before anything else is recorded: begins what waited, where a window has opened meanwhile. */
void waiting_frames_begin_if_window_opened(struct region_thread_state *thread);

#endif
