import RTP
package import Wire

/// Observes the packets of calls between other endpoints and reports what happened in them.
///
///     packets ──▶ paths ──▶ ICE checks ──▶ calls, pairs, states
///                  │  └──▶ TURN ──▶ packets inside, as if on a path of their own
///                  ├──▶ DTLS ──▶ keys ──▶ SRTP ──▶ streams, RTP, RTCP
///     key logs ────┘          └──▶ SCTP
///     descriptions ──▶ encodings of payload types
///
/// It is passive and has no clock; equal inputs produce equal outputs. Network contents may be any
/// bytes; whatever cannot be used is counted. Each extension handles one concern: checks, media,
/// keys, calls, descriptions, connections.
package struct Observer: Machine, ~Copyable {
  package let settings: ObserverSettings

  var keys: KeyRing

  var table = PathTable()
  var transports: [TransportFollower] = []
  var callTable = CallTable()
  var mappings = MappedAddresses()

  var probation = Probation()
  var channelTrials = PathTrials<ContentEvidence>()
  var helloTrials = PathTrials<ClientHelloReader>()
  var relays = RelayTable()
  /// The path to the relay while a relayed datagram's contents are processed.
  private var carrier: PathKey?
  /// The ECN field of the datagram being processed; nil if it is unknown.
  var mark: ECNMark?
  var streamTable = StreamTable()
  var unproven = UnprovenStreams()
  var descriptionTable = SignaledDescriptions()
  var connections = TCPConnections()

  private var report = ObserverReport()
  var time = ObserverTime()
  /// When each transport next changes state because of silence or a missing response.
  var silences = DueQueue()
  var budget = ReportBudget()
  /// Reused for the events from each DTLS datagram.
  var dtlsEvents: [DTLSFollower.Event] = []

  var now: Instant { time.now }
  package var deadline: Instant? { time.deadline }

  package init(_ settings: ObserverSettings = ObserverSettings()) {
    self.settings = settings
    relays = RelayTable(corrects: settings.judgesClosely)
    keys = KeyRing(
      awaitsKeys: settings.awaitsKeys, waitingBytesMaximum: settings.waitingBytesMaximum)
  }

  package mutating func step(
    _ input: consuming Input, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    time.move(to: now)
    report.exchange(&outbox)
    switch consume input {
    case .datagram(let tuple, let bytes, let isTruncated, let arrival, let ecn):
      // A datagram that waited for admission arrived earlier.
      if let arrival { time.moveBack(to: arrival) }
      mark = ecn
      receive(tuple, bytes, isTruncated: isTruncated)
      mark = nil
      time.move(to: now)
    case .stream(let tuple, let bytes, let lost, let isEnd):
      receiveStream(tuple, bytes, lost: lost, isEnd: isEnd)
    case .keyLog(let bytes): add(keyLog: bytes)
    case .srtpKey(let key): add(key)
    case .description(let text, let how): receive(description: text, how)
    case .notSeen(let kind, let count, let detail): countUnseen(kind, by: count, detail: detail)
    case .clearPath(let tuple, let fragments): begin(clearPath: tuple, fragments)
    case .data(let tuple, let bytes, let arrival):
      time.moveBack(to: arrival)
      receiveData(tuple, bytes)
      time.move(to: now)
    case .noMoreKeys: stopWaiting()
    case .deadline: reachDeadline()
    case .end: finish()
    }
    report.exchange(&outbox)
  }

  // MARK: Datagrams

  /// Dispatches a datagram by its first bytes.
  mutating func receive(
    _ tuple: FiveTuple, _ bytes: consuming [UInt8], isTruncated: Bool, isRelayed: Bool = false
  ) {
    switch DatagramClass(bytes.span.bytes) {
    case .rtp: receiveMedia(tuple, bytes, isTruncated, isRTCP: false, isRelayed)
    case .rtcp: receiveMedia(tuple, bytes, isTruncated, isRTCP: true, isRelayed)
    case .dtls: receiveDTLS(tuple, bytes, isTruncated, isRelayed)
    case .stun: receiveSTUN(tuple, bytes, isTruncated, isRelayed)
    case .channelData: receiveChannelData(tuple, bytes, isTruncated)
    // RFC 5766 allowed channel numbers that RFC 8656 does not.
    case .other:
      relays.isRelayPath(tuple) ? receiveChannelData(tuple, bytes, isTruncated) : ignore()
    }
  }

  /// Processes the contents of channel data, even if no other packet of the relay was seen.
  private mutating func receiveChannelData(
    _ tuple: FiveTuple, _ bytes: [UInt8], _ isTruncated: Bool
  ) {
    if !relays.isRelayPath(tuple) {
      guard RelayTable.mayBeRelayed(bytes.span.bytes, tuple, isTruncated: isTruncated) else {
        return tryChannel(tuple, bytes, isTruncated)
      }
      guard relays.assume(tuple) else { return ignore() }
      turnRelays()
    }
    let content = relays.receive(channelData: bytes.span.bytes, tuple, isTruncated: isTruncated)
    if !receive(content, of: bytes, in: tuple, isTruncated) { ignore() }
  }

  private mutating func tryChannel(_ tuple: FiveTuple, _ bytes: [UInt8], _ isTruncated: Bool) {
    let packet = CallGate.Admitted(
      tuple: tuple, bytes: bytes, isTruncated: isTruncated, at: now, ecn: mark)
    guard case .call(let packets) = channelTrials.consider(packet), relays.assume(tuple) else {
      return ignore()
    }
    turnRelays()
    receive(waited: packets, isRelayed: false)
  }

  /// Processes datagrams that waited until they proved to belong to a call.
  mutating func receive(waited packets: [CallGate.Admitted], isRelayed: Bool) {
    let present = (now, mark)
    for packet in packets {
      time.move(to: packet.at)
      mark = packet.ecn
      receive(packet.tuple, packet.bytes, isTruncated: packet.isTruncated, isRelayed: isRelayed)
    }
    time.move(to: present.0)
    mark = present.1
  }

  /// Processes the contents of a TURN message; returns false if it belongs to no known relay.
  mutating func receive(
    _ content: RelayTable.Content, of bytes: [UInt8], in outer: FiveTuple, _ isTruncated: Bool
  ) -> Bool {
    switch content {
    case .none: return false
    case .control: return true
    case .bound(let tuple, let peer):
      if let (path, from) = table.find(tuple) { rename(path, 1 - from, to: peer) }
      return true
    case .inner(let tuple, let range, let peerIsKnown):
      let found = table.find(tuple).map { table.paths[$0.path].isUnknown.contains(true) }
      if !peerIsKnown, found ?? true {
        let channel = RelayTable.isPlaceholder(tuple.source) ? tuple.source : tuple.destination
        countUnseen(.unknownPeer, detail: "channel \(channel.port)")
      }
      // Relays do not nest on one path.
      guard DatagramClass(bytes.span.bytes.extracting(range)) != .channelData else { return true }
      carrier = PathKey.of(outer).key
      receive(tuple, Array(bytes[range]), isTruncated: isTruncated, isRelayed: true)
      carrier = nil
      return true
    }
  }

  /// Counts a datagram on its path; returns false if it was already captured at another point of
  /// the path, such as outside of a relay.
  mutating func count(_ bytes: [UInt8], on path: Int, from end: Int, isRelayed: Bool) -> Bool {
    let (now, carrier) = (now, carrier)
    let isRepeated = table.update(path) { path in
      path.see(carrier, isRelayed: isRelayed, from: end)
      if path.pair.isRelayed, path.recent.isRepeated(bytes.span.bytes, from: end),
        path.hasSeveralWays
      {
        return true
      }
      path.pair.packets[end] += 1
      path.pair.bytes[end] += UInt64(bytes.count)
      return false
    }
    let index = table.paths[path].transportIndex
    // If this end's datagrams are also seen outside of the relay, they already have rows.
    if !isRepeated, isRelayed && !table.paths[path].isSeenDirectly[end] || isOfTCP(path) {
      emit(
        .carried(
          CarriedDatagram(
            transport: index + 1, from: end, pair: path + 1,
            tuple: table.paths[path].tuple(from: end), at: now, bytes: bytes)))
    }
    if isRepeated {
      countUnseen(.relayedTwice, transport: index + 1)
      return false
    }
    transports[index].recordTraffic(from: end, at: now)
    if transports[index].checks.isWaiting(1 - end) {
      emit(transports[index].checks.resume(1 - end), index)
    }
    return true
  }

  private func isOfTCP(_ path: Int) -> Bool { table.paths[path].pair.transportProtocol == .tcp }

  mutating func ignore() { countUnseen(.ignored) }

  // MARK: Time

  mutating func schedule(_ due: Instant?) { time.schedule(due) }

  private mutating func reachDeadline() {
    time.forgetDeadline()
    let now = now
    for index in silences.removeDue(until: now, { transports[$0].checks.deadline }) {
      emit(transports[index].checks.reachDeadline(at: now), index)
      silences.schedule(index, at: transports[index].checks.deadline)
    }
    schedule(silences.first { transports[$0].checks.deadline })
    while let call = callTable.nameNext(at: now) { emit(.call(call)) }
    schedule(callTable.namingDeadline)
  }

  // MARK: Reporting

  mutating func emit(_ output: consuming Output) { report.emit(output) }

  /// Counts something that could not be seen or decrypted.
  mutating func countUnseen(
    _ kind: CoverageReport.Kind, transport: Int? = nil, by count: UInt64 = 1,
    detail: @autoclosure () -> String = ""
  ) {
    report.count(kind, transport: transport, by: count, detail: detail())
  }

  /// Ends the capture: reports waiting packets without decrypting them, and how often something
  /// could not be seen.
  private mutating func finish() {
    stopWaiting()
    releaseUnproven()
    reportDeductions()
    reportUnusedKeys()
    while let call = callTable.nameNext(at: nil) { emit(.call(call)) }
    for index in transports.indices {
      let transport = transports[index]
      let number = transport.facts.number
      if transport.hasSent[0] != transport.hasSent[1] {
        countUnseen(
          .oneDirection, transport: number, detail: "end \(transport.hasSent[0] ? 0 : 1) sends")
      }
      let data = transport.dtls.unopenedData
      if data > 0 { countUnseen(.unopenedData, transport: number, by: data) }
    }
    report.reportFinalCounts()
    for path in table.paths.indices { emitPair(path) }
  }

  // MARK: Known paths

  /// Returns whether packets between two addresses belong to a call.
  package mutating func knows(_ tuple: FiveTuple) -> Bool { table.find(tuple) != nil }

  /// Whether the limit of paths is reached.
  package var isFull: Bool { table.paths.count >= settings.pathsMaximum }

  /// Returns whether packets with these addresses travel between a client and its TURN server.
  package func knowsRelay(_ tuple: FiveTuple) -> Bool { relays.isRelayPath(tuple) }

  // MARK: Counters

  /// The calls, in order of discovery.
  package var calls: [ObservedCall] { callTable.calls }

  /// The streams, in order of discovery.
  package var streams: [ObservedStream] { streamTable.entries.map(\.stream) }

  /// Returns a stream's RFC 3550 statistics; nil if there is no such stream.
  package func statistics(of stream: Int) -> SourceReception? {
    guard stream > 0, stream <= streamTable.entries.count else { return nil }
    return streamTable.entries[stream - 1].statistics
  }

  /// The pairs, in order of discovery.
  package var pairs: [ObservedPair] { table.paths.map(\.pair) }

  /// The number of packets waiting for keys.
  package var waitingPackets: Int { transports.reduce(0) { $0 + $1.media.waiting.count } }

  /// Returns how often something of a kind could not be seen or decrypted.
  package func coverage(_ kind: CoverageReport.Kind, transport: Int? = nil) -> UInt64 {
    report.count(of: kind, transport: transport)
  }
}

