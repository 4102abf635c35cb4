/// What concerns the links of this host: multicast, and addresses that come and go.
///
/// Functions give a negative errno value when they fail.
#ifndef CSOCKETS_LINK_H
#define CSOCKETS_LINK_H

#include <stddef.h>
#include <stdint.h>

#include "csockets_net.h"

/// Opens a UDP socket on a port of all addresses of one family that other programs use as well.
///
/// It receives what goes to the groups that were joined, from the own host too. Gives the
/// descriptor.
int csockets_multicast_open(int family, uint16_t port);

/// Joins a group on the interface with this number; 0 also when that was done before.
int csockets_multicast_join(int socket, const csockets_address *group, unsigned interface);

/// Sends a datagram to a group on the interface with this number, without waiting.
int csockets_multicast_send(
    int socket, const csockets_address *group, unsigned interface, const uint8_t *bytes,
    size_t length);

/// Opens a descriptor that becomes readable when addresses or interfaces change (rtnetlink).
int csockets_link_watch(void);

/// Reads what waits there; gives the number of messages.
int csockets_link_clear(int socket);

#endif
