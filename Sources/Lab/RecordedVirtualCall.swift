package import AudioSession
package import Peer
package import Secure
package import Tape
package import Wire

/// A virtual call whose steps go into a take.
package final class RecordedVirtualCall {
  package let call: VirtualCall
  private let writer: TapeWriter

  /// Creates the take and the peers, named by the labels.
  /// - Parameter only: the one peer to record; nil for all.
  package init(
    path: String, seed: UInt64, links: [LinkSettings], labels: [String], label: String = "",
    keepsMedia: Bool = true, configurations: [PeerConfiguration] = [],
    only: Int? = nil, security: any SecurityFactory = LibrarySecurity()
  ) throws(TapeError) {
    var options = TapeWriter.Options()
    options.label = label
    options.keepsMedia = keepsMedia
    options.startUnixNanoseconds = labEpoch
    options.toolVersion = retakeVersion
    // Virtual time is faster than any disk, so wait for the writer.
    options.waitsForDisk = true
    options.queueLimit = 32 << 20
    options.toolchain = try Toolchain.current(for: path)
    let writer = try TapeWriter(path: path, options: options)
    self.writer = writer
    let numbers = labels.enumerated().map { place, label in
      only == nil || only == place ? writer.addPeer(label: label, role: label).actor : 0
    }
    call = VirtualCall(
      seed: seed, links: links, configurations: configurations, peerNumbers: numbers,
      security: security
    ) { if $0.actor > 0 { writer.record($0) } }
  }

  /// Creates an audio session in the same take.
  package func audioSession(
    _ policy: AudioSessionPolicy = AudioSessionPolicy(), label: String = "audio"
  ) -> VirtualAudioSession {
    VirtualAudioSession(policy, writer: writer, label: label)
  }

  /// Advances virtual time, sampling every peer's stats once per second.
  package func run(for interval: Interval) {
    let end = call.now + interval
    while call.now < end {
      call.run(until: min(end, call.now + .seconds(1)))
      for peer in call.network.links.indices { call.call(peer, .getStats()) }
    }
  }

  /// Waits for the writer's thread.
  package func flush() { writer.flush() }

  /// Completes the take in the middle of the call.
  package func cutOff() throws(TapeError) -> TapeWriter.Summary { try writer.finish() }

  /// Closes the peers and completes the take.
  package func finish() throws(TapeError) -> TapeWriter.Summary {
    for peer in call.network.links.indices { call.call(peer, .close) }
    call.run(for: .milliseconds(200))
    return try writer.finish()
  }
}
