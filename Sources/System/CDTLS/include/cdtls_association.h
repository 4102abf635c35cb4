/// One DTLS 1.2 association of OpenSSL without clock, socket or randomness of its own.
///
/// Datagrams go in as arguments and come out through a callback, one call for each. The caller runs
/// the retransmission timer: see cdtls_flight and cdtls_retransmit. Callbacks run on the same
/// thread, inside the calls below; they must not call back into the association or read a clock.
#ifndef CDTLS_ASSOCIATION_H
#define CDTLS_ASSOCIATION_H

#include <stddef.h>
#include <stdint.h>

#include <openssl/ssl.h>

#include "cdtls_library.h"

/// The callbacks of an association's owner.
typedef struct {
  /// Passed to every callback.
  void *user;
  cdtls_draw draw;
  /// Sends a datagram to the peer.
  void (*send)(void *user, const uint8_t *bytes, size_t count);
  /// Checks the peer's certificate in DER; returns 1 to continue, 0 to refuse it.
  int (*accept)(void *user, const uint8_t *certificate, size_t count);
} cdtls_callbacks;

typedef struct cdtls_association cdtls_association;

/// The outcome of a call.
enum {
  CDTLS_CLOSED = -2,  ///< The peer sent close_notify.
  CDTLS_FAILED = -1,  ///< The association is broken; cdtls_library_error says why.
  CDTLS_WAITING = 0,  ///< The association needs a datagram or the timer to continue.
  CDTLS_DONE = 1,     ///< The handshake is finished.
};

/// Creates an association in the shared library; returns NULL if OpenSSL fails.
///
/// Add certificates, then prepare the context, then start the association.
cdtls_association *cdtls_new(const cdtls_callbacks *callbacks);

/// Draws a P-256 key, or an RSA key of 2048 bits, and creates its certificate, valid between two
/// Unix times in seconds; one of each type can be added.
///
/// Returns NULL if OpenSSL fails, if there is one of the type already, or if the context is
/// prepared.
X509 *cdtls_add_certificate(cdtls_association *dtls, int is_rsa, int64_t begin, int64_t end);

/// Creates the context from the certificates and the names of SRTP profiles, separated by colons,
/// the preferred one first; returns 1 or 0.
int cdtls_prepare(cdtls_association *dtls, const char *srtp_profiles);

/// Frees the association without informing the peer.
void cdtls_free(cdtls_association *dtls);

/// Sets the role and the maximum datagram size; returns 1 or 0.
///
/// Must precede the functions below.
int cdtls_start(cdtls_association *dtls, int is_server, long mtu);

/// Drops the connection, so that another one can be started with the same certificates.
void cdtls_reset(cdtls_association *dtls);

/// Returns OpenSSL's connection, for reading its state; NULL before the start.
SSL *cdtls_connection(const cdtls_association *dtls);

/// Returns a certificate that the peer sent after its own, counted from 0; NULL if there is none.
X509 *cdtls_issuer(const cdtls_association *dtls, int index);

/// Continues the handshake, with a datagram or with NULL.
///
/// Returns DONE, WAITING, CLOSED or FAILED.
int cdtls_handshake(cdtls_association *dtls, const uint8_t *datagram, size_t length);

/// Reads application data from a datagram, or with NULL from the rest of the previous datagram.
///
/// Returns the length of one message in bytes, WAITING if there is none, CLOSED or FAILED.
int cdtls_read(cdtls_association *dtls, const uint8_t *datagram, size_t length, uint8_t *data,
                       size_t capacity);

/// Sends one message of application data; returns 1 or 0.
int cdtls_write(cdtls_association *dtls, const uint8_t *data, size_t length);

/// Sends close_notify.
void cdtls_shutdown(cdtls_association *dtls);

/// Returns the number of the flight that is waiting for an answer; 0 if none is.
///
/// A retransmission does not change it.
uint32_t cdtls_flight(const cdtls_association *dtls);

/// Sends the waiting flight again; returns 1 on success, 0 if no flight is waiting, or FAILED from
/// the 13th retransmission on.
int cdtls_retransmit(cdtls_association *dtls);

/// Returns how many times OpenSSL read the frozen clock.
uint32_t cdtls_clock_reads(const cdtls_association *dtls);

#endif
