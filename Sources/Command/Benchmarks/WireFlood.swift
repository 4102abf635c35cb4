import FoundationEssentials
import Glibc
import RetakeCommand

/// Sends packets over loopback at a rate, to ports where nobody listens but a capture.
struct WireFlood: ~Copyable {
  /// The ports of both ends of all calls, as filters of libpcap have them.
  static let ports = "40000-45100"

  private var traffic: WireTraffic
  private var sockets: [Int32]
  private let ends: [UInt16]

  /// Packets are sent by so many milliseconds at a time.
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
        throw CommandFailure(.inputOutput, "port \(port) of loopback is taken")
      }
    }
    self.traffic = traffic
    self.ends = ends
    self.sockets = sockets
  }

  /// Sends for so many seconds; returns how many packets went out.
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
          throw CommandFailure(.inputOutput, "loopback takes no more packets")
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
