#define _GNU_SOURCE
#include "csupport_stream.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include "csupport_sockaddr.h"

static int limited(size_t count) { return count > INT_MAX ? INT_MAX : (int)count; }

/// Closes a socket and gives the negative errno of what failed before.
static int close_failed(int descriptor) {
  int status = -errno;
  close(descriptor);
  return status;
}

/// A bound socket that never blocks and sends at once, which accepted connections inherit; a
/// negative errno when there is none.
static int bound_socket(const csupport_address *address) {
  int descriptor = socket(
      address->family == 6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return -errno;
  int on = 1;
  (void)setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  struct sockaddr_storage storage;
  socklen_t length = csupport_to_sockaddr(address, &storage);
  if (bind(descriptor, (struct sockaddr *)&storage, length) != 0) return close_failed(descriptor);
  return descriptor;
}

int csupport_tcp_connect(const csupport_address *from, const csupport_address *to) {
  int descriptor = bound_socket(from);
  if (descriptor < 0) return descriptor;
  struct sockaddr_storage storage;
  socklen_t length = csupport_to_sockaddr(to, &storage);
  if (connect(descriptor, (struct sockaddr *)&storage, length) != 0 && errno != EINPROGRESS) {
    return close_failed(descriptor);
  }
  return descriptor;
}

int csupport_tcp_connected(int socket, csupport_address *local) {
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
  csupport_from_sockaddr(&storage, local);
  return 1;
}

int csupport_tcp_listen(const csupport_address *address, csupport_address *bound) {
  int descriptor = bound_socket(address);
  if (descriptor < 0) return descriptor;
  struct sockaddr_storage storage;
  socklen_t length = sizeof storage;
  if (listen(descriptor, 16) != 0
      || getsockname(descriptor, (struct sockaddr *)&storage, &length) != 0) {
    return close_failed(descriptor);
  }
  csupport_from_sockaddr(&storage, bound);
  return descriptor;
}

int csupport_tcp_accept(int socket, csupport_address *remote) {
  struct sockaddr_storage storage;
  socklen_t length = sizeof storage;
  int descriptor = accept4(
      socket, (struct sockaddr *)&storage, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (descriptor < 0) return -errno;
  csupport_from_sockaddr(&storage, remote);
  return descriptor;
}

int csupport_tcp_read(int socket, uint8_t *bytes, size_t capacity) {
  ssize_t count = recv(socket, bytes, (size_t)limited(capacity), 0);
  if (count > 0) return (int)count;
  if (count == 0) return -ECONNRESET;
  return errno == EAGAIN || errno == EINTR ? 0 : -errno;
}

int csupport_tcp_write(int socket, const uint8_t *bytes, size_t length) {
  ssize_t count = send(socket, bytes, (size_t)limited(length), MSG_NOSIGNAL);
  if (count >= 0) return (int)count;
  return errno == EAGAIN || errno == EINTR ? 0 : -errno;
}

/// What the result of an OpenSSL call means, in the words of the functions above.
static int outcome(SSL *tls, int result) {
  if (result > 0) return result;
  int reason = SSL_get_error(tls, result);
  ERR_clear_error();
  switch (reason) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE: return 0;
    case SSL_ERROR_ZERO_RETURN: return -ECONNRESET;
    default: return -EPROTO;
  }
}

SSL *csupport_tls_open(int socket, const char *name) {
  SSL_CTX *context = SSL_CTX_new(TLS_client_method());
  if (context == NULL) return NULL;
  SSL *tls = NULL;
  if (SSL_CTX_set_default_verify_paths(context) == 1
      && SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1) {
    tls = SSL_new(context);
  }
  SSL_CTX_free(context);
  if (tls == NULL) return NULL;
  SSL_set_verify(tls, SSL_VERIFY_PEER, NULL);
  SSL_set_mode(tls, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_set_connect_state(tls);
  unsigned char address[16];
  int is_address =
      inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1;
  int is_set = is_address
                   ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls), name)
                   : SSL_set1_host(tls, name) == 1 && SSL_set_tlsext_host_name(tls, name) == 1;
  if (is_set != 1 || SSL_set_fd(tls, socket) != 1) {
    SSL_free(tls);
    return NULL;
  }
  return tls;
}

void csupport_tls_close(SSL *tls) {
  if (SSL_is_init_finished(tls)) (void)SSL_shutdown(tls);
  ERR_clear_error();
  SSL_free(tls);
}

int csupport_tls_handshake(SSL *tls) {
  return outcome(tls, SSL_do_handshake(tls));
}

int csupport_tls_read(SSL *tls, uint8_t *bytes, size_t capacity) {
  return outcome(tls, SSL_read(tls, bytes, limited(capacity)));
}

int csupport_tls_write(SSL *tls, const uint8_t *bytes, size_t length) {
  return outcome(tls, SSL_write(tls, bytes, limited(length)));
}
