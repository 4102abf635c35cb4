/// Signals that are noticed on a thread of their own, from the moment on when that is asked for.
///
/// A handler that does nothing but write a byte works whichever thread takes the signal, and
/// however busy the others are.
#ifndef CPROCESS_SIGNAL_H
#define CPROCESS_SIGNAL_H

/// Has a signal noticed in place of what it did; 0, or a negative errno value. One call at a time.
int cprocess_signal_watch(int number);

/// Waits for the next watched signal and returns its number; a negative errno value if there is
/// none.
///
/// Unblocks them on the calling thread, so that one thread receives them.
int cprocess_signal_next(void);

#endif
