#define _GNU_SOURCE
#include "csockets_net.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "csockets_sockaddr.h"

/// A kernel time stamp older than this means that the wall clock was set.
#define AGE_MAXIMUM_NS INT64_C(1000000000)

static int64_t read_clock(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t csockets_monotonic_ns(void) { return read_clock(CLOCK_MONOTONIC); }

int64_t csockets_realtime_ns(void) { return read_clock(CLOCK_REALTIME); }

int csockets_close(int descriptor) { return close(descriptor) == 0 ? 0 : -errno; }

socklen_t csockets_to_sockaddr(const csockets_address *address, struct sockaddr_storage *storage) {
  memset(storage, 0, sizeof *storage);
  if (address->family == 4) {
    struct sockaddr_in *in = (struct sockaddr_in *)storage;
    in->sin_family = AF_INET;
    in->sin_port = htons(address->port);
    memcpy(&in->sin_addr, address->ip, 4);
    return sizeof *in;
  }
  struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)storage;
  in6->sin6_family = AF_INET6;
  in6->sin6_port = htons(address->port);
  memcpy(&in6->sin6_addr, address->ip, 16);
  in6->sin6_scope_id = address->scope;
  return sizeof *in6;
}

void csockets_from_sockaddr(const struct sockaddr_storage *storage, csockets_address *address) {
  memset(address, 0, sizeof *address);
  if (storage->ss_family == AF_INET) {
    const struct sockaddr_in *in = (const struct sockaddr_in *)storage;
    address->family = 4;
    address->port = ntohs(in->sin_port);
    memcpy(address->ip, &in->sin_addr, 4);
  } else if (storage->ss_family == AF_INET6) {
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)storage;
    address->family = 6;
    address->port = ntohs(in6->sin6_port);
    memcpy(address->ip, &in6->sin6_addr, 16);
  }
}

static int configure(int descriptor, int is_ipv6, int buffer_bytes) {
  int on = 1;
  if (is_ipv6) {
    if (setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) != 0) return -errno;
    if (setsockopt(descriptor, IPPROTO_IPV6, IPV6_RECVTCLASS, &on, sizeof on) != 0) return -errno;
  } else {
    if (setsockopt(descriptor, IPPROTO_IP, IP_RECVTOS, &on, sizeof on) != 0) return -errno;
  }
  if (setsockopt(descriptor, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on) != 0) return -errno;
  // The drop counter and large buffers are optional.
  (void)setsockopt(descriptor, SOL_SOCKET, SO_RXQ_OVFL, &on, sizeof on);
  // With CAP_NET_ADMIN, this exceeds the system's limit (net.core.rmem_max); without it, the limit
  // applies.
  if (setsockopt(descriptor, SOL_SOCKET, SO_RCVBUFFORCE, &buffer_bytes, sizeof buffer_bytes) != 0) {
    (void)setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &buffer_bytes, sizeof buffer_bytes);
  }
  (void)setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &buffer_bytes, sizeof buffer_bytes);
  return 0;
}

int csockets_udp_open(const csockets_address *address, int buffer_bytes, csockets_address *bound) {
  int is_ipv6 = address->family == 6;
  int descriptor =
      socket(is_ipv6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return -errno;
  struct sockaddr_storage storage;
  socklen_t length = csockets_to_sockaddr(address, &storage);
  int status = configure(descriptor, is_ipv6, buffer_bytes);
  if (status == 0 && bind(descriptor, (struct sockaddr *)&storage, length) != 0) status = -errno;
  length = sizeof storage;
  if (status == 0 && getsockname(descriptor, (struct sockaddr *)&storage, &length) != 0) {
    status = -errno;
  }
  if (status != 0) {
    close(descriptor);
    return status;
  }
  csockets_from_sockaddr(&storage, bound);
  return descriptor;
}

/// Reads the receive time, ECN mark, DSCP and drop count from a datagram's control messages.
static void read_control(struct msghdr *message, csockets_datagram *datagram) {
  for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c != NULL; c = CMSG_NXTHDR(message, c)) {
    const void *data = CMSG_DATA(c);
    if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS) {
      struct timespec time;
      memcpy(&time, data, sizeof time);
      datagram->realtime_ns = (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
    } else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_RXQ_OVFL) {
      memcpy(&datagram->dropped, data, sizeof datagram->dropped);
    } else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) {
      datagram->ecn = *(const uint8_t *)data & 3;
      datagram->code_point = *(const uint8_t *)data >> 2;
    } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS) {
      int traffic_class;
      memcpy(&traffic_class, data, sizeof traffic_class);
      datagram->ecn = (uint8_t)(traffic_class & 3);
      datagram->code_point = (uint8_t)(traffic_class >> 2 & 0x3f);
    }
  }
}

