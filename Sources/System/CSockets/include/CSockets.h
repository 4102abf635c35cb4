/// System functions for sockets: UDP, TCP, multicast, address changes, and waiting.
#ifndef CSOCKETS_H
#define CSOCKETS_H

#include "csockets_link.h"
#include "csockets_net.h"
#include "csockets_poll.h"
#include "csockets_stream.h"

#endif