// MARK: - Connections

// TCP connections carry ICE and TURN messages, and unencrypted signaling.
extension Observer {
  mutating func receiveStream(_ tuple: FiveTuple, _ bytes: [UInt8], lost: Int, isEnd: Bool) {
    let outcome = connections.receive(tuple, bytes, lost: lost, isEnd: isEnd)
    for message in outcome.messages {
      switch message {
      case .datagram(let bytes):
        // The framing proves that the connection leads to a TURN server, whatever the ports.
        if bytes.first.map({ (0x40...0x7f).contains($0) }) == true {
          _ = relays.assume(tuple)
          turnRelays()
        }
        receive(tuple, bytes, isTruncated: false)
      case .text(let text):
        for description in DescriptionSearch.descriptions(in: text) {
          receive(description: description, .wire)
        }
      }
    }
    if let obstacle = outcome.obstacle { countUnseen(obstacle, detail: outcome.detail) }
  }
}

// MARK: - Unseen

// Final reports on streams that are only partly known.
extension Observer {
  /// The maximum number of streams named in a coverage row.
  private static let namedMaximum = 6

  /// Reports streams without a known clock, streams whose contents were inferred, and streams that
  /// no description announces.
  mutating func reportDeductions() {
    var unknown: [String] = []
    var deduced: [String] = []
    var unannounced: [String] = []
    for entry in streamTable.entries where entry.statistics.packets > 0 {
      let stream = entry.stream
      if stream.repairs == nil, stream.clockRate == 0, let type = entry.lastPayloadType {
        unknown.append("ssrc \(stream.ssrc) with payload type \(type)")
      } else if let meaning = stream.payloads.first(where: { $0.how == .deduced }),
        meaning.codec != "rtx"
      {
        let codec = meaning.codec.isEmpty ? meaning.kind?.rawValue ?? "" : meaning.codec
        let isSure = entry.deduction.isSure ? "by its payloads" : "likely, by its clock"
        deduced.append("ssrc \(stream.ssrc) is \(codec)/\(meaning.clockRate) \(isSure)")
      }
      if isUnannounced(entry) { unannounced.append("ssrc \(stream.ssrc)") }
    }
    reportStreams(.unknownClock, unknown, "; --map says what a payload type stands for")
    reportStreams(.deduced, deduced, "")
    reportStreams(.unannounced, unannounced, "")
  }

