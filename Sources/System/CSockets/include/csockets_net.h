/// UDP sockets with kernel receive times and ECN marks, for the live loop.
///
/// Functions return a negative errno value when they fail.
#ifndef CSOCKETS_NET_H
#define CSOCKETS_NET_H

#include <stddef.h>
#include <stdint.h>

/// The maximum number of datagrams per receive call.
#define CSOCKETS_BATCH_MAXIMUM 64

/// An IPv4 or IPv6 address with a port.
typedef struct {
  /// The address in network order; an IPv4 address is in the first four bytes.
  uint8_t ip[16];
  /// The IP version: 4 or 6.
  uint8_t family;
  /// The port in host order.
  uint16_t port;
  /// For a link-local IPv6 address, the kernel's number of its interface; 0 for others.
  uint32_t scope;
} csockets_address;

/// A received datagram, or a buffer for one.
typedef struct {
  /// The buffer for the bytes, which belongs to the caller.
  uint8_t *bytes;
  /// The size of the buffer in bytes.
  size_t capacity;
  /// The number of received bytes.
  ///
  /// Longer datagrams are truncated and marked.
  size_t length;
  csockets_address source;
  /// When the kernel received the datagram, on CLOCK_REALTIME, nanoseconds; 0 without a time stamp.
  int64_t realtime_ns;
  /// The same instant on CLOCK_MONOTONIC, nanoseconds, never after the call.
  int64_t monotonic_ns;
  /// The ECN field of the IP header, 0 to 3 (RFC 3168 section 5).
  uint8_t ecn;
  /// The DSCP in the IP header, 0 to 63 (RFC 2474 section 3).
  uint8_t code_point;
  /// Not 0 if the datagram was longer than the buffer.
  uint8_t is_truncated;
  /// How many datagrams the socket's queue has dropped so far (SO_RXQ_OVFL).
  uint32_t dropped;
} csockets_datagram;

/// Opens a UDP socket bound to an address and stores the bound address; port 0 requests a free
/// port.
///
/// The socket does not block, is not inherited, and reports receive times and ECN marks. An IPv6
/// socket carries IPv6 only. `buffer_bytes` is requested for both directions; the kernel may grant
/// less. Returns the descriptor.
int csockets_udp_open(const csockets_address *address, int buffer_bytes, csockets_address *bound);

/// Receives up to `count` datagrams without waiting; returns their number, 0 when there are none.
int csockets_udp_receive(int socket, csockets_datagram *datagrams, int count);

/// Sends a datagram with a DSCP (0 to 63, RFC 2474) without waiting; returns 0, or -EAGAIN if the
/// socket's buffer is full.
int csockets_udp_send(int socket, const csockets_address *to, uint8_t code_point,
                      const uint8_t *bytes, size_t length);

/// Sends datagrams of `segment` bytes each, the last one possibly shorter, in one call without
/// waiting (UDP generic segmentation offload); returns 0, or an error if the kernel accepted none.
///
/// It sends at most 64 datagrams and 65,000 bytes; EINVAL and EIO also mean that the kernel or the
/// path does not support it.
int csockets_udp_send_segments(int socket, const csockets_address *to, uint8_t code_point,
                               const uint8_t *bytes, size_t length, uint16_t segment);

/// Closes a descriptor of any kind.
int csockets_close(int descriptor);

/// CLOCK_MONOTONIC in nanoseconds.
int64_t csockets_monotonic_ns(void);

/// CLOCK_REALTIME in nanoseconds.
int64_t csockets_realtime_ns(void);

#endif
