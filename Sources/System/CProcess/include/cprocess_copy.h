/// Copies of a process as checkpoints, and messages between them (fork, Unix sockets).
///
/// Swift does not import fork, because a process with several threads must not continue after it. A
/// process that forks here must have only one thread.
#ifndef CPROCESS_COPY_H
#define CPROCESS_COPY_H

#include <stdint.h>

/// Forks the process; each side gets its end of a channel between them.
///
/// Returns 0 in the copy, the copy's process number in the original, or a negative errno value on
/// failure or if the process has more than one thread. The copy ignores terminal interrupts and
/// does not wait for its own children; it must end with cprocess_exit.
int cprocess_fork(int *channel);

/// Ends a copy at once, without running the exit handlers of the original.
void cprocess_exit(void);

/// Sends bytes, and a descriptor with them unless it is negative; returns 0, or a negative errno
/// value.
int cprocess_send(int channel, const void *bytes, uint32_t count, int descriptor);

/// Waits for a message; returns its length and the descriptor sent with it (or -1), or a negative
/// errno value, which is -EPIPE if the other side is gone.
int64_t cprocess_receive_length(int channel, int *descriptor);

/// Reads exactly this many bytes of a message; returns 0, or a negative errno value.
int cprocess_receive(int channel, void *bytes, uint32_t count);

/// Returns free memory to the system (malloc_trim).
void cprocess_memory_trim(void);

/// Does nothing; a debugger stops a replay here.
void cprocess_stop_here(void);

/// Replaces the process with a program found on PATH; returns a negative errno value on failure.
int cprocess_execute(const char *program, char *const arguments[]);

#endif