int csockets_udp_receive(int socket, csockets_datagram *datagrams, int count) {
  struct mmsghdr messages[CSOCKETS_BATCH_MAXIMUM];
  struct iovec vectors[CSOCKETS_BATCH_MAXIMUM];
  struct sockaddr_storage sources[CSOCKETS_BATCH_MAXIMUM];
  // The union aligns the control messages.
  union {
    struct cmsghdr header;
    uint8_t bytes[128];
  } controls[CSOCKETS_BATCH_MAXIMUM];
  if (count > CSOCKETS_BATCH_MAXIMUM) count = CSOCKETS_BATCH_MAXIMUM;
  if (count <= 0) return 0;
  for (int i = 0; i < count; i++) {
    vectors[i] = (struct iovec){datagrams[i].bytes, datagrams[i].capacity};
    messages[i] = (struct mmsghdr){
        .msg_hdr = {.msg_name = &sources[i],
                    .msg_namelen = sizeof sources[i],
                    .msg_iov = &vectors[i],
                    .msg_iovlen = 1,
                    .msg_control = &controls[i],
                    .msg_controllen = sizeof controls[i]}};
  }
  int received;
  do {
    received = recvmmsg(socket, messages, (unsigned)count, MSG_DONTWAIT, NULL);
  } while (received < 0 && errno == EINTR);
  if (received < 0) return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -errno;
  int64_t monotonic = csockets_monotonic_ns();
  int64_t realtime = csockets_realtime_ns();
  for (int i = 0; i < received; i++) {
    csockets_datagram *datagram = &datagrams[i];
    datagram->length = messages[i].msg_len;
    datagram->is_truncated = (messages[i].msg_hdr.msg_flags & MSG_TRUNC) != 0;
    datagram->realtime_ns = 0;
    datagram->ecn = 0;
    datagram->code_point = 0;
    datagram->dropped = 0;
    csockets_from_sockaddr(&sources[i], &datagram->source);
    read_control(&messages[i].msg_hdr, datagram);
    int64_t age = datagram->realtime_ns == 0 ? 0 : realtime - datagram->realtime_ns;
    if (age < 0 || age > AGE_MAXIMUM_NS) age = 0;
    datagram->monotonic_ns = monotonic - age;
  }
  return received;
}

/// Appends a control message after any existing ones, and returns its data.
static void *add_control(struct msghdr *message, int level, int type, size_t length) {
  size_t end = message->msg_controllen;
  struct cmsghdr *header = (struct cmsghdr *)((uint8_t *)message->msg_control + end);
  header->cmsg_level = level;
  header->cmsg_type = type;
  header->cmsg_len = CMSG_LEN(length);
  message->msg_controllen = end + CMSG_SPACE(length);
  return CMSG_DATA(header);
}

/// Sends datagrams of `segment` bytes each in one call, or a single datagram if `segment` is 0.
static int send_marked(int socket, const csockets_address *to, uint8_t code_point,
                       const uint8_t *bytes, size_t length, uint16_t segment) {
  struct sockaddr_storage storage;
  struct iovec vector = {(void *)bytes, length};
  // The union aligns the control messages.
  union {
    struct cmsghdr header;
    uint8_t bytes[CMSG_SPACE(sizeof segment) + CMSG_SPACE(sizeof(int))];
  } control = {0};
  struct msghdr message = {.msg_name = &storage,
                           .msg_namelen = csockets_to_sockaddr(to, &storage),
                           .msg_iov = &vector,
                           .msg_iovlen = 1,
                           .msg_control = &control,
                           .msg_controllen = 0};
  if (segment != 0) {
    void *data = add_control(&message, SOL_UDP, UDP_SEGMENT, sizeof segment);
    memcpy(data, &segment, sizeof segment);
  }
  if (code_point != 0) {
    // The two lowest bits hold the ECN field (RFC 3168 section 5).
    int traffic_class = (code_point & 0x3f) << 2;
    int is_new = to->family == 6;
    void *data = add_control(&message, is_new ? IPPROTO_IPV6 : IPPROTO_IP,
                             is_new ? IPV6_TCLASS : IP_TOS, sizeof traffic_class);
    memcpy(data, &traffic_class, sizeof traffic_class);
  }
  if (message.msg_controllen == 0) message.msg_control = NULL;
  ssize_t sent;
  do {
    sent = sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent < 0 ? -errno : 0;
}

int csockets_udp_send(int socket, const csockets_address *to, uint8_t code_point,
                      const uint8_t *bytes, size_t length) {
  return send_marked(socket, to, code_point, bytes, length, 0);
}

int csockets_udp_send_segments(int socket, const csockets_address *to, uint8_t code_point,
                               const uint8_t *bytes, size_t length, uint16_t segment) {
  return send_marked(socket, to, code_point, bytes, length, segment);
}
