/// TCP connections, with TLS when asked for, for the live loop.
///
/// Functions give a negative errno value when they fail.
#ifndef CSUPPORT_STREAM_H
#define CSUPPORT_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include <openssl/ssl.h>

#include "csupport_net.h"

/// Begins to connect from an address and a free port; the descriptor, which does not block, becomes
/// writable when the outcome is known.
int csupport_tcp_connect(const csupport_address *from, const csupport_address *to);

/// The outcome of connecting: 1 with the own end point when it is done, 0 while it is not.
int csupport_tcp_connected(int socket, csupport_address *local);

/// Opens a socket that listens on an address; gives the descriptor and where it is bound.
int csupport_tcp_listen(const csupport_address *address, csupport_address *bound);

/// Takes the next connection that waits; gives its descriptor, or -EAGAIN when there is none.
int csupport_tcp_accept(int socket, csupport_address *remote);

/// Reads what there is; gives 0 when nothing waits, -ECONNRESET when the other side has ended.
int csupport_tcp_read(int socket, uint8_t *bytes, size_t capacity);

/// Writes as much as is taken; gives 0 when nothing is.
int csupport_tcp_write(int socket, const uint8_t *bytes, size_t length);

/// TLS over a connected descriptor, as a client; the certificate must be good for the name, which
/// may be an address, and lead to an authority that the system trusts. Gives NULL when OpenSSL
/// refuses. Signals must be blocked on threads that use it: OpenSSL writes raise SIGPIPE.
SSL *csupport_tls_open(int socket, const char *name);

/// Frees the TLS side of a connection and tells the other end; not the descriptor.
void csupport_tls_close(SSL *tls);

/// Goes on with the handshake; gives 1 when it is done, 0 while it is not.
int csupport_tls_handshake(SSL *tls);

/// As `csupport_tcp_read`.
int csupport_tls_read(SSL *tls, uint8_t *bytes, size_t capacity);

/// As `csupport_tcp_write`; what was not taken must be offered again unchanged.
int csupport_tls_write(SSL *tls, const uint8_t *bytes, size_t length);

#endif
