/// Multicast on this host's links, and notifications of changed addresses.
///
/// Functions return a negative errno value when they fail.
#ifndef CSOCKETS_LINK_H
#define CSOCKETS_LINK_H

#include <stddef.h>
#include <stdint.h>

#include "csockets_net.h"

/// Opens a UDP socket on all addresses of one family, at a port that other programs may share.
///
/// It receives datagrams of joined groups, including datagrams from this host. Returns the
/// descriptor.
int csockets_multicast_open(int family, uint16_t port);

/// Joins a group on the interface with this number; returns 0 even if the socket had already
/// joined.
int csockets_multicast_join(int socket, const csockets_address *group, unsigned interface);

/// Sends a datagram to a group on the interface with this number, without waiting.
int csockets_multicast_send(
    int socket, const csockets_address *group, unsigned interface, const uint8_t *bytes,
    size_t length);

/// Opens a descriptor that becomes readable when addresses or interfaces change (rtnetlink).
int csockets_link_watch(void);

/// Reads and drops the waiting messages; returns their number.
int csockets_link_clear(int socket);

#endif
