package import FoundationEssentials
import Media
import Observer
package import Wire

/// The configuration of an observer, which is its first input.
package struct ObserverGenesis: Codable, Hashable, Sendable {
  /// The peer number of the first observed end; each call uses two numbers.
  package var firstPeer: UInt32 = 1
  /// Whether encrypted packets wait for their keys.
  package var awaitsKeys = true
  package var waitingPacketsMaximum = 20_000
  package var waitingBytesMaximum = 64 << 20
  /// The codecs of dynamic payload types, as in `96=vp8,97=rtx`.
  package var payloadTypes = ""
  /// Whether media without keys counts as unencrypted even if it looks encrypted; nil, as in older
  /// takes, means false.
  package var isClear: Bool?
  /// Whether received media is decoded and played.
  package var decodes = false
  /// The codecs that can be decoded besides VP8 and VP9; nil if there are none.
  package var decoders: [String]?
  /// Whether stats include transports, pairs and candidates; nil in older takes, whose stats do
  /// not.
  package var tellsTransports: Bool?
  /// The interval of wake-ups in milliseconds; nil in older takes, which run each end exactly on
  /// time.
  ///
  /// With an interval, the deadlines of many streams share a step. Their outputs still have exact
  /// times.
  package var wakeMilliseconds: Int64?
  /// The approximate number of rows per step; nil in older takes, which have no limit.
  ///
  /// If an input has more rows, further steps right after it contain the rest.
  package var rowsPerStep: Int?
  /// The maximum number of network paths; nil in older takes, whose maximum was 32,768.
  package var pathsMaximum: Int?
  /// Whether G.711 is decoded and played although `decodes` is false; nil in older takes, where it
  /// is not.
  package var playsG711: Bool?
  /// Whether a repeated packet counts as a retransmission if its NACK is seen only later; nil in
  /// older takes, where it counts as padding.
  package var countsEarlyRepeats: Bool?
  /// Whether all repairs that a receiver can make are modelled; nil in older takes, where they are
  /// not.
  ///
  /// In older takes, FlexFEC streams (RFC 8627) count as media, and retransmissions before a
  /// stream's first packet are only counted. Recovered packets have their header extensions as they
  /// arrived, and video frames do not wait for repairs. The sizes of sent AV1 frames and the
  /// highest VP9 layer are not read.
  package var repairsFully: Bool?
  /// Whether streams and relays are judged by all available evidence; nil in older takes, where
  /// they are not.
  ///
  /// In older takes, packets count as duplicates after a stream's sequence numbers went back by
  /// less than a hundred. A guess about which end is the relay is never corrected, and video in RED
  /// counts as H.264.
  package var judgesClosely: Bool?
  /// Whether an end may change its SRTP key during the call; nil in older takes, which try only the
  /// first key that fits.
  package var followsKeys: Bool?
  /// Whether an RTCP packet with a key identifier (MKI) is decrypted if its authentication tag is
  /// longer than RTP's; nil in older takes, where it stays encrypted.
  package var findsIdentifiers: Bool?
  /// Names of the ends by address; nil if there are none.
  package var names: [EndName]?
  /// The revision of the observer that recorded the take; nil for revision 1.
  package var revision: Int64?
  /// The Unix time at instant zero, in nanoseconds; timestamps in stats are based on it.
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

  /// Returns the name for an address, or the address itself if it has no name; an entry with the
  /// port is preferred to an entry without a port.
  func label(of address: SocketAddress) -> String {
    let named =
      names?.first { $0.address == address.description }
      ?? names?.first { $0.address == address.ip.description }
    return named?.name ?? address.description
  }

  /// The configuration for new takes, which enables everything that this version supports except
  /// decoding.
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
    genesis.findsIdentifiers = true
    return genesis
  }

  /// A quarter of a step's maximum, because the last output of a step may exceed it by up to half
  /// of the maximum.
  private static let usualRowsPerStep = 16_384

  /// The configuration for a new take, from a capture file that contains a configuration.
  ///
  /// The file is not trusted, so its limits are reduced to those of new takes.
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
    genesis.findsIdentifiers = usual.findsIdentifiers
    genesis.names = names.map { Array($0.prefix(1000)) }
    return genesis
  }

  /// The maximum of `firstPeer`, so that two peer numbers per call still fit into 32 bits.
  static let firstPeerMaximum: UInt32 = 1 << 24

  /// Enables decoding, with all decoders of this build.
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
    settings.findsIdentifiers = findsIdentifiers ?? false
    settings.pathsMaximum = pathsMaximum ?? ObserverSettings.formerPathsMaximum
    settings.payloadTypes = PayloadTypeMapping.list(parsing: payloadTypes) ?? []
    return settings
  }
}

/// An input of an observer other than its genesis, a packet or a deadline.
package enum ObserverCall: Codable, Hashable, Sendable {
  /// Further lines of an NSS key log.
  case keyLog(String)
  /// An SRTP key in the form that `SRTPKey` parses.
  case srtpKey(String)
  case description(String)
  /// A description from unencrypted signaling; the rest of the signaling is not stored.
  case signaling(String)
  /// The next bytes in one direction of a TCP connection, after `lost` missing bytes.
  case segment(source: String, destination: String, bytes: Data, lost: Int, isEnd: Bool)
  /// Packets that were dropped before they reached the observer, with the kind of coverage, a count
  /// and an explanation.
  case notSeen(kind: String, count: UInt64, detail: String)
  /// A path on which a relay forwards unencrypted packets, with both ends' ICE username fragments.
  case clearPath(source: String, destination: String, fragments: [String])
  case noMoreKeys
  case end
}

/// What an observer receives in a step.
package enum ObserverInput: RecordedInput {
  case genesis(ObserverGenesis)
  /// A UDP datagram that was observed; `isTruncated` if only its beginning was captured.
  ///
  /// `arrival` is earlier than the step if the datagram waited until its path turned out to belong
  /// to a call.
  case datagram(Datagram, isTruncated: Bool, arrival: Instant)
  /// An SCTP packet that a relay forwarded unencrypted.
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
  /// A UDP datagram whose end was not captured.
  fileprivate static let truncated = StepKind(5)
  /// An SCTP packet that a relay forwarded unencrypted.
  fileprivate static let data = StepKind(6)
}

extension MachineKind {
  /// An actor that observes the packets of calls between other endpoints.
  package static let observer = MachineKind(rawValue: 1)
}

/// Restores the inputs of observers from their rows.
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
