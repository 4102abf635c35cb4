/// The clock that OpenSSL sees while it works for one of our DTLS associations.
///
/// Whoever links this has another `gettimeofday` in the process: the one here takes the place of
/// libc's, because OpenSSL cannot be told the time in another way. It gives what libc's gives, the
/// time of CLOCK_REALTIME, but on a thread that has frozen it, which is the case inside of calls of
/// OpenSSL alone. No other function of libc changes.
#ifndef CDTLS_CLOCK_H
#define CDTLS_CLOCK_H

#include <stdint.h>

/// A clock that stands still until it is moved by hand.
typedef struct {
  int64_t seconds;
  /// How often it was read; 0 tells that OpenSSL found another clock.
  uint32_t reads;
} cdtls_frozen_clock;

/// Makes `gettimeofday` on this thread read a frozen clock, or real time again for NULL.
///
/// Gives what was in force before, to be restored by the caller.
cdtls_frozen_clock *cdtls_clock_freeze(cdtls_frozen_clock *clock);

#endif
