/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The functions behind our wrappers. Where we were preloaded they are the next definitions in the
 * search order (dlsym(3), RTLD_NEXT), found once. Where we were opened (opened.h) they are what the
 * program's calls led to before, which may be another library's wrapper.
 */
#ifndef KYMO_LIBKYMO_REAL_H
#define KYMO_LIBKYMO_REAL_H

/* Every function that calls of the program come to. */
/* clang-format off */
#define REAL_FUNCTIONS(each) \
	each(_Exit) each(_Unwind_Backtrace) each(_dl_find_object) each(_exit) each(backtrace) \
	each(dlclose) each(execl) each(execle) each(execlp) each(execv) each(execve) \
	each(execveat) each(execvp) each(execvpe) each(fexecve) each(initgroups) \
	each(posix_spawn) each(posix_spawnp) each(prctl) each(pthread_create) \
	each(pthread_sigmask) each(setegid) each(seteuid) each(setgid) each(setgroups) \
	each(setns) each(setregid) each(setresgid) each(setresuid) each(setreuid) each(setuid) \
	each(sigaction) each(signal) each(signalfd) each(sigpending) each(sigprocmask) \
	each(sigtimedwait) each(sigwait) each(sigwaitinfo) each(syscall) each(sysv_signal) \
	each(thrd_create) each(unshare) each(write)
/* clang-format on */

#define REAL_SLOT(name) extern _Atomic(void *) real_##name;
REAL_FUNCTIONS(REAL_SLOT)

/* Address of the real function of this name; never NULL for functions that libc has. */
void *real_find(_Atomic(void *) *slot, const char *name);

/* REAL(name): the real function, with the type of the declared one. */
#define REAL(name) ((__typeof__(&(name)))real_find(&real_##name, #name))

#define EXPORTED __attribute__((visibility("default")))

#endif
