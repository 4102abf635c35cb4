import Media
import Peer
import RTP
import Replay
import Tape
import Transport
import Wire

/// A replay that writes every packet as it is without its protection.
///
/// Recorded frames stand in for the codecs where the take has them: what they make is of no use
/// here.
struct ClearReplay {
  let take: String
  let peers: [(number: Int64, label: String)]
  /// The number of the peer whose packets are wanted; nil for all.
  let only: Int64?

  /// Replays the take to its end or to the first difference.
  func run(
    into file: PacketFile, progress: (String) -> Void
  ) throws(ExportFailure) -> (report: ReplayReport, file: PacketFile) {
    let notes = Notes(file)
    var made = 0
    var options = Replayer.Options()
    options.skipsCodecs = try ExportFailure.reading { () throws(TapeError) in
      try TakeHeader.read(from: TakeFile.open(take), path: take).keepsMedia
    }
    let report = try ExportFailure.reading { () throws(TapeError) in
      let replayer = try Replayer(
        path: take, options: options, codecs: { LibraryCodecs() },
        peer: { codecs in
          // The replay makes its peers in the order in which the take names them.
          let number = made < peers.count ? peers[made].number : Int64(made + 1)
          made += 1
          let machine = PeerMachine(codecs: codecs)
          guard only == nil || only == number else { return machine }
          return OverheardPeer(machine, notes)
        })
      let end = try replayer.lastTime() ?? .zero
      return try replayer.run { at in
        progress("\(at.wholeSeconds) of \(end.wholeSeconds) s, \(notes.file.count) packets")
      }
    }
    try notes.file.flush()
    return (report, notes.file)
  }
}

/// What was overheard.
private final class Notes {
  var file: PacketFile
  init(_ file: PacketFile) { self.file = file }

  func note(_ packet: ClearPacket) {
    let (source, destination) =
      packet.isInbound ? (packet.remote, packet.local) : (packet.local, packet.remote)
    switch packet.kind {
    case .rtp, .rtcp:
      file.datagram(
        from: source, to: destination, packet.bytes, atNanoseconds: packet.at.nanoseconds)
    case .sctp:
      file.association(
        from: source.ip, to: destination.ip, packet.bytes, atNanoseconds: packet.at.nanoseconds)
    }
  }

  /// Notes a datagram that neither protects a packet nor agrees on how to.
  func note(_ datagram: Datagram, isInbound: Bool, at: Instant) {
    switch DatagramClass(datagram.bytes.span.bytes) {
    // A handshake would make Wireshark take what follows for SRTP.
    case .rtp, .rtcp, .dtls: return
    case .stun, .channelData, .other: break
    }
    let (source, destination) =
      isInbound ? (datagram.remote, datagram.local) : (datagram.local, datagram.remote)
    file.datagram(from: source, to: destination, datagram.bytes, atNanoseconds: at.nanoseconds)
  }
}

/// A peer in a replay whose packets somebody follows.
private final class OverheardPeer: ReplayedPeer {
  private let machine: PeerMachine
  private let notes: Notes

  init(_ machine: PeerMachine, _ notes: Notes) {
    self.machine = machine
    self.notes = notes
    machine.onlooker = { notes.note($0) }
  }

  func step(_ input: PeerInput, at now: Instant, into outbox: inout Outbox<PeerOutput>) {
    if case .datagram(let datagram, let arrival) = input {
      notes.note(datagram, isInbound: true, at: arrival)
    }
    machine.step(input, at: now, into: &outbox)
    for case .datagram(let datagram) in outbox.outputs {
      notes.note(datagram, isInbound: false, at: now)
    }
  }

  var deadline: Instant? { machine.deadline }
  var entropyDrawn: UInt64 { machine.entropyDrawn }
}
