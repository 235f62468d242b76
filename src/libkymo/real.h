/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The functions behind our wrappers. Where we were preloaded they are the next definitions in the
 * search order (as with RTLD_NEXT, dlsym(3)), found once. Where we were opened (opened.h) they are
 * what the program's calls led to before, which may be another library's wrapper.
 */
#ifndef KYMO_LIBKYMO_REAL_H
#define KYMO_LIBKYMO_REAL_H

/* Every function that calls of the program come to. */
/* clang-format off */
#define FOR_EACH_REAL_FUNCTION(each) \
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

#define DECLARE_REAL_POINTER(name) extern _Atomic(void *) real_##name;
FOR_EACH_REAL_FUNCTION(DECLARE_REAL_POINTER)

/* Finds them all: a first call may come in a signal handler, which must not look. */
void real_find_all_functions(void);

/* Address of the real function of this name; NULL where nobody has it. */
void *real_find_function_or_null(_Atomic(void *) *slot, const char *name);
/* A function that libc has: never NULL. */
void *real_find_function_or_abort(_Atomic(void *) *slot, const char *name);

/* REAL(name): the real function, with the type of the declared one. */
#define REAL(name) ((__typeof__(&(name)))real_find_function_or_abort(&real_##name, #name))

#define EXPORTED __attribute__((visibility("default")))

#endif
