/// OpenSSL library contexts whose randomness is the caller's.
#ifndef CSUPPORT_LIBRARY_H
#define CSUPPORT_LIBRARY_H

#include <stddef.h>
#include <stdint.h>

#include <openssl/ssl.h>

/// Fills in random bytes; gives 1, or 0 to make the draw fail.
typedef int (*csupport_draw)(void *user, uint8_t *bytes, size_t count);

/// A library context of OpenSSL with the providers that it holds.
typedef struct {
  OSSL_LIB_CTX *context;
  OSSL_PROVIDER *randomness;
  OSSL_PROVIDER *algorithms;
} csupport_library;

/// Makes a library context where every random value, on every thread, comes from `draw`.
///
/// Nothing is read from configuration files. Gives 1, or 0 with nothing to free.
int csupport_library_open(csupport_library *library, csupport_draw draw, void *user);

/// Frees the context; all that was made in it must be freed before.
void csupport_library_close(csupport_library *library);

/// Takes the first error off this thread's OpenSSL queue as text, empties the queue, and gives 1;
/// gives 0 and an empty text when there is none.
int csupport_library_error(char *text, size_t size);

#endif
