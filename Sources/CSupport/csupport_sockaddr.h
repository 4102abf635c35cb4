/// Conversions between end points of the shims and of the system.
#ifndef CSUPPORT_SOCKADDR_H
#define CSUPPORT_SOCKADDR_H

#include <sys/socket.h>

#include "csupport_net.h"

/// Fills in the system's form and gives its length.
socklen_t csupport_to_sockaddr(const csupport_address *address, struct sockaddr_storage *storage);

/// Reads the system's form; the family is 0 when it is neither IPv4 nor IPv6.
void csupport_from_sockaddr(const struct sockaddr_storage *storage, csupport_address *address);

#endif
