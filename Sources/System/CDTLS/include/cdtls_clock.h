/// The clock that OpenSSL sees while it works for one of Retake's DTLS associations.
///
/// Linking this replaces libc's `gettimeofday`, because OpenSSL has no other way to set the time.
/// The replacement returns the time of CLOCK_REALTIME, as libc does, except on a thread with a
/// frozen clock, which exists only during calls to OpenSSL. No other function of libc changes.
#ifndef CDTLS_CLOCK_H
#define CDTLS_CLOCK_H

#include <stdint.h>

/// A clock that stands still until its owner changes it.
typedef struct {
  int64_t seconds;
  /// How many times the clock was read; 0 shows that OpenSSL uses another clock.
  uint32_t reads;
} cdtls_frozen_clock;

/// Makes `gettimeofday` on this thread read a frozen clock or, with NULL, real time again.
///
/// Returns the previous clock, to be restored by the caller.
cdtls_frozen_clock *cdtls_clock_freeze(cdtls_frozen_clock *clock);

#endif
