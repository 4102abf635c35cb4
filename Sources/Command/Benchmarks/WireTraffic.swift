import FoundationEssentials
import Glibc
import RetakeCommand
import Secure

/// Generates RTP like that of dozens of phone calls, with the same rate for each.
struct WireTraffic: ~Copyable {
  /// The master key and salt that every end shares.
  static let key = [UInt8](0..<28)

  let calls: Int
  let packetLength: Int
  private var protection: SRTPContext?
  /// Random bytes that stand for encrypted payloads.
  private let noise: [UInt8]
  private var sent = 0

  /// An AES-GCM tag's length in bytes.
  private static let tagLength = 16
  private static let headerLength = 12

  /// - Parameter hasKeys: whether packets are encrypted with `key`; otherwise they only look
  ///   encrypted.
  init(calls: Int, packetLength: Int, hasKeys: Bool) throws {
    self.calls = calls
    self.packetLength = packetLength
    protection =
      hasKeys
      ? try SRTPContext(profile: .aeadAES128GCM, sendKey: Self.key, receiveKey: Self.key) : nil
    var state: UInt64 = 1
    noise = (0..<1 << 16).map { _ in
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return UInt8(truncatingIfNeeded: state >> 56)
    }
  }

  /// Returns the next packet, and which of the `2 * calls` ends sends it.
  mutating func next() throws -> (end: Int, bytes: [UInt8]) {
    let end = sent % (2 * calls)
    let number = sent / (2 * calls)
    let length = packetLength - (protection == nil ? 0 : Self.tagLength)
    var bytes: [UInt8] = [0x80, 111]
    bytes.reserveCapacity(packetLength)
    func put(_ value: UInt32, _ count: Int) {
      for place in (0..<count).reversed() {
        bytes.append(UInt8(truncatingIfNeeded: value >> UInt32(8 * place)))
      }
    }
    put(UInt32(truncatingIfNeeded: number), 2)
    put(UInt32(truncatingIfNeeded: number * 960), 4)
    put(UInt32(1000 + end), 4)
    let begin = sent * 37 % (noise.count - length)
    bytes += noise[begin..<begin + length - Self.headerLength]
    try protection?.protectRTP(&bytes)
    sent += 1
    return (end, bytes)
  }

  /// Writes packets as a raw IP capture, 20 ms apart at each end.
  mutating func write(_ count: Int, to path: String) throws {
    guard let handle = fopen(path, "w") else {
      throw CommandFailure(.inputOutput, "\(path): it cannot be written")
    }
    defer { fclose(handle) }
    var buffer: [UInt8] = []
    func put(_ value: Int, _ count: Int) {
      for place in 0..<count { buffer.append(UInt8(truncatingIfNeeded: value >> (8 * place))) }
    }
    func big(_ value: Int, _ count: Int) {
      for place in (0..<count).reversed() {
        buffer.append(UInt8(truncatingIfNeeded: value >> (8 * place)))
      }
    }
    // The header of a raw IP pcap with microseconds.
    for (value, length) in [
      (0xa1b2_c3d4, 4), (2, 2), (4, 2), (0, 4), (0, 4), (262_144, 4), (101, 4),
    ] {
      put(value, length)
    }
    for number in 0..<count {
      let (end, bytes) = try next()
      let microseconds = number / (2 * calls) * 20_000 + end * 20_000 / (2 * calls)
      put(1_700_000_000 + microseconds / 1_000_000, 4)
      put(microseconds % 1_000_000, 4)
      put(28 + bytes.count, 4)
      put(28 + bytes.count, 4)
      big(0x4500, 2)
      big(28 + bytes.count, 2)
      big(number & 0xffff, 2)
      big(0, 2)
      big(0x4011_0000, 4)
      let (call, side) = (end / 2, end % 2)
      big(0x0a00_0001 + call << 8 + side, 4)
      big(0x0a00_0001 + call << 8 + (1 - side), 4)
      big(40_000 + call + side * 5_000, 2)
      big(40_000 + call + (1 - side) * 5_000, 2)
      big(8 + bytes.count, 2)
      big(0, 2)
      buffer += bytes
      if buffer.count > 1 << 20 || number == count - 1 {
        fwrite(buffer, 1, buffer.count, handle)
        buffer.removeAll(keepingCapacity: true)
      }
    }
  }
}

// MARK: - WireFlood

/// Sends packets over loopback at a rate, to ports on which only a capture listens.
struct WireFlood: ~Copyable {
  /// The ports that all calls use at both ends, as a libpcap filter.
  static let ports = "40000-45100"

  private var traffic: WireTraffic
  private var sockets: [Int32]
  private let ends: [UInt16]

  /// The time between bursts, in milliseconds.
  private static let pieceMilliseconds = 2

  init(calls: Int) throws {
    let traffic = try WireTraffic(calls: calls, packetLength: 160, hasKeys: true)
    let ends = (0..<2 * calls).map { (end: Int) -> UInt16 in
      let side = end % 2
      return UInt16(40_000 + end / 2 + side * 5_000)
    }
    var sockets: [Int32] = []
    for port in ends {
      let socket = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
      var size: Int32 = 4096
      setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
      let code = Self.withAddress(port) { bind(socket, $0, $1) }
      sockets.append(socket)
      guard socket >= 0, code == 0 else {
        for socket in sockets where socket >= 0 { close(socket) }
        throw CommandFailure(.inputOutput, "port \(port) of loopback is in use")
      }
    }
    self.traffic = traffic
    self.ends = ends
    self.sockets = sockets
  }

  /// Sends for a time; returns the number of sent packets.
  mutating func send(rate: Int, seconds: Double) throws -> Int {
    defer {
      for socket in sockets { close(socket) }
      sockets = []
    }
    let begin = ContinuousClock.now
    var sent = 0
    let all = Int(Double(rate) * seconds)
    while sent < all {
      let due = min(all, Int(begin.duration(to: .now).seconds * Double(rate)) + 1)
      while sent < due {
        let (end, bytes) = try traffic.next()
        let length = Self.withAddress(ends[end ^ 1]) { address, size in
          bytes.withUnsafeBufferPointer {
            sendto(sockets[end], $0.baseAddress, $0.count, 0, address, size)
          }
        }
        guard length == bytes.count else {
          throw CommandFailure(.inputOutput, "loopback accepts no more packets")
        }
        sent += 1
      }
      let next = begin + .seconds(Double(sent) / Double(rate))
      let wait = max(ContinuousClock.now.duration(to: next), .milliseconds(Self.pieceMilliseconds))
      usleep(UInt32(wait.seconds * 1e6))
    }
    return sent
  }

  private static func withAddress<Result>(
    _ port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
  ) -> Result {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    let size = socklen_t(MemoryLayout<sockaddr_in>.size)
    return withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, size) }
    }
  }
}
