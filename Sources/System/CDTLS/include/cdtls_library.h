/// An OpenSSL library context whose random bytes come from the peer that the calling thread serves.
#ifndef CDTLS_LIBRARY_H
#define CDTLS_LIBRARY_H

#include <stddef.h>
#include <stdint.h>

#include <openssl/ssl.h>

/// Fills in random bytes; returns 1, or 0 to make the draw fail.
typedef int (*cdtls_draw)(void *user, uint8_t *bytes, size_t count);

/// The source of random bytes.
typedef struct {
  cdtls_draw draw;
  /// Passed to every draw.
  void *user;
} cdtls_randomness;

/// Makes this thread's draws in the shared library context come from a source, which must not move;
/// with NULL, draws fail again.
///
/// Returns the previous source, to be restored by the caller.
const cdtls_randomness *cdtls_randomness_use(const cdtls_randomness *randomness);

/// Returns the library context shared by all associations of the process; NULL if OpenSSL fails.
///
/// It lives as long as the process. A context for each peer would need half a megabyte and two
/// thread-specific keys; a process has 1,024 of these keys, enough for some 500 peers. No
/// configuration files are read.
OSSL_LIB_CTX *cdtls_library_shared(void);

/// Writes the first error in this thread's OpenSSL queue as text, empties the queue, and returns 1;
/// returns 0 and an empty string when there is none.
int cdtls_library_error(char *text, size_t size);

#endif
