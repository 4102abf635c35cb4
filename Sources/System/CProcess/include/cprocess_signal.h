/// Signals that are noticed on a thread of their own, from the moment on when that is asked for.
///
/// A handler that does nothing but write a byte works whichever thread takes the signal, and
/// however busy the others are.
#ifndef CPROCESS_SIGNAL_H
#define CPROCESS_SIGNAL_H

/// Has a signal noticed in place of what it did; 0, or a negative errno value. One call at a time.
int cprocess_signal_watch(int number);

/// Waits for the next signal among those that are watched, and gives its number; a negative errno
/// value when there is none. Lets them reach the calling thread, so that there is one that takes
/// them.
int cprocess_signal_next(void);

#endif
