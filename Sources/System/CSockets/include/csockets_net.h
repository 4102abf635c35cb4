/// UDP sockets with kernel receive times and ECN marks, for the live loop.
///
/// Functions give a negative errno value when they fail.
#ifndef CSOCKETS_NET_H
#define CSOCKETS_NET_H

#include <stddef.h>
#include <stdint.h>

/// How many datagrams one receive call gives at most.
#define CSOCKETS_BATCH_MAXIMUM 64

/// An IPv4 or IPv6 address with a port.
typedef struct {
  /// The address in network order; an IPv4 address stands in the first four bytes.
  uint8_t ip[16];
  /// 4 or 6.
  uint8_t family;
  /// The port in host order.
  uint16_t port;
  /// The kernel's number of the interface that a link-local IPv6 address is meant on, or 0.
  uint32_t scope;
} csockets_address;

/// A datagram that was received, or room for one.
typedef struct {
  /// Where the bytes go; the caller's storage.
  uint8_t *bytes;
  /// How many bytes fit.
  size_t capacity;
  /// How many bytes came. Longer datagrams are cut and marked.
  size_t length;
  csockets_address source;
  /// When the kernel received it, on CLOCK_REALTIME, nanoseconds; 0 without a time stamp.
  int64_t realtime_ns;
  /// The same instant on CLOCK_MONOTONIC, nanoseconds, never after the call.
  int64_t monotonic_ns;
  /// The ECN field of the IP header, 0 to 3 (RFC 3168 section 5).
  uint8_t ecn;
  /// The code point of the IP header, 0 to 63 (RFC 2474 section 3).
  uint8_t code_point;
  /// Not 0 when the datagram was longer than the room for it.
  uint8_t is_truncated;
  /// How many datagrams the socket's queue has dropped so far (SO_RXQ_OVFL).
  uint32_t dropped;
} csockets_datagram;

/// Opens a UDP socket bound to an address and tells what it was bound to (port 0 asks for a free
/// one).
///
/// The socket does not block, is not inherited, and gives receive times and ECN marks. An IPv6
/// socket carries IPv6 only. `buffer_bytes` is wished for both directions; the kernel may grant
/// less. Gives the descriptor.
int csockets_udp_open(const csockets_address *address, int buffer_bytes, csockets_address *bound);

/// Receives up to `count` datagrams without waiting; returns their number, 0 when there are none.
int csockets_udp_receive(int socket, csockets_datagram *datagrams, int count);

/// Sends a datagram with a code point (0 to 63, RFC 2474) without waiting; gives 0, or -EAGAIN when
/// the socket's buffer is full.
int csockets_udp_send(int socket, const csockets_address *to, uint8_t code_point,
                      const uint8_t *bytes, size_t length);

/// Sends datagrams of `segment` bytes each, the last one maybe shorter, in one call without waiting
/// (UDP generic segmentation offload); gives 0, or an error when the kernel took none of them.
///
/// At most 64 datagrams and 65,000 bytes; EINVAL and EIO also mean that kernel or path cannot.
int csockets_udp_send_segments(int socket, const csockets_address *to, uint8_t code_point,
                               const uint8_t *bytes, size_t length, uint16_t segment);

/// Closes a descriptor of any kind.
int csockets_close(int descriptor);

/// CLOCK_MONOTONIC in nanoseconds.
int64_t csockets_monotonic_ns(void);

/// CLOCK_REALTIME in nanoseconds.
int64_t csockets_realtime_ns(void);

#endif
