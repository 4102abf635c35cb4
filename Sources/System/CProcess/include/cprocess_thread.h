/// System functions for threads, and for pipes between processes.
#ifndef CPROCESS_THREAD_H
#define CPROCESS_THREAD_H

/// Starts a detached thread that blocks all signals and calls `run` with `context`; returns 0 or a
/// negative errno value.
///
/// The name, which debuggers show, is cut to 15 characters.
int cprocess_thread_start(const char *name, void (*run)(void *), void *context);

/// Creates a pipe and stores its reading end and its writing end, both close-on-exec; returns 0 or
/// a negative errno value.
int cprocess_pipe(int ends[2]);

/// Makes writing to a closed pipe fail with EPIPE on the calling thread, without a signal.
void cprocess_block_broken_pipes(void);

#endif
