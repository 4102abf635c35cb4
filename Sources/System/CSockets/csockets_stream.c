#define _GNU_SOURCE
#include "csockets_stream.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "csockets_sockaddr.h"

static int limited(size_t count) { return count > INT_MAX ? INT_MAX : (int)count; }

/// Closes a socket and returns the negative errno of the earlier failure.
static int close_failed(int descriptor) {
  int status = -errno;
  close(descriptor);
  return status;
}

/// Returns a bound, non-blocking socket, or a negative errno value; Nagle's algorithm is off, and
/// stays off in accepted connections.
static int bound_socket(const csockets_address *address) {
  int descriptor = socket(
      address->family == 6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return -errno;
  int on = 1;
  (void)setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  struct sockaddr_storage storage;
  socklen_t length = csockets_to_sockaddr(address, &storage);
  if (bind(descriptor, (struct sockaddr *)&storage, length) != 0) return close_failed(descriptor);
  return descriptor;
}

int csockets_tcp_connect(const csockets_address *from, const csockets_address *to) {
  int descriptor = bound_socket(from);
  if (descriptor < 0) return descriptor;
  struct sockaddr_storage storage;
  socklen_t length = csockets_to_sockaddr(to, &storage);
  if (connect(descriptor, (struct sockaddr *)&storage, length) != 0 && errno != EINPROGRESS) {
    return close_failed(descriptor);
  }
  return descriptor;
}

int csockets_tcp_connected(int socket, csockets_address *local) {
  int error = 0;
  socklen_t length = sizeof error;
  if (getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &length) != 0) return -errno;
  if (error != 0) return -error;
  struct sockaddr_storage storage;
  length = sizeof storage;
  if (getpeername(socket, (struct sockaddr *)&storage, &length) != 0) {
    return errno == ENOTCONN ? 0 : -errno;
  }
  length = sizeof storage;
  if (getsockname(socket, (struct sockaddr *)&storage, &length) != 0) return -errno;
  csockets_from_sockaddr(&storage, local);
  return 1;
}

int csockets_tcp_listen(const csockets_address *address, csockets_address *bound) {
  int descriptor = bound_socket(address);
  if (descriptor < 0) return descriptor;
  struct sockaddr_storage storage;
  socklen_t length = sizeof storage;
  if (listen(descriptor, 16) != 0
      || getsockname(descriptor, (struct sockaddr *)&storage, &length) != 0) {
    return close_failed(descriptor);
  }
  csockets_from_sockaddr(&storage, bound);
  return descriptor;
}

int csockets_tcp_accept(int socket, csockets_address *remote) {
  struct sockaddr_storage storage;
  socklen_t length = sizeof storage;
  int descriptor = accept4(
      socket, (struct sockaddr *)&storage, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (descriptor < 0) return -errno;
  csockets_from_sockaddr(&storage, remote);
  return descriptor;
}

int csockets_tcp_read(int socket, uint8_t *bytes, size_t capacity) {
  ssize_t count = recv(socket, bytes, (size_t)limited(capacity), 0);
  if (count > 0) return (int)count;
  if (count == 0) return -ECONNRESET;
  return errno == EAGAIN || errno == EINTR ? 0 : -errno;
}

int csockets_tcp_write(int socket, const uint8_t *bytes, size_t length) {
  ssize_t count = send(socket, bytes, (size_t)limited(length), MSG_NOSIGNAL);
  if (count >= 0) return (int)count;
  return errno == EAGAIN || errno == EINTR ? 0 : -errno;
}
