/// What threads need of the system.
#ifndef CPROCESS_THREAD_H
#define CPROCESS_THREAD_H

/// Names the calling thread for debuggers; at most 15 characters are kept.
void cprocess_name_thread(const char *name);

#endif
