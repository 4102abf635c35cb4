/// What threads and processes need of the system.
#ifndef CPROCESS_H
#define CPROCESS_H

#include "cprocess_copy.h"
#include "cprocess_signal.h"
#include "cprocess_spawn.h"
#include "cprocess_thread.h"

#endif
