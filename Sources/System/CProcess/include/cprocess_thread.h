/// What threads, and pipes between processes, need of the system.
#ifndef CPROCESS_THREAD_H
#define CPROCESS_THREAD_H

/// Names the calling thread for debuggers; at most 15 characters are kept.
void cprocess_name_thread(const char *name);

/// Makes a pipe whose ends no child has by itself: the one that is read, and the one that is
/// written; 0, or a negative errno value.
int cprocess_pipe(int ends[2]);

/// Has writing to a pipe that nobody reads fail with EPIPE on the calling thread, without a signal.
void cprocess_block_broken_pipes(void);

#endif
