/// Converts socket addresses between `csockets_address` and the system's form.
#ifndef CSOCKETS_SOCKADDR_H
#define CSOCKETS_SOCKADDR_H

#include <sys/socket.h>

#include "csockets_net.h"

/// Fills in the system's form and returns its length.
socklen_t csockets_to_sockaddr(const csockets_address *address, struct sockaddr_storage *storage);

/// Reads the system's form; the family is 0 if it is neither IPv4 nor IPv6.
void csockets_from_sockaddr(const struct sockaddr_storage *storage, csockets_address *address);

#endif
