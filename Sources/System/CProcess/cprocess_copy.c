#define _GNU_SOURCE
#include "cprocess_copy.h"

#include <dirent.h>
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/// Returns the number of threads in the process; 0 if it is unknown.
static int thread_count(void) {
  DIR *tasks = opendir("/proc/self/task");
  if (!tasks) return 0;
  int count = 0;
  for (struct dirent *entry; (entry = readdir(tasks));) count += entry->d_name[0] != '.';
  closedir(tasks);
  return count;
}

int cprocess_fork(int *channel) {
  if (thread_count() > 1) return -EBUSY;
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) return -errno;
  pid_t process = fork();
  if (process < 0) {
    int reason = errno;
    close(ends[0]);
    close(ends[1]);
    return -reason;
  }
  if (process == 0) {
    close(ends[0]);
    signal(SIGINT, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    // Nothing waits for the copy's own children, so the system discards them.
    signal(SIGCHLD, SIG_IGN);
    *channel = ends[1];
    return 0;
  }
  close(ends[1]);
  *channel = ends[0];
  return process;
}

void cprocess_exit(void) { _exit(0); }

int cprocess_send(int channel, const void *bytes, uint32_t count, int descriptor) {
  uint32_t length = count;
  struct iovec part = {.iov_base = &length, .iov_len = sizeof length};
  union {
    char space[CMSG_SPACE(sizeof(int))];
    struct cmsghdr alignment;
  } control;
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  if (descriptor >= 0) {
    memset(&control, 0, sizeof control);
    message.msg_control = control.space;
    message.msg_controllen = sizeof control.space;
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(head), &descriptor, sizeof descriptor);
  }
  ssize_t sent;
  do sent = sendmsg(channel, &message, MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  if (sent < 0) return -errno;
  if (sent != sizeof length) return -EIO;
  const char *next = bytes;
  while (count > 0) {
    sent = send(channel, next, count, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return -errno;
    next += sent;
    count -= (uint32_t)sent;
  }
  return 0;
}

int cprocess_receive(int channel, void *bytes, uint32_t count) {
  char *next = bytes;
  while (count > 0) {
    ssize_t got = recv(channel, next, count, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -errno;
    if (got == 0) return -EPIPE;
    next += got;
    count -= (uint32_t)got;
  }
  return 0;
}

int64_t cprocess_receive_length(int channel, int *descriptor) {
  uint32_t length = 0;
  struct iovec part = {.iov_base = &length, .iov_len = sizeof length};
  union {
    char space[CMSG_SPACE(sizeof(int))];
    struct cmsghdr alignment;
  } control;
  struct msghdr message = {
      .msg_iov = &part,
      .msg_iovlen = 1,
      .msg_control = control.space,
      .msg_controllen = sizeof control.space,
  };
  *descriptor = -1;
  ssize_t got;
  do got = recvmsg(channel, &message, MSG_CMSG_CLOEXEC | MSG_WAITALL);
  while (got < 0 && errno == EINTR);
  if (got < 0) return -errno;
  if (got != sizeof length) return -EPIPE;
  for (struct cmsghdr *head = CMSG_FIRSTHDR(&message); head; head = CMSG_NXTHDR(&message, head)) {
    if (head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS)
      memcpy(descriptor, CMSG_DATA(head), sizeof *descriptor);
  }
  return length;
}

__attribute__((noinline, used)) void cprocess_memory_trim(void) { malloc_trim(0); }

void cprocess_stop_here(void) { __asm__ volatile(""); }

int cprocess_execute(const char *program, char *const arguments[]) {
  execvp(program, arguments);
  return -errno;
}
