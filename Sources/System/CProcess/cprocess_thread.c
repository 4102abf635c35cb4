#define _GNU_SOURCE
#include "cprocess_thread.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

void cprocess_block_broken_pipes(void) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGPIPE);
  (void)pthread_sigmask(SIG_BLOCK, &signals, NULL);
}

int cprocess_pipe(int ends[2]) { return pipe2(ends, O_CLOEXEC) ? -errno : 0; }

struct start {
  char name[16];
  void (*run)(void *);
  void *context;
};

static void *run_start(void *argument) {
  struct start start = *(struct start *)argument;
  free(argument);
  (void)prctl(PR_SET_NAME, start.name, 0, 0, 0);
  start.run(start.context);
  return NULL;
}

int cprocess_thread_start(const char *name, void (*run)(void *), void *context) {
  struct start *start = malloc(sizeof *start);
  if (start == NULL) return -ENOMEM;
  (void)snprintf(start->name, sizeof start->name, "%s", name);
  start->run = run;
  start->context = context;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  // A new thread inherits the blocked signals of its creator.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  pthread_t thread;
  int code = pthread_create(&thread, &attributes, run_start, start);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  if (code != 0) free(start);
  return -code;
}
