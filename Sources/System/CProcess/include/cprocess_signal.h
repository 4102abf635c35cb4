/// Signals handled on a separate thread, from the first call on.
///
/// The handler only writes a byte, so it works on any thread, no matter how busy the others are.
#ifndef CPROCESS_SIGNAL_H
#define CPROCESS_SIGNAL_H

/// Watches a signal instead of its default action; 0, or a negative errno value.
///
/// One call at a time.
int cprocess_signal_watch(int number);

/// Waits for the next watched signal and returns its number; a negative errno value if there is
/// none.
///
/// Unblocks them on the calling thread, so that one thread receives them.
int cprocess_signal_next(void);

#endif
