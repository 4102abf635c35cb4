import ICE
import Observer
import Wire

/// Messages that the ends of a call send.
enum Messages {
  static let a = SocketAddress(IPAddress(ipv4: 0xc000_0201), port: 5000)
  static let b = SocketAddress(IPAddress(ipv4: 0xc000_0202), port: 6000)
  static let server = SocketAddress(IPAddress(ipv4: 0xc000_02fe), port: 3478)
  static let relayed = SocketAddress(IPAddress(ipv4: 0xc000_02fe), port: 49_152)

  static func transaction(_ number: Int) -> STUNTransactionID {
    STUNTransactionID(high: 7, low: UInt64(number))
  }

  static func check(
    _ number: Int, from sender: String, to receiver: String, controlling: Bool = true,
    nominates: Bool = false, priority: UInt32 = 1_853_824_767
  ) -> [UInt8] {
    var writer = STUNWriter(.request, transactionID: transaction(number))
    writer.username("\(receiver):\(sender)")
    writer.priority(priority)
    if controlling { writer.iceControlling(9) } else { writer.iceControlled(4) }
    if nominates { writer.useCandidate() }
    return writer.finish(key: [1])
  }

  static func success(_ number: Int, mapped: SocketAddress) -> [UInt8] {
    var writer = STUNWriter(.success, transactionID: transaction(number))
    writer.xorMappedAddress(mapped)
    return writer.finish(key: [1])
  }

  static func rtp(_ sequence: Int, ssrc: UInt32 = 0x0102_0304, type: UInt8 = 8) -> [UInt8] {
    var writer = ByteWriter()
    writer.uint8(0x80)
    writer.uint8(type)
    writer.uint16(UInt16(truncatingIfNeeded: sequence))
    writer.uint32(UInt32(truncatingIfNeeded: sequence * 160))
    writer.uint32(ssrc)
    writer.append([UInt8](repeating: UInt8(truncatingIfNeeded: sequence), count: 160))
    return writer.bytes
  }
}

/// A call constructed by a test.
struct SyntheticCall {
  var watch = Watch()
  var now = Instant.zero
  private var number = 0

  var seen: Seen { watch.seen }

  mutating func send(
    _ bytes: [UInt8], _ tuple: FiveTuple, to observer: inout Observer, after: Int64 = 10
  ) {
    now += .milliseconds(after)
    watch.step(&observer, .datagram(tuple, bytes), at: now)
  }

  /// Sends a check with its answer in each direction, the second one nominating.
  mutating func connect(
    _ observer: inout Observer, _ tuple: FiveTuple, names: (String, String) = ("aaaa", "bbbb")
  ) {
    let (left, right) = names
    number += 10
    send(Messages.check(number, from: left, to: right), tuple, to: &observer)
    send(
      Messages.check(number + 1, from: right, to: left, controlling: false), tuple.reversed,
      to: &observer)
    send(Messages.success(number, mapped: tuple.source), tuple.reversed, to: &observer)
    send(Messages.success(number + 1, mapped: tuple.destination), tuple, to: &observer)
    send(
      Messages.check(number + 2, from: left, to: right, nominates: true), tuple, to: &observer)
    send(
      Messages.success(number + 2, mapped: tuple.source), tuple.reversed, to: &observer, after: 30)
  }
}
