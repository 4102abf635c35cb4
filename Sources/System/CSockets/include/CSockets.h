/// What sockets need of the system: UDP, TCP, multicast, addresses that change, and waiting.
#ifndef CSOCKETS_H
#define CSOCKETS_H

#include "csockets_link.h"
#include "csockets_net.h"
#include "csockets_poll.h"
#include "csockets_stream.h"

#endif
