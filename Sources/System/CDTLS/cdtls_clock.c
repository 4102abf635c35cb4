#define _GNU_SOURCE
#include "cdtls_clock.h"

#include <stdbool.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

static __thread cdtls_frozen_clock *current;

cdtls_frozen_clock *cdtls_clock_freeze(cdtls_frozen_clock *clock) {
  cdtls_frozen_clock *before = current;
  current = clock;
  return before;
}

/// Replaces libc's function for the whole process.
///
/// OpenSSL has no other way to set the time, and compares its DTLS retransmission deadline with
/// gettimeofday before every read. It reaches that function through dynamic linking, so this
/// definition in the executable wins. A frozen clock means that OpenSSL never retransmits by
/// itself, and that no byte depends on the time of a call. All other threads and callers get the
/// real time.
__attribute__((visibility("default"))) int gettimeofday(struct timeval *restrict time,
                                                         void *restrict zone) {
  // libc's header declares that the pointer is never NULL, so a compiler may remove the check;
  // callers that want only the time zone pass NULL anyway.
  struct timeval *volatile place = time;
  bool has_place = place != NULL;
  if (zone != NULL) memset(zone, 0, sizeof(struct timezone));
  if (current != NULL) {
    current->reads++;
    if (!has_place) return 0;
    time->tv_sec = (time_t)current->seconds;
    time->tv_usec = 0;
    return 0;
  }
  if (!has_place) return 0;
  struct timespec now;
  int status = clock_gettime(CLOCK_REALTIME, &now);
  if (status == 0) {
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1000;
  }
  return status;
}