  /// Returns whether the sender's description names other sources but not this one, whose packets
  /// have no header extensions that could state a mid.
  private func isUnannounced(_ entry: StreamTable.Entry) -> Bool {
    let (stream, index) = (entry.stream, entry.stream.transport - 1)
    guard !entry.hasExtensions, stream.repairs == nil, transports.indices.contains(index),
      let number = transports[index].descriptions[stream.from]
    else { return false }
    let description = descriptionTable.entries[number]
    return !description.sources.isEmpty && description.source(stream.ssrc) == nil
  }

  private mutating func reportStreams(
    _ kind: CoverageReport.Kind, _ names: [String], _ hint: String
  ) {
    guard !names.isEmpty else { return }
    let more = names.count > Observer.namedMaximum ? ", and others" : ""
    let list = names.prefix(Observer.namedMaximum).joined(separator: ", ")
    countUnseen(kind, by: UInt64(names.count), detail: list + more + hint)
  }

  /// Returns whether the user or the supplied descriptions state that a transport's media is
  /// unencrypted.
  func isClearBySettings(_ index: Int) -> Bool {
    guard transports[index].dtls.facts == nil else { return false }
    if settings.isClear { return true }
    guard transports[index].descriptions.allSatisfy({ $0 == nil }) else { return false }
    let kinds = floatingDescriptions.map { descriptionTable.entries[$0].protectsMedia }
    return kinds.contains(false) && !kinds.contains(true)
  }
}
