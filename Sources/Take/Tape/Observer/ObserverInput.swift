package import FoundationEssentials
import Media
import Observer
package import Wire

/// What an observer of other people's calls is made from: the configuration of its actor.
package struct ObserverGenesis: Codable, Hashable, Sendable {
  /// The number of its first peer; each call that it finds has the next two.
  package var firstPeer: UInt32 = 1
  /// Whether protected packets wait for keys that may come.
  package var awaitsKeys = true
  package var waitingPacketsMaximum = 20_000
  package var waitingBytesMaximum = 64 << 20
  /// What payload types stand for, as in `96=vp8,97=rtx`.
  package var payloadTypes = ""
  /// Whether media without keys is in the clear, whatever it looks like; nil in takes of before.
  package var isClear: Bool?
  /// Whether what the ends receive is decoded.
  package var decodes = false
  /// The codecs beyond VP8 and VP9 that are decoded then, by encoding name; nil for none.
  package var decoders: [String]?
  /// Whether samples of the stats tell of transports, pairs and candidates; nil, in takes of before
  /// that was told, does not.
  package var tellsTransports: Bool?
  /// The ends are woken at multiples of this; nil, in takes of before, wakes each by itself.
  ///
  /// So those of many streams share a step; what they do has its own time all the same.
  package var wakeMilliseconds: Int64?
  /// About how many rows a step writes at most; nil, in takes of before, writes all that one input
  /// leads to.
  ///
  /// What is more comes with the steps that follow at once.
  package var rowsPerStep: Int?
  /// How many paths are told apart; nil in takes of before, which had no room for more than 32,768.
  package var pathsMaximum: Int?
  /// Whether G.711 is played, and so decoded, whatever `decodes` says; nil, in takes of before, is
  /// not.
  package var playsG711: Bool?
  /// Whether what was sent again counts when it is asked for after that; nil, in takes of before,
  /// takes it for padding.
  package var countsEarlyRepeats: Bool?
  /// Whether all is repaired that receivers repair; nil, in takes of before, is not.
  ///
  /// Then streams of FlexFEC (RFC 8627) were taken for media, retransmissions that came before the
  /// first packet of a stream were counted alone, recovery took header extensions as they arrived,
  /// and video frames waited for no repairs. Nor was the size of AV1 read of what is sent, or that
  /// of the highest layer of VP9.
  package var repairsFully: Bool?
  /// Whether streams and relays are judged by all that they show; nil, in takes of before, is not.
  ///
  /// Then packets whose numbers begin anew by less than a hundred counted as repeated ones, a relay
  /// stayed where its port let it be guessed, and video inside of RED was taken for H.264.
  package var judgesClosely: Bool?
  /// What ends are called, by address with or without a port; nil for none.
  package var names: [EndName]?
  /// The revision of the observer that the take was made with; nil in takes of revision 1.
  package var revision: Int64?
  /// Unix time in nanoseconds at the instant zero: the times of stats are reckoned from it.
  package var startUnixNanoseconds: Int64 = 0

  package init() {}

  /// The name of the end that uses an address.
  package struct EndName: Codable, Hashable, Sendable {
    /// `192.0.2.1`, `192.0.2.1:5000` or `[2001:db8::1]:5000`.
    package var address: String
    package var name: String

    package init(address: String, name: String) {
      self.address = address
      self.name = name
    }
  }

  /// What the end at an address is called: by the address with its port first, else by the address.
  func label(of address: SocketAddress) -> String {
    let named =
      names?.first { $0.address == address.description }
      ?? names?.first { $0.address == address.ip.description }
    return named?.name ?? address.description
  }

  /// The genesis of a take that is made now: it tells all that can be told.
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
    return genesis
  }

  /// A quarter of what a step can hold: one output may have as many again.
  private static let usualRowsPerStep = 16_384

  /// The same genesis for a take that is made now, where the head of a capture states it: anybody
  /// may have written that, so its numbers are those that a take of today can have.
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
    genesis.names = names.map { Array($0.prefix(1000)) }
    return genesis
  }

  /// The numbers of the peers behind it, two for each call, stay within 32 bits.
  static let firstPeerMaximum: UInt32 = 1 << 24

  /// Has decoded whatever this build can decode.
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
    settings.pathsMaximum = pathsMaximum ?? ObserverSettings.formerPathsMaximum
    settings.payloadTypes = PayloadTypeMapping.list(parsing: payloadTypes) ?? []
    return settings
  }
}

/// What an observer is told that is no datagram.
package enum ObserverCall: Codable, Hashable, Sendable {
  /// Further lines of an NSS key log.
  case keyLog(String)
  /// An SRTP key as `SRTPKey` reads it.
  case srtpKey(String)
  case description(String)
  /// A description that stood in signaling in the clear, which itself is not kept.
  case signaling(String)
  /// What one side of a TCP connection sent next, after `lost` bytes that nobody saw.
  case segment(source: String, destination: String, bytes: Data, lost: Int, isEnd: Bool)
  /// What was left out before the observer, or lost: a kind of coverage, how much, and in words.
  case notSeen(kind: String, count: UInt64, detail: String)
  case noMoreKeys
  case end
}

/// An input of an observer as the tape has it.
package enum ObserverInput: RecordedInput {
  case genesis(ObserverGenesis)
  /// A UDP datagram between others; one of which only the beginning was captured is marked. It
  /// arrived before its step when it had to wait until it showed to be of a call.
  case datagram(Datagram, isTruncated: Bool, arrival: Instant)
  case call(ObserverCall)
  case deadline

  package var stepKind: StepKind {
    switch self {
    case .genesis: .genesis
    case .datagram(_, let isTruncated, _): isTruncated ? .truncated : .datagram
    case .call: .call
    case .deadline: .deadline
    }
  }

  package var byteCount: Int {
    switch self {
    case .datagram(let datagram, _, _): datagram.bytes.count
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
    case .call(let call):
      let parts = CallText(encoding: call)
      transcript.add(CallRequestRow(call: 0, name: parts.name, arguments: parts.arguments))
    case .deadline: break
    }
  }
}

extension StepKind {
  /// A datagram of which only the beginning was captured.
  fileprivate static let truncated = StepKind(5)
}

extension MachineKind {
  /// Sees the packets of calls between others.
  package static let observer = MachineKind(rawValue: 1)
}

/// Creates the inputs of observers again from their rows.
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
    case .call:
      return CallRequestRow(rows, row)
        .flatMap { CallText(name: $0.name, arguments: $0.arguments).value(ObserverCall.self) }
        .map { ObserverInput.call($0) }
    default: return nil
    }
  }
}
