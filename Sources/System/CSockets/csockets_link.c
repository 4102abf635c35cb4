#define _GNU_SOURCE
#include "csockets_link.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include "csockets_sockaddr.h"

int csockets_multicast_open(int family, uint16_t port) {
  csockets_address any = {.family = (uint8_t)family, .port = port};
  int descriptor = socket(
      family == 6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return -errno;
  int on = 1, off = 0, hops = 255, status = 0;
  struct sockaddr_storage storage;
  socklen_t length = csockets_to_sockaddr(&any, &storage);
  if (setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0
      || setsockopt(descriptor, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) != 0
      || setsockopt(descriptor, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on) != 0) {
    status = -errno;
  }
  // A hop limit of 255 shows receivers that a packet was sent on this link (RFC 6762 section 11).
  if (status == 0 && family == 6) {
    if (setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) != 0) status = -errno;
    (void)setsockopt(descriptor, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, &hops, sizeof hops);
    (void)setsockopt(descriptor, IPPROTO_IPV6, IPV6_MULTICAST_ALL, &off, sizeof off);
  } else if (status == 0) {
    (void)setsockopt(descriptor, IPPROTO_IP, IP_MULTICAST_TTL, &hops, sizeof hops);
    (void)setsockopt(descriptor, IPPROTO_IP, IP_MULTICAST_ALL, &off, sizeof off);
  }
  if (status == 0 && bind(descriptor, (struct sockaddr *)&storage, length) != 0) status = -errno;
  if (status == 0) return descriptor;
  close(descriptor);
  return status;
}

int csockets_multicast_join(int socket, const csockets_address *group, unsigned interface) {
  struct group_req request = {.gr_interface = interface};
  csockets_to_sockaddr(group, &request.gr_group);
  int level = group->family == 6 ? IPPROTO_IPV6 : IPPROTO_IP;
  if (setsockopt(socket, level, MCAST_JOIN_GROUP, &request, sizeof request) == 0) return 0;
  return errno == EADDRINUSE ? 0 : -errno;
}

int csockets_multicast_send(
    int socket, const csockets_address *group, unsigned interface, const uint8_t *bytes,
    size_t length) {
  int status;
  if (group->family == 6) {
    int index = (int)interface;
    status = setsockopt(socket, IPPROTO_IPV6, IPV6_MULTICAST_IF, &index, sizeof index);
  } else {
    struct ip_mreqn request = {.imr_ifindex = (int)interface};
    status = setsockopt(socket, IPPROTO_IP, IP_MULTICAST_IF, &request, sizeof request);
  }
  if (status != 0) return -errno;
  struct sockaddr_storage storage;
  socklen_t size = csockets_to_sockaddr(group, &storage);
  ssize_t count = sendto(socket, bytes, length, MSG_NOSIGNAL, (struct sockaddr *)&storage, size);
  return count < 0 ? -errno : 0;
}

int csockets_link_watch(void) {
  int descriptor = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (descriptor < 0) return -errno;
  struct sockaddr_nl address = {
      .nl_family = AF_NETLINK,
      .nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR,
  };
  if (bind(descriptor, (struct sockaddr *)&address, sizeof address) == 0) return descriptor;
  int status = -errno;
  close(descriptor);
  return status;
}

int csockets_link_clear(int socket) {
  uint8_t bytes[8192];
  int count = 0;
  // Overflowing messages are lost with ENOBUFS; it only matters that something changed.
  while (recv(socket, bytes, sizeof bytes, 0) > 0 || errno == ENOBUFS) count += 1;
  return count;
}
