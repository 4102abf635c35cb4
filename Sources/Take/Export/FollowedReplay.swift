import ICE
import Media
import Observer
package import Peer
package import Replay
package import Tape
package import Wire

/// Replays a take and passes on its packets, both as on the wire and decrypted, from endpoints and
/// observed calls.
///
/// If the take has encoded frames, no codecs run, because decoded media is not needed here.
package struct FollowedReplay {
  /// An item that a replay passes on: a datagram, a decrypted packet, or a part of a TCP stream.
  package enum Sight {
    /// A datagram as captured on the wire, or its beginning if the capture truncated it.
    case datagram([UInt8], isTruncated: Bool)
    /// An unencrypted RTP, RTCP or SCTP packet.
    ///
    /// If the take has both endpoints of a call, each packet is passed on twice: as sent by one and
    /// as received by the other. In observed calls, each packet is passed on once, as received.
    case clear([UInt8], ClearPacket.Kind, isSent: Bool)
    /// The next bytes in one direction of a TCP connection, after `lost` missing bytes.
    case segment([UInt8], lost: Int, isEnd: Bool)
  }

  /// Receives a packet, its source and destination, and its time.
  package typealias Follower = (
    _ sight: Sight, _ source: SocketAddress, _ destination: SocketAddress, _ at: Instant
  ) -> Void

  private let take: String
  private let only: Int64?
  private let keepsMedia: Bool
  /// The endpoints' peer numbers, in the order in which a replay creates them.
  package let endpoints: [Int64]

  /// - Parameter only: the number of the endpoint whose packets are passed on; nil for all.
  package init(take: String, only: Int64?) throws(TapeError) {
    self.take = take
    self.only = only
    let connection = try TakeFile.open(take)
    keepsMedia = try TakeHeader.read(from: connection, path: take).keepsMedia
    do throws(SQLiteError) {
      let peers = try connection.prepare(
        "SELECT peer FROM peer WHERE role <> 'observed' ORDER BY row")
      var endpoints: [Int64] = []
      while try peers.step() { endpoints.append(peers.values(Int64.self)) }
      self.endpoints = endpoints
    } catch {
      throw TapeError(path: take, place: "peer", error)
    }
  }

  /// Replays the take to its end or to the first difference; may be called only once.
  ///
  /// - Parameter until: the replay stops at the first step after this time; nil to replay
  ///   everything.
  package func run(
    until: Instant? = nil, progress: (_ at: Instant, _ end: Instant) -> Void,
    _ follow: @escaping Follower
  ) throws(TapeError) -> ReplayReport {
    var made = 0
    var options = Replayer.Options()
    options.until = until.map { .time($0) }
    options.skipsCodecs = keepsMedia
    let watch = FollowedWatch(follow)
    let replayer = try Replayer(
      path: take, options: options,
      kinds: .following { input, outputs, at in
        if only == nil { watch.record(input, outputs, at) }
      },
      codecs: { LibraryCodecs() },
      peer: { codecs in
        let number = made < endpoints.count ? endpoints[made] : 0
        made += 1
        let machine = PeerMachine(codecs: codecs)
        guard only == nil || only == number else { return machine }
        return FollowedPeer(machine, follow)
      })
    let end = try replayer.lastTime() ?? .zero
    return try replayer.run { progress($0, end) }
  }
}

/// Passes the packets that observers saw to the follower.
private final class FollowedWatch {
  private let follow: FollowedReplay.Follower
  /// The addresses of both ends of each pair that observers reported.
  private var pairs: [Int: [SocketAddress]] = [:]

  init(_ follow: @escaping FollowedReplay.Follower) { self.follow = follow }

  /// Passes a packet that an observer saw, and its decrypted contents, to the follower.
  func record(_ input: ObserverInput, _ outputs: [ObserverOutput], _ at: Instant) {
    var seen: (SocketAddress, SocketAddress)?
    switch input {
    case .datagram(let datagram, let isTruncated, let arrival):
      seen = (datagram.local, datagram.remote)
      follow(
        .datagram(datagram.bytes, isTruncated: isTruncated), datagram.local, datagram.remote,
        arrival)
    case .data(let datagram, _): seen = (datagram.local, datagram.remote)
    case .call(.segment(let source, let destination, let bytes, let lost, let isEnd)):
      guard let source = SocketAddress(source), let destination = SocketAddress(destination) else {
        break
      }
      seen = (source, destination)
      follow(.segment([UInt8](bytes), lost: lost, isEnd: isEnd), source, destination, at)
    default: break
    }
    for output in outputs {
      switch output.content {
      case .output(.pair(let pair)): pairs[pair.number] = pair.addresses
      case .output(.carried(let datagram)):
        let (source, destination) = (datagram.tuple.source, datagram.tuple.destination)
        pairs[datagram.pair] =
          datagram.from == 0 ? [source, destination] : [destination, source]
      case .output(.packet(let packet)) where packet.isClear:
        if pairs[packet.pair] == nil, let seen {
          pairs[packet.pair] = ends(packet.pair, outputs, seen)
        }
        guard let ends = pairs[packet.pair] else { continue }
        follow(
          .clear(packet.bytes, ClearPacket.Kind(packet.kind), isSent: false), ends[packet.from],
          ends[1 - packet.from], packet.at)
      default: break
      }
    }
  }

