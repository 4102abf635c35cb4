#define _GNU_SOURCE
#include "cprocess_signal.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

/// The pipe from the signal handler to the reader.
static int ends[2] = {-1, -1};
static sigset_t watched;

static void notice(int number) {
  int reason = errno;
  unsigned char byte = (unsigned char)number;
  // If the pipe is full, enough signals are waiting.
  ssize_t length = write(ends[1], &byte, 1);
  (void)length;
  errno = reason;
}

int cprocess_signal_watch(int number) {
  if (ends[0] < 0) {
    sigemptyset(&watched);
    if (pipe2(ends, O_CLOEXEC)) return -errno;
    // The handler must not block.
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
  }
  sigaddset(&watched, number);
  struct sigaction action = {.sa_handler = notice, .sa_flags = SA_RESTART};
  sigemptyset(&action.sa_mask);
  return sigaction(number, &action, NULL) ? -errno : 0;
}

int cprocess_signal_next(void) {
  if (ends[0] < 0) return -EBADF;
  pthread_sigmask(SIG_UNBLOCK, &watched, NULL);
  unsigned char byte;
  for (;;) {
    ssize_t length = read(ends[0], &byte, 1);
    if (length == 1) return byte;
    if (length == 0) return -EPIPE;
    if (errno != EINTR) return -errno;
  }
}
