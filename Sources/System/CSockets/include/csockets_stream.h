/// TCP connections for the live loop.
///
/// Functions return a negative errno value when they fail.
#ifndef CSOCKETS_STREAM_H
#define CSOCKETS_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include "csockets_net.h"

/// Starts connecting from an address and a free port; the descriptor, which does not block, becomes
/// writable when the outcome is known.
int csockets_tcp_connect(const csockets_address *from, const csockets_address *to);

/// Returns the outcome of connecting: 1, with the local address, if connected; 0 while pending.
int csockets_tcp_connected(int socket, csockets_address *local);

/// Opens a socket that listens on an address; returns the descriptor and the bound address.
int csockets_tcp_listen(const csockets_address *address, csockets_address *bound);

/// Accepts the next waiting connection; returns its descriptor, or -EAGAIN if there is none.
int csockets_tcp_accept(int socket, csockets_address *remote);

/// Reads available bytes; returns 0 if there are none, and -ECONNRESET once the peer has closed.
int csockets_tcp_read(int socket, uint8_t *bytes, size_t capacity);

/// Writes as many bytes as the socket accepts; returns their number, 0 if none were accepted.
int csockets_tcp_write(int socket, const uint8_t *bytes, size_t length);

#endif
