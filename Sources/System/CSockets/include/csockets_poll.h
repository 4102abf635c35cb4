/// Waiting for descriptors, timers and wake-ups (epoll, timerfd, eventfd).
///
/// Functions return a negative errno value when they fail. Close descriptors with csockets_close.
#ifndef CSOCKETS_POLL_H
#define CSOCKETS_POLL_H

#include <stdint.h>

/// The events that have occurred on a descriptor, or the events to wait for; combined with `|`.
enum {
  CSOCKETS_READABLE = 1,
  CSOCKETS_WRITABLE = 2,
  /// Only returned: an error is pending.
  CSOCKETS_FAILED = 4,
};

/// One ready descriptor.
typedef struct {
  /// The tag that was passed when the descriptor was added.
  uint64_t tag;
  /// The events that the descriptor is ready for.
  uint32_t ready;
} csockets_event;

/// Creates an epoll descriptor.
int csockets_poll_create(void);

/// Starts watching a descriptor, level-triggered; its events carry the tag.
int csockets_poll_add(int poll, int descriptor, uint32_t interest, uint64_t tag);

/// Changes the watched events of a descriptor.
int csockets_poll_modify(int poll, int descriptor, uint32_t interest, uint64_t tag);

/// Stops watching a descriptor.
int csockets_poll_remove(int poll, int descriptor);

/// Waits until a descriptor is ready or the time-out has expired, and returns up to `count` (at
/// most 64) events.
///
/// A negative time-out in milliseconds waits without limit. If a signal interrupts the wait, 0
/// events are returned.
int csockets_poll_wait(int poll, csockets_event *events, int count, int timeout_ms);

/// Creates a timer on CLOCK_MONOTONIC that is readable once it is due.
int csockets_timer_create(void);

/// Sets the timer to an absolute time in nanoseconds, which may be in the past; a negative time
/// stops it.
int csockets_timer_set(int timer, int64_t monotonic_ns);

/// Makes the timer unreadable again; returns 0 even if it was not due.
int csockets_timer_clear(int timer);

/// Creates a wake-up that another thread may signal.
int csockets_wake_create(void);

/// Makes the wake-up readable.
int csockets_wake_signal(int wake);

/// Makes the wake-up unreadable again; returns 0 even if it was not signalled.
int csockets_wake_clear(int wake);

#endif
