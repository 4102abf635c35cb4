#define _GNU_SOURCE
#include "cprocess_thread.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

void cprocess_block_broken_pipes(void) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGPIPE);
  (void)pthread_sigmask(SIG_BLOCK, &signals, NULL);
}

int cprocess_pipe(int ends[2]) { return pipe2(ends, O_CLOEXEC) ? -errno : 0; }

void cprocess_name_thread(const char *name) { (void)prctl(PR_SET_NAME, name, 0, 0, 0); }
