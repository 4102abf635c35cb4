/// One DTLS 1.2 association of OpenSSL without clock, socket or randomness of its own.
///
/// Datagrams go in as arguments and come out through a callback, one call for each. The
/// retransmission timer is the caller's: see csupport_dtls_flight and csupport_dtls_retransmit.
/// Callbacks run inside of the calls below, on the same thread; they must not call back into the
/// association and not read a clock.
#ifndef CSUPPORT_DTLS_H
#define CSUPPORT_DTLS_H

#include <stddef.h>
#include <stdint.h>

#include <openssl/ssl.h>

#include "csupport_library.h"

/// What an association asks of its owner.
typedef struct {
  /// Passed to every callback.
  void *user;
  csupport_draw draw;
  /// Takes a datagram for the peer.
  void (*send)(void *user, const uint8_t *bytes, size_t count);
  /// Looks at the peer's certificate in DER; gives 1 to go on, 0 to refuse it.
  int (*accept)(void *user, const uint8_t *certificate, size_t count);
} csupport_dtls_callbacks;

/// An association.
typedef struct csupport_dtls csupport_dtls;

/// What a call led to.
enum {
  CSUPPORT_DTLS_CLOSED = -2,  ///< The peer sent close_notify.
  CSUPPORT_DTLS_FAILED = -1,  ///< It is broken; csupport_library_error tells why.
  CSUPPORT_DTLS_WAITING = 0,  ///< It needs a datagram or the timer to go on.
  CSUPPORT_DTLS_DONE = 1,     ///< The handshake is finished.
};

/// Makes an association in the shared library; gives NULL when OpenSSL refuses. Certificates are
/// added, then the context is prepared, then it can be started.
csupport_dtls *csupport_dtls_new(const csupport_dtls_callbacks *callbacks);

/// Draws a P-256 key, or an RSA key of 2048 bits, and makes its certificate, valid between two Unix
/// times in seconds; one of each type can be added. Gives NULL when OpenSSL refuses.
X509 *csupport_dtls_add_certificate(csupport_dtls *dtls, int is_rsa, int64_t begin, int64_t end);

/// Makes the context from the certificates and the names of SRTP profiles with colons between, the
/// preferred one first; gives 1 or 0.
int csupport_dtls_prepare(csupport_dtls *dtls, const char *srtp_profiles);

/// Frees the association; tells the peer nothing.
void csupport_dtls_free(csupport_dtls *dtls);

/// Takes a role, with datagrams of at most `mtu` bytes; gives 1 or 0. Comes before all that
/// follows.
int csupport_dtls_start(csupport_dtls *dtls, int is_server, long mtu);

/// Forgets the connection, so that another one can be started with the same certificates.
void csupport_dtls_reset(csupport_dtls *dtls);

/// The connection for OpenSSL's inquiries; NULL before the start.
SSL *csupport_dtls_connection(const csupport_dtls *dtls);

/// Goes on with the handshake, with a datagram or with NULL. Gives DONE, WAITING,
/// CLOSED or FAILED.
int csupport_dtls_handshake(csupport_dtls *dtls, const uint8_t *datagram, size_t length);

/// Reads application data of a datagram, or with NULL what is left of the one before. Gives the
/// number of bytes of one message, WAITING when there are none, CLOSED or FAILED.
int csupport_dtls_read(csupport_dtls *dtls, const uint8_t *datagram, size_t length, uint8_t *data,
                       size_t capacity);

/// Sends one message of application data; gives 1 or 0.
int csupport_dtls_write(csupport_dtls *dtls, const uint8_t *data, size_t length);

/// Sends close_notify.
void csupport_dtls_shutdown(csupport_dtls *dtls);

/// The number of the flight that waits for an answer, 0 when none does. A retransmission does not
/// change it.
uint32_t csupport_dtls_flight(const csupport_dtls *dtls);

/// Sends the waiting flight again; gives 1, 0 when no flight waits, FAILED from the 13th time on.
int csupport_dtls_retransmit(csupport_dtls *dtls);

/// How often OpenSSL read the frozen clock.
uint32_t csupport_dtls_clock_reads(const csupport_dtls *dtls);

#endif
