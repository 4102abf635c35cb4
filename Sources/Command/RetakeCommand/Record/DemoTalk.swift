import Lab
import Live
import Peer
import SCTP
import Wire

/// What the demonstration says over its data channel: a line every second, a block of bytes every
/// other second.
enum DemoTalk {
  private static let block = [UInt8](0..<250) + [UInt8](repeating: 0xaa, count: 19_750)

  private static func line(_ number: Int) -> String { "message \(number)" }

  /// Talks until the channel is closed or the task is cancelled; the other side echoes.
  static func run(on channel: DataChannel) async throws {
    try await channel.waitUntilOpen()
    for number in 1... {
      try await channel.send(line(number))
      if number % 2 == 0 { try await channel.send(block) }
      try await Task.sleep(for: .seconds(1))
    }
  }

  /// Advances virtual time while both sides talk.
  static func run(_ recording: RecordedVirtualCall, for interval: Interval) {
    let call = recording.call
    let end = call.now + interval
    var number = 0
    while call.now < end {
      recording.run(for: min(.seconds(1), end - call.now))
      number += 1
      for peer in 0..<2 where call.state("sctp", of: peer) == "connected" {
        let text = Array(line(number).utf8)
        call.send(peer, DataMessage(channel: 0, isBinary: false, bytes: text))
        if number % 2 == 0 {
          call.send(peer, DataMessage(channel: 0, isBinary: true, bytes: block))
        }
      }
    }
  }
}
