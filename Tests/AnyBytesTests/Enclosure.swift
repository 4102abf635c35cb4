import Wire

/// Layers around a frame, as captured on routers, in clouds and over radio.
enum Enclosure {
  typealias Layer = @Sendable ([UInt8]) -> [UInt8]

  /// Wraps an Ethernet frame in layers that make another Ethernet frame.
  static let layers: [Layer] = [
    { ethernet(0x8100, [0, 5] + $0.dropFirst(12)) },
    { ethernet(0x8864, [0x11, 0, 0, 7] + Frame.big($0.count - 12, 2) + [0, 0x21] + packet($0)) },
    { ethernet(0x8847, [0, 6, 0x41, 0xff] + packet($0)) },
    { ethernet(0x8847, [0, 6, 0x41, 0xff, 0, 0, 0, 0] + $0) },
    { ip(47, [0x30, 0, 8, 0] + zeros(8) + packet($0)) },
    { ip(47, [0x10, 0, 0x88, 0xbe] + zeros(4) + [0x10] + zeros(7) + $0) },
    { ip(47, [0x10, 0, 0x22, 0xeb] + zeros(4) + [0x20] + zeros(11) + $0) },
    { ip(4, packet($0)) },
    { udp(4789, [8, 0, 0, 0, 0, 1, 2, 0] + $0) },
    { udp(4790, [0x0c, 0, 0, 3, 0, 1, 2, 0] + $0) },
    { udp(6081, [1, 0, 0x65, 0x58, 0, 1, 2, 0] + zeros(4) + $0) },
    {
      udp(
        2152,
        [0x34, 255] + Frame.big($0.count - 6, 2) + zeros(7) + [0x85, 1, 0, 5, 0] + packet($0))
    },
    { udp(1701, [0, 2, 0, 1, 0, 2, 0xff, 3, 0, 0x21] + packet($0)) },
    { udp(37_008, [1, 0, 0, 1, 10, 1, 5, 1] + $0) },
  ]

  /// Converts an Ethernet frame to another link type, given by its number.
  static let links: [(UInt16, Layer)] = [
    (50, { [0xff, 3, 0, 0x21] + packet($0) }),
    (51, { [0x11, 0, 0, 7] + Frame.big(max(0, $0.count - 12), 2) + [0, 0x21] + packet($0) }),
    (105, { [0x88, 1] + zeros(24) + [0xaa, 0xaa, 3, 0, 0, 0, 8, 0] + packet($0) }),
    (
      127,
      { frame in
        let body = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0] + packet(frame)
        return [0, 0, 9, 0, 2, 0, 0, 0, 0x10] + [0x88, 1] + zeros(22) + [0x80, 0] + zeros(12)
          + Frame.big(body.count, 2) + body + zeros(4)
      }
    ),
    (192, { [0, 0, 8, 0, 1, 0, 0, 0] + $0 }),
    (219, { [0, 6, 0x41, 0xff] + packet($0) }),
    (239, { [2, 0, 0, 0] + Frame.big($0.count - 10, 2).reversed() + [9, 0] + packet($0) }),
    (258, { [12, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0] + $0 }),
  ]

  private static func zeros(_ count: Int) -> [UInt8] { [UInt8](repeating: 0, count: count) }

  private static func packet(_ frame: [UInt8]) -> [UInt8] { Array(frame.dropFirst(14)) }

  private static func ethernet(_ type: Int, _ payload: [UInt8]) -> [UInt8] {
    zeros(12) + Frame.big(type, 2) + payload
  }

  private static func ip(_ transport: UInt8, _ payload: [UInt8]) -> [UInt8] {
    Frame.ethernet(Frame.ipv4(payload, transport: transport, isFirst: true, number: payload.count))
  }

  private static func udp(_ port: Int, _ payload: [UInt8]) -> [UInt8] {
    let header = Frame.big(40_000, 2) + Frame.big(port, 2) + Frame.big(payload.count + 8, 2)
    return ip(17, header + [0, 0] + payload)
  }
}
