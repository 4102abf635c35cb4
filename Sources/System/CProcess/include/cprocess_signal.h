/// Passes signals to an ordinary thread, which reads them from a pipe.
///
/// The handler only writes a byte, so it works on any thread, no matter how busy the others are.
#ifndef CPROCESS_SIGNAL_H
#define CPROCESS_SIGNAL_H

/// Watches a signal in place of its default action; returns 0 or a negative errno value.
///
/// Calls must not overlap.
int cprocess_signal_watch(int number);

/// Waits for the next watched signal and returns its number, or a negative errno value on failure.
///
/// Unblocks the watched signals on the calling thread, which then receives them.
int cprocess_signal_next(void);

#endif
