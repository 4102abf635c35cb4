/// System functions for threads and processes.
#ifndef CPROCESS_H
#define CPROCESS_H

#include "cprocess_copy.h"
#include "cprocess_signal.h"
#include "cprocess_spawn.h"
#include "cprocess_thread.h"

#endif
