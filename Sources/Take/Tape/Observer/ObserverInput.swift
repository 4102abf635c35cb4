package import FoundationEssentials
import Media
import Observer
package import Wire

/// An observer's configuration.
package struct ObserverGenesis: Codable, Hashable, Sendable {
  /// The number of the first observed peer; each call gets the next two.
  package var firstPeer: UInt32 = 1
  /// Whether encrypted packets wait for their keys.
  package var awaitsKeys = true
  package var waitingPacketsMaximum = 20_000
  package var waitingBytesMaximum = 64 << 20
  /// The encodings of dynamic payload types, as in `96=vp8,97=rtx`.
  package var payloadTypes = ""
  /// Whether media without keys is unencrypted even if it does not look like it; nil in older
  /// takes.
  package var isClear: Bool?
  /// Whether received media is decoded.
  package var decodes = false
  /// Decoders besides VP8 and VP9, by encoding name; nil for none.
  package var decoders: [String]?
  /// Whether stats include transports, pairs and candidates; nil in older takes, which do not.
  package var tellsTransports: Bool?
  /// The granularity at which the ends are woken; nil in older takes, which wake each end
  /// separately.
  ///
  /// Many streams' deadlines then share a step; their outputs still have exact times.
  package var wakeMilliseconds: Int64?
  /// The approximate number of rows per step; nil in older takes, which have no limit.
  ///
  /// Further steps that follow at once write the surplus.
  package var rowsPerStep: Int?
  /// The maximum number of paths; nil in older takes, which were limited to 32,768.
  package var pathsMaximum: Int?
  /// Whether G.711 is decoded and played even if `decodes` is false; nil in older takes, where it
  /// is not.
  package var playsG711: Bool?
  /// Whether a packet counts as retransmitted if its NACK is seen only afterwards; nil in older
  /// takes, where it counts as padding.
  package var countsEarlyRepeats: Bool?
  /// Whether all repairs that a receiver applies are applied; nil in older takes, where they are
  /// not.
  ///
  /// Without it, FlexFEC streams (RFC 8627) count as media, retransmissions before a stream's first
  /// packet are only counted, recovery uses header extensions as they arrived, video frames do not
  /// wait for repairs, and the sizes of sent AV1 frames and the highest VP9 layer are not read.
  package var repairsFully: Bool?
  /// Whether streams and relays are judged by all available evidence; nil in older takes, where
  /// they are not.
  ///
  /// There, packets whose numbers restarted less than a hundred back counted as duplicates, a relay
  /// stayed where its port suggested, and video inside RED was taken for H.264.
  package var judgesClosely: Bool?
  /// Whether an end may change its SRTP key during the call; nil in older takes, where the first
  /// key that fits decrypts all of an end's packets or none.
  package var followsKeys: Bool?
  /// Names for the ends, looked up by address with the port first, then without; nil if there are
  /// none.
  package var names: [EndName]?
  /// The revision of the recording observer; nil for revision 1.
  package var revision: Int64?
  /// Unix time in nanoseconds at instant zero, which stats timestamps are relative to.
  package var startUnixNanoseconds: Int64 = 0

  package init() {}

  /// The name of the end at an address.
  package struct EndName: Codable, Hashable, Sendable {
    /// The address, as in `192.0.2.1`, `192.0.2.1:5000` or `[2001:db8::1]:5000`.
    package var address: String
    package var name: String

    package init(address: String, name: String) {
      self.address = address
      self.name = name
    }
  }

  /// Returns the name of the end at an address: an entry with the port precedes one without.
  func label(of address: SocketAddress) -> String {
    let named =
      names?.first { $0.address == address.description }
      ?? names?.first { $0.address == address.ip.description }
    return named?.name ?? address.description
  }

  /// The genesis of a new take, with everything enabled that this version supports.
  package static var ofToday: ObserverGenesis {
    var genesis = ObserverGenesis()
    genesis.tellsTransports = true
    genesis.wakeMilliseconds = 20
    genesis.rowsPerStep = ObserverGenesis.usualRowsPerStep
    genesis.pathsMaximum = ObserverSettings.usualPathsMaximum
    genesis.revision = observerRevision
    genesis.playsG711 = true
    genesis.countsEarlyRepeats = true
    genesis.repairsFully = true
    genesis.judgesClosely = true
    genesis.followsKeys = true
    return genesis
  }

  /// A quarter of a step's capacity, since a single output may add as many rows again.
  private static let usualRowsPerStep = 16_384

  /// The genesis for a new take from a capture file that stores one.
  ///
  /// The file is untrusted, so its numbers are clamped to a new take's.
  package var ofAFile: ObserverGenesis {
    let usual = ObserverGenesis.ofToday
    var genesis = self
    genesis.firstPeer = min(max(firstPeer, 1), ObserverGenesis.firstPeerMaximum)
    genesis.waitingPacketsMaximum = min(max(waitingPacketsMaximum, 0), usual.waitingPacketsMaximum)
    genesis.waitingBytesMaximum = min(max(waitingBytesMaximum, 0), usual.waitingBytesMaximum)
    genesis.rowsPerStep = usual.rowsPerStep
    genesis.pathsMaximum = usual.pathsMaximum
    genesis.revision = usual.revision
    genesis.playsG711 = usual.playsG711
    genesis.countsEarlyRepeats = usual.countsEarlyRepeats
    genesis.repairsFully = usual.repairsFully
    genesis.judgesClosely = usual.judgesClosely
    genesis.followsKeys = usual.followsKeys
    genesis.names = names.map { Array($0.prefix(1000)) }
    return genesis
  }

  /// The limit leaves room for the following peer numbers, two per call, within 32 bits.
  static let firstPeerMaximum: UInt32 = 1 << 24

  /// Enables all decoders of this build.
  package mutating func decodeAll() {
    decodes = true
    decoders = LibraryCodecs.furtherDecoders
  }

  var settings: ObserverSettings {
    var settings = ObserverSettings()
    settings.awaitsKeys = awaitsKeys
    settings.isClear = isClear ?? false
    settings.waitingPacketsMaximum = waitingPacketsMaximum
    settings.waitingBytesMaximum = waitingBytesMaximum
    settings.repairsFully = repairsFully ?? false
    settings.judgesClosely = judgesClosely ?? false
    settings.followsKeys = followsKeys ?? false
    settings.pathsMaximum = pathsMaximum ?? ObserverSettings.formerPathsMaximum
    settings.payloadTypes = PayloadTypeMapping.list(parsing: payloadTypes) ?? []
    return settings
  }
}

