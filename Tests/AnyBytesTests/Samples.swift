import Foundation
import Lab
import Media
import Peer
import RTP
import Tape
import Wire

/// What the mutations begin with: packets of real and virtual calls, descriptions of real stacks.
enum Samples {
  private static var tests: URL {
    URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
  }

  /// RTP and RTCP of a call from Chromium, in the clear.
  static func clearPackets() throws -> (rtp: [[UInt8]], rtcp: [[UInt8]]) {
    let file = tests.appending(path: "RTPTests/Samples/chromium-call.txt")
    let packets = try String(contentsOf: file, encoding: .utf8).split(separator: "\n").map {
      line -> [UInt8] in
      let digits = line.split(separator: " ").last.map { $0.compactMap(\.hexDigitValue) } ?? []
      return stride(from: 0, to: digits.count - 1, by: 2).map {
        UInt8(digits[$0] << 4 | digits[$0 + 1])
      }
    }
    let rtp = packets.filter { DatagramClass($0.span.bytes) == .rtp }
    return (rtp, packets.filter { DatagramClass($0.span.bytes) == .rtcp })
  }

  /// Descriptions that browsers and servers gave.
  static func descriptions() throws -> [[UInt8]] {
    let folder = tests.appending(path: "SDPTests/Samples")
    return try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted().map {
      Array(try Data(contentsOf: folder.appending(path: $0)))
    }
  }

  /// A call between two peers with sound and small pictures, before anything was signaled.
  static func call(seed: UInt64) -> VirtualCall {
    let call = VirtualCall(seed: seed)
    for peer in 0..<2 {
      call.call(
        peer, .addTrack(kind: .audio, streamIDs: ["s"], source: .tone(hertz: 440, pauseSeconds: 0)))
      call.call(
        peer,
        .addTrack(
          kind: .video, streamIDs: ["s"],
          source: .pattern(width: 64, height: 48, framesPerSecond: 5)))
    }
    return call
  }

  /// Every datagram that both peers of a short call received, in order.
  static func datagrams(seed: UInt64, milliseconds: Int64) -> [(peer: Int, datagram: Datagram)] {
    var received: [(peer: Int, datagram: Datagram)] = []
    let call = VirtualCall(seed: seed) { step in
      if case .datagram(let datagram, _) = step.input {
        received.append((Int(step.peer) - 1, datagram))
      }
    }
    for peer in 0..<2 {
      call.call(
        peer, .addTrack(kind: .audio, streamIDs: ["s"], source: .tone(hertz: 440, pauseSeconds: 0)))
    }
    call.negotiate()
    call.run(for: .milliseconds(milliseconds))
    return received
  }
}
