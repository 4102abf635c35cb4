import Media
import Peer
import Replay
import Tape
import Wire

/// A replay that hands on what its peers show and play.
struct MediaReplay {
  let take: String
  let peers: [(number: Int64, label: String)]
  /// The number of the peer whose media is wanted; nil for all.
  let only: Int64?
  let tracks: TrackFiles

  /// Replays the take to its end or to the first difference.
  func run(progress: (String) -> Void) throws(ExportFailure) -> ReplayReport {
    var made = 0
    return try ExportFailure.reading { () throws(TapeError) in
      let replayer = try Replayer(
        path: take, kinds: .following { _, outputs, _ in observe(outputs) },
        codecs: { LibraryCodecs() },
        peer: { codecs in
          // The replay makes its peers in the order in which the take names them.
          let peer = made < peers.count ? peers[made] : (number: Int64(made + 1), label: "")
          made += 1
          let machine = PeerMachine(codecs: codecs)
          guard only == nil || only == peer.number else { return machine }
          return HeardPeer(machine) { media, kind in tracks.write(media, kind, of: peer) }
        })
      let end = try replayer.lastTime() ?? .zero
      return try replayer.run { at in
        progress("\(at.wholeSeconds) of \(end.wholeSeconds) s, \(counted(tracks.count, "frame"))")
      }
    }
  }
}

extension MediaReplay {
  /// Writes what the ends of calls between others show and play.
  private func observe(_ outputs: [ObserverOutput]) {
    for output in outputs {
      guard case .followed(.event(.frame(let frame)), let at) = output.content,
        let number = output.peers?.first.map({ Int64($0) }), only == nil || only == number,
        let media = ReceivedMedia(frame, at: at)
      else { continue }
      let label = peers.first { $0.number == number }?.label ?? ""
      tracks.write(media, frame.kind, of: (number, label))
    }
  }
}

/// A peer in a replay whose received media somebody follows.
private final class HeardPeer: ReplayedPeer {
  private let machine: PeerMachine
  private let receive: (ReceivedMedia, MediaKind) -> Void

  init(_ machine: PeerMachine, _ receive: @escaping (ReceivedMedia, MediaKind) -> Void) {
    self.machine = machine
    self.receive = receive
  }

  func step(_ input: PeerInput, at now: Instant, into outbox: inout Outbox<PeerOutput>) {
    machine.step(input, at: now, into: &outbox)
    for case .event(.frame(let frame)) in outbox.outputs {
      if let media = ReceivedMedia(frame, at: now) { receive(media, frame.kind) }
    }
  }

  var deadline: Instant? { machine.deadline }
  var entropyDrawn: UInt64 { machine.entropyDrawn }
}

extension Instant {
  /// The seconds since the take began, without their fraction.
  var wholeSeconds: Int64 { nanoseconds / 1_000_000_000 }
}