  /// Returns the addresses of a pair's two ends; the step's last packet shows which end is which.
  ///
  /// The packet that identified the pair comes last; packets that waited for it precede it, and may
  /// have the opposite direction.
  private func ends(
    _ pair: Int, _ outputs: [ObserverOutput], _ seen: (SocketAddress, SocketAddress)
  ) -> [SocketAddress] {
    let last = outputs.lazy.reversed().compactMap { output -> ObservedPacket? in
      guard case .output(.packet(let packet)) = output.content else { return nil }
      return packet.pair == pair ? packet : nil
    }.first
    return last?.from == 1 ? [seen.1, seen.0] : [seen.0, seen.1]
  }
}

extension ClearPacket.Kind {
  fileprivate init(_ kind: ObservedPacket.Kind) {
    switch kind {
    case .rtp: self = .rtp
    case .rtcp: self = .rtcp
    case .sctp: self = .sctp
    }
  }
}

/// A replayed peer whose packets are passed to the follower.
private final class FollowedPeer: ReplayedPeer {
  private let machine: PeerMachine
  private let follow: FollowedReplay.Follower

  init(_ machine: PeerMachine, _ follow: @escaping FollowedReplay.Follower) {
    self.machine = machine
    self.follow = follow
    machine.onlooker = { packet in
      let ends =
        packet.isInbound ? (packet.remote, packet.local) : (packet.local, packet.remote)
      follow(
        .clear(packet.bytes, packet.kind, isSent: !packet.isInbound), ends.0, ends.1, packet.at)
    }
  }

  func step(_ input: PeerInput, at now: Instant, into outbox: inout Outbox<PeerOutput>) {
    if case .datagram(let datagram, let arrival) = input {
      follow(
        .datagram(datagram.bytes, isTruncated: false), datagram.remote, datagram.local, arrival)
    }
    machine.step(input, at: now, into: &outbox)
    for case .datagram(let datagram) in outbox.outputs {
      follow(.datagram(datagram.bytes, isTruncated: false), datagram.local, datagram.remote, now)
    }
  }

  var deadline: Instant? { machine.deadline }
  var entropyDrawn: UInt64 { machine.entropyDrawn }
}

extension MachineKinds {
  /// Returns the machine kinds, with observers whose outputs go to a follower.
  package static func following(_ follow: @escaping ObserverMachine.Onlooker) -> MachineKinds {
    var kinds = MachineKinds()
    // A replay creates its machines, and calls the follower, on the thread that runs it.
    nonisolated(unsafe) let follow = follow
    kinds.add(ObserverMachine.self, deadline: .deadline) { ObserverMachine(onlooker: follow) }
    return kinds
  }
}

// MARK: - ClearReplay

/// Replays a take and writes every packet decrypted.
struct ClearReplay {
  let take: String
  /// The number of the peer whose packets are written; nil for all.
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

/// The file, shared with the closure that writes to it.
private final class Notes {
  var file: PacketFile
  init(_ file: PacketFile) { self.file = file }

  func record(
    _ sight: FollowedReplay.Sight, _ source: SocketAddress, _ destination: SocketAddress,
    _ at: Instant
  ) {
    switch sight {
    case .clear(let bytes, .rtp, _), .clear(let bytes, .rtcp, _):
      file.datagram(from: source, to: destination, bytes, atNanoseconds: at.nanoseconds)
    case .clear(let bytes, .sctp, _):
      file.association(
        from: source.ip, to: destination.ip, bytes, atNanoseconds: at.nanoseconds)
    case .datagram(let bytes, _):
      switch DatagramClass(bytes.span.bytes) {
      // The file has the decrypted packets instead. A DTLS handshake would make Wireshark decode
      // the packets after it as SRTP.
      case .rtp, .rtcp, .dtls: return
      // Encrypted packets that a TURN server relays are left out, too.
      case .channelData where isProtected(ChannelData.read(bytes.span.bytes)?.data, of: bytes):
        return
      case .stun
      where isProtected((try? STUNMessage(bytes))?.attribute(.data)?.range, of: bytes):
        return
      case .stun, .channelData, .other: break
      }
      file.datagram(from: source, to: destination, bytes, atNanoseconds: at.nanoseconds)
    // The file has the connection's contents decrypted, without framing.
    case .segment: break
    }
  }

  /// Returns whether a part of a datagram is RTP, RTCP or DTLS, whose contents the file has in
  /// decrypted form.
  private func isProtected(_ range: Range<Int>?, of bytes: [UInt8]) -> Bool {
    guard let range else { return false }
    return switch DatagramClass(bytes.span.bytes.extracting(range)) {
    case .rtp, .rtcp, .dtls: true
    case .stun, .channelData, .other: false
    }
  }
}
