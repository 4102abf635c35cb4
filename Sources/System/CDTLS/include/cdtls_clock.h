/// The clock that OpenSSL sees while it works for one of our DTLS associations.
///
/// A program that links this gets another `gettimeofday`, which replaces libc's, because OpenSSL
/// has no other way to set the time. It returns the same as libc's, the time of CLOCK_REALTIME,
/// except on a thread that has frozen it, which happens only during calls of OpenSSL. No other
/// function of libc changes.
#ifndef CDTLS_CLOCK_H
#define CDTLS_CLOCK_H

#include <stdint.h>

/// A clock that only moves by hand.
typedef struct {
  int64_t seconds;
  /// How often it was read; 0 shows that OpenSSL uses another clock.
  uint32_t reads;
} cdtls_frozen_clock;

/// Makes `gettimeofday` on this thread read a frozen clock, or real time again for NULL.
///
/// Returns the previous clock, to be restored by the caller.
cdtls_frozen_clock *cdtls_clock_freeze(cdtls_frozen_clock *clock);

#endif
