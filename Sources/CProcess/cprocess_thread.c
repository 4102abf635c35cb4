#define _GNU_SOURCE
#include "cprocess_thread.h"

#include <sys/prctl.h>

void cprocess_name_thread(const char *name) { (void)prctl(PR_SET_NAME, name, 0, 0, 0); }