/// An observer's input other than a datagram.
package enum ObserverCall: Codable, Hashable, Sendable {
  /// Further lines of an NSS key log.
  case keyLog(String)
  /// An SRTP key in the form that `SRTPKey` parses.
  case srtpKey(String)
  case description(String)
  /// A description found in unencrypted signaling; the signaling itself is not stored.
  case signaling(String)
  /// The next bytes in one direction of a TCP connection, after `lost` missing bytes.
  case segment(source: String, destination: String, bytes: Data, lost: Int, isEnd: Bool)
  /// Something dropped before it reached the observer: the kind of coverage, a count, and a
  /// sentence.
  case notSeen(kind: String, count: UInt64, detail: String)
  /// A path from a relay that carries unencrypted packets, with the ICE username fragments of both
  /// ends.
  case clearPath(source: String, destination: String, fragments: [String])
  case noMoreKeys
  case end
}

/// An observer's input, as recorded.
package enum ObserverInput: RecordedInput {
  case genesis(ObserverGenesis)
  /// An observed UDP datagram; truncated if the capture has only its first bytes.
  ///
  /// It arrived before its step if it waited until its path turned out to belong to a call.
  case datagram(Datagram, isTruncated: Bool, arrival: Instant)
  /// An unencrypted SCTP packet from a relay.
  case data(Datagram, arrival: Instant)
  case call(ObserverCall)
  case deadline

  package var stepKind: StepKind {
    switch self {
    case .genesis: .genesis
    case .datagram(_, let isTruncated, _): isTruncated ? .truncated : .datagram
    case .data: .data
    case .call: .call
    case .deadline: .deadline
    }
  }

  package var byteCount: Int {
    switch self {
    case .datagram(let datagram, _, _), .data(let datagram, _): datagram.bytes.count
    case .call(.segment(_, _, let bytes, _, _)): bytes.count
    default: 0
    }
  }

  package var title: String {
    switch self {
    case .genesis: "genesis"
    case .datagram(let datagram, let isTruncated, _):
      "datagram of \(datagram.bytes.count) bytes from \(datagram.local) to \(datagram.remote)"
        + (isTruncated ? ", of which only the beginning was captured" : "")
    case .data(let datagram, _):
      "SCTP packet of \(datagram.bytes.count) bytes from \(datagram.local) to \(datagram.remote)"
    case .call(let call): "\(call)".prefix { $0 != "(" }.description
    case .deadline: "deadline"
    }
  }

  package func write(to transcript: inout Transcript) {
    switch self {
    case .genesis(let genesis):
      transcript.addActor(.observer, configuration: CanonicalJSON.text(genesis), seed: [])
    case .datagram(let datagram, _, let arrival):
      transcript.append(datagram, at: arrival, isInbound: true, transportSequenceID: 0)
    case .data(let datagram, let arrival):
      transcript.append(datagram, at: arrival, isInbound: true, transportSequenceID: 0)
    case .call(let call):
      let parts = CallText(encoding: call)
      transcript.add(CallRequestRow(call: 0, name: parts.name, arguments: parts.arguments))
    case .deadline: break
    }
  }
}

extension StepKind {
  /// A truncated datagram.
  fileprivate static let truncated = StepKind(5)
  /// An unencrypted SCTP packet.
  fileprivate static let data = StepKind(6)
}

extension MachineKind {
  /// Observes the packets of calls between other endpoints.
  package static let observer = MachineKind(rawValue: 1)
}

/// Restores observers' inputs from their rows.
package struct ObserverDecoder: InputDecoder {
  private var paths = PathMemory()

  package init() {}

  package mutating func input(of head: StepHead, _ rows: borrowing RowList, _ range: Range<Int>)
    -> (any RecordedInput)?
  {
    if head.kind == .deadline { return ObserverInput.deadline }
    for row in range {
      if let path = PathRow(rows, row) {
        guard paths.add(path) else { return nil }
      }
    }
    guard let row = range.last else { return nil }
    switch head.kind {
    case .genesis:
      return ActorRow(rows, row)
        .flatMap { CanonicalJSON.value(ObserverGenesis.self, from: $0.configuration) }
        .map { ObserverInput.genesis($0) }
    case .datagram, .truncated:
      guard let packet = PacketRow(rows, row), let datagram = paths.datagram(packet) else {
        return nil
      }
      return ObserverInput.datagram(
        datagram, isTruncated: head.kind == .truncated, arrival: packet.at)
    case .data:
      guard let packet = PacketRow(rows, row), let datagram = paths.datagram(packet) else {
        return nil
      }
      return ObserverInput.data(datagram, arrival: packet.at)
    case .call:
      return CallRequestRow(rows, row)
        .flatMap { CallText(name: $0.name, arguments: $0.arguments).value(ObserverCall.self) }
        .map { ObserverInput.call($0) }
    default: return nil
    }
  }
}
