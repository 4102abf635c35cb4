/// The clock that OpenSSL sees while it works for one of our DTLS associations.
#ifndef CSUPPORT_CLOCK_H
#define CSUPPORT_CLOCK_H

#include <stdint.h>

/// A clock that stands still until it is moved by hand.
typedef struct {
  int64_t seconds;
  /// How often it was read; 0 tells that OpenSSL found another clock.
  uint32_t reads;
} csupport_frozen_clock;

/// Makes `gettimeofday` on this thread read a frozen clock, or real time again for NULL.
///
/// Gives what was in force before, to be restored by the caller.
csupport_frozen_clock *csupport_clock_freeze(csupport_frozen_clock *clock);

#endif
