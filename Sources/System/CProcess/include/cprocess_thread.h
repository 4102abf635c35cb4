/// What threads, and pipes between processes, need of the system.
#ifndef CPROCESS_THREAD_H
#define CPROCESS_THREAD_H

/// Starts a detached thread that takes no signals and calls `run` with `context`; 0, or a negative
/// errno value. At most 15 characters of the name are kept, for debuggers.
int cprocess_thread_start(const char *name, void (*run)(void *), void *context);

/// Makes a pipe whose ends no child has by itself: the one that is read, and the one that is
/// written; 0, or a negative errno value.
int cprocess_pipe(int ends[2]);

/// Has writing to a pipe that nobody reads fail with EPIPE on the calling thread, without a signal.
void cprocess_block_broken_pipes(void);

#endif
