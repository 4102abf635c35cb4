import ICE
import Peer
import Replay
import Tape
import Wire

/// A replay that writes every packet as it is without its protection.
struct ClearReplay {
  let take: String
  /// The number of the peer whose packets are wanted; nil for all.
  let only: Int64?

  /// Replays the take to its end or to the first difference.
  func run(
    into file: PacketFile, progress: (String) -> Void
  ) throws(ExportFailure) -> (report: ReplayReport, file: PacketFile) {
    let notes = Notes(file)
    let report = try ExportFailure.reading { () throws(TapeError) in
      try FollowedReplay(take: take, only: only).run(
        progress: { at, end in
          progress(
            "\(at.wholeSeconds) of \(end.wholeSeconds) s, \(counted(notes.file.count, "packet"))")
        }, notes.record)
    }
    try notes.file.flush()
    return (report, notes.file)
  }
}

/// What was overheard.
private final class Notes {
  var file: PacketFile
  init(_ file: PacketFile) { self.file = file }

  func record(
    _ sight: FollowedReplay.Sight, _ source: SocketAddress, _ destination: SocketAddress,
    _ at: Instant
  ) {
    switch sight {
    case .clear(let bytes, .rtp), .clear(let bytes, .rtcp):
      file.datagram(from: source, to: destination, bytes, atNanoseconds: at.nanoseconds)
    case .clear(let bytes, .sctp):
      file.association(
        from: source.ip, to: destination.ip, bytes, atNanoseconds: at.nanoseconds)
    case .datagram(let bytes, _):
      switch DatagramClass(bytes.span.bytes) {
      // What is protected stands there in the clear, and a handshake would make Wireshark take what
      // follows for SRTP.
      case .rtp, .rtcp, .dtls: return
      // So does what a relay carries of it.
      case .channelData where isProtected(ChannelData.read(bytes.span.bytes)?.data, of: bytes):
        return
      case .stun
      where isProtected((try? STUNMessage(bytes))?.attribute(.data)?.range, of: bytes):
        return
      case .stun, .channelData, .other: break
      }
      file.datagram(from: source, to: destination, bytes, atNanoseconds: at.nanoseconds)
    // What a connection carried stands there in the clear, without its framing.
    case .segment: break
    }
  }

  /// Whether a part of a datagram is what stands there in the clear.
  private func isProtected(_ range: Range<Int>?, of bytes: [UInt8]) -> Bool {
    guard let range else { return false }
    return switch DatagramClass(bytes.span.bytes.extracting(range)) {
    case .rtp, .rtcp, .dtls: true
    case .stun, .channelData, .other: false
    }
  }
}
