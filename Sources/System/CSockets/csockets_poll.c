#define _GNU_SOURCE
#include "csockets_poll.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define EVENTS_MAXIMUM 64

static int result(int value) { return value < 0 ? -errno : value; }

int csockets_poll_create(void) { return result(epoll_create1(EPOLL_CLOEXEC)); }

static int control(int poll, int operation, int descriptor, uint32_t interest, uint64_t tag) {
  struct epoll_event event = {0};
  if (interest & CSOCKETS_READABLE) event.events |= EPOLLIN;
  if (interest & CSOCKETS_WRITABLE) event.events |= EPOLLOUT;
  event.data.u64 = tag;
  return result(epoll_ctl(poll, operation, descriptor, &event));
}

int csockets_poll_add(int poll, int descriptor, uint32_t interest, uint64_t tag) {
  return control(poll, EPOLL_CTL_ADD, descriptor, interest, tag);
}

int csockets_poll_modify(int poll, int descriptor, uint32_t interest, uint64_t tag) {
  return control(poll, EPOLL_CTL_MOD, descriptor, interest, tag);
}

int csockets_poll_remove(int poll, int descriptor) {
  return control(poll, EPOLL_CTL_DEL, descriptor, 0, 0);
}

int csockets_poll_wait(int poll, csockets_event *events, int count, int timeout_ms) {
  struct epoll_event ready[EVENTS_MAXIMUM];
  if (count > EVENTS_MAXIMUM) count = EVENTS_MAXIMUM;
  int found = epoll_wait(poll, ready, count, timeout_ms);
  if (found < 0) return errno == EINTR ? 0 : -errno;
  for (int i = 0; i < found; i++) {
    uint32_t bits = ready[i].events;
    events[i].tag = ready[i].data.u64;
    events[i].ready = (bits & (EPOLLIN | EPOLLHUP) ? CSOCKETS_READABLE : 0)
                      | (bits & EPOLLOUT ? CSOCKETS_WRITABLE : 0)
                      | (bits & EPOLLERR ? CSOCKETS_FAILED : 0);
  }
  return found;
}

int csockets_timer_create(void) {
  return result(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
}

int csockets_timer_set(int timer, int64_t monotonic_ns) {
  struct itimerspec when = {0};
  if (monotonic_ns >= 0) {
    // All zeros would stop the timer; a past time fires at once.
    if (monotonic_ns == 0) monotonic_ns = 1;
    when.it_value.tv_sec = monotonic_ns / 1000000000;
    when.it_value.tv_nsec = monotonic_ns % 1000000000;
  }
  return result(timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, NULL));
}

/// Reads, and thus resets, the 8-byte counter of a timer or wake-up.
static int clear(int descriptor) {
  uint64_t count;
  ssize_t length = read(descriptor, &count, sizeof count);
  return length >= 0 || errno == EAGAIN || errno == EINTR ? 0 : -errno;
}

int csockets_timer_clear(int timer) { return clear(timer); }

int csockets_wake_create(void) { return result(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)); }

int csockets_wake_signal(int wake) {
  uint64_t one = 1;
  ssize_t length = write(wake, &one, sizeof one);
  // A full counter is already readable.
  return length >= 0 || errno == EAGAIN ? 0 : -errno;
}

int csockets_wake_clear(int wake) { return clear(wake); }
