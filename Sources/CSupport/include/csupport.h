/// C shims for what Swift cannot import: variadic functions, function macros, callbacks.
#ifndef CSUPPORT_H
#define CSUPPORT_H

#include "csupport_clock.h"
#include "csupport_cpu.h"
#include "csupport_dtls.h"
#include "csupport_library.h"
#include "csupport_net.h"
#include "csupport_opus.h"
#include "csupport_poll.h"
#include "csupport_link.h"
#include "csupport_signal.h"
#include "csupport_stream.h"
#include "csupport_vpx.h"
#include "csupport_worker.h"

#endif
