import RTP
import SCTP
import SDP
import Tape
import Wire

/// Facts about a recorded receiver, apart from its packets.
struct ReceiverFacts {
  let take: String
  private(set) var peer: Int64 = 0
  private(set) var label = ""
  /// Whether the peer is an endpoint rather than an end of an observed call.
  private(set) var isEndpoint = false
  private(set) var otherEndpoints: [Int64] = []
  /// The time at which the receiver was connected; nil if no state says so.
  private(set) var connected: Instant?
  private(set) var sections: [ReenactmentPlan.Section] = []
  private(set) var channels: [ReenactmentPlan.Channel] = []
  private(set) var messages: [ReenactmentPlan.Message] = []
  /// The descriptions of the recorded sender, in order.
  private(set) var described: [Described] = []
  /// The delays of an endpoint's trickled remote candidates after the sender's first description.
  private(set) var candidates: [Interval] = []
  /// The local and remote addresses between which the receiver receives packets, in an observed
  /// call.
  private var paths: Set<String> = []

  /// A description of the recorded sender.
  struct Described {
    var at: Instant
    var isOffer: Bool
    var sections: [(mid: String, kind: MediaKind, state: ReenactmentPlan.SectionState)] = []
  }

  init(take: String, peer: Int64?) throws(TapeError) {
    self.take = take
    let connection = try TakeFile.openForQueries(take)
    let choice: Result<Chosen, Refusal>
    do throws(SQLiteError) {
      choice = try ReceiverFacts.choose(peer, connection)
      if case .success(let found) = choice {
        (self.peer, label, isEndpoint) = (found.peer, found.label, found.isEndpoint)
        try read(connection)
      }
    } catch {
      throw TapeError(path: take, error)
    }
    if case .failure(let refusal) = choice {
      throw TapeError(path: take, place: "--peer", reason: refusal.reason)
    }
  }

  private struct Chosen {
    var peer: Int64
    var label: String
    var isEndpoint: Bool
  }

  private struct Refusal: Error {
    var reason: String
  }

  /// Returns the peer with the given number, or the only one that received media.
  private static func choose(
    _ number: Int64?, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> Result<Chosen, Refusal> {
    let statement = try connection.prepare(
      """
      SELECT peer, label, role, EXISTS (
        SELECT 1 FROM stream WHERE stream.peer = peer.peer AND stream.direction = 'in')
      FROM peer ORDER BY peer
      """)
    var all: [(number: Int64, label: String, role: String, hasMedia: Bool)] = []
    while try statement.step() {
      all.append(statement.values(Int64.self, String.self, String.self, Bool.self))
    }
    let names = all.map { "\($0.number) (\($0.label))" }.joined(separator: ", ")
    guard let number else {
      let receivers = all.filter { $0.hasMedia && $0.role != "reported" }
      guard receivers.count == 1 else {
        return .failure(
          Refusal(
            reason: receivers.isEmpty
              ? "it has no peer with received media packets, so there is nothing to play"
              : "several peers received media: name the one that the client replaces; the take has "
                + names))
      }
      return .success(
        Chosen(
          peer: receivers[0].number, label: receivers[0].label,
          isEndpoint: receivers[0].role != "observed"))
    }
    guard let found = all.first(where: { $0.number == number }) else {
      return .failure(
        Refusal(reason: "there is no peer \(number); the take has \(names)"))
    }
    guard found.role != "reported" else {
      return .failure(
        Refusal(
          reason: "peer \(number) was reported by another stack, without packets to play; choose a "
            + "peer that was recorded or observed"))
    }
    return .success(
      Chosen(peer: found.number, label: found.label, isEndpoint: found.role != "observed"))
  }

  /// Returns whether the receiver gets packets sent between two addresses.
  func receives(from source: String, to destination: String) -> Bool {
    // The replay of an endpoint contains only that endpoint's own packets.
    isEndpoint || paths.contains("\(destination) \(source)")
  }

  // MARK: Reading

  private mutating func read(_ connection: borrowing SQLiteConnection) throws(SQLiteError) {
    let states = try connection.prepare(
      """
      SELECT min(at_ns) FROM state
      WHERE peer = ? AND machine IN ('connection', 'dtls') AND to_state = 'connected'
      GROUP BY machine ORDER BY machine
      """)
    states.bind(peer, at: 1)
    if try states.step() { connected = Instant(nanoseconds: states.values(Int64.self)) }
    if isEndpoint {
      let others = try connection.prepare(
        "SELECT peer FROM peer WHERE peer <> ? AND role NOT IN ('observed', 'reported')")
      others.bind(peer, at: 1)
      while try others.step() { otherEndpoints.append(others.values(Int64.self)) }
    } else {
      let ends = try connection.prepare(
        "SELECT DISTINCT local, remote FROM path_end WHERE peer = ? AND direction = 'in'")
      ends.bind(peer, at: 1)
      while try ends.step() {
        let (local, remote) = ends.values(String.self, String.self)
        paths.insert("\(local) \(remote)")
      }
    }
    try readDescriptions(connection)
    if isEndpoint { try readCandidates(connection) }
    try readTracks(connection)
    try readChannels(connection)
    try readMessages(connection)
  }

  private mutating func readDescriptions(_ connection: borrowing SQLiteConnection)
    throws(SQLiteError)
  {
    let statement = try connection.prepare(
      "SELECT direction, sdp, type, at_ns FROM description "
        + "WHERE peer = ? AND sdp IS NOT NULL ORDER BY \"row\"")
    statement.bind(peer, at: 1)
    while try statement.step() {
      let (direction, sdp, type, at) = statement.values(
        String.self, String.self, String.self, Int64.self)
      guard let document = try? SDPDocument(parsing: sdp) else { continue }
      let isSender = direction == "in"
      var described = Described(at: Instant(nanoseconds: at), isOffer: type == "offer")
      for (index, section) in document.sections.enumerated() {
        let mid = section.mid ?? "\(section.kind.rawValue)\(index)"
        if isSender, let kind = section.mediaKind {
          let direction = section.direction ?? document.direction ?? .sendrecv
          var state = ReenactmentPlan.SectionState(
            sends: direction.sends, receives: direction.receives)
          state.isStopped = section.isRejected
          described.sections.append((mid, kind, state))
        }
        if !section.isRejected { add(section, named: mid, isSender: isSender) }
      }
      if isSender { self.described.append(described) }
    }
  }

  /// Reads the delays of the recorded sender's candidates after its first description, up to its
  /// second one.
  private mutating func readCandidates(
    _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) {
    guard let first = described.first?.at else { return }
    let statement = try connection.prepare(
      """
      SELECT at_ns FROM candidate
      WHERE peer = ? AND type = 'remote-candidate' AND candidate_type <> 'prflx' AND at_ns > ?
      ORDER BY "row"
      """)
    statement.bind(peer, at: 1)
    statement.bind(first.nanoseconds, at: 2)
    while try statement.step() {
      let at = Instant(nanoseconds: statement.values(Int64.self))
      if described.count < 2 || at < described[1].at { candidates.append(at - first) }
    }
  }

  /// Merges a description's section into the known one with the same MID and kind.
  private mutating func add(_ section: SDPSection, named mid: String, isSender: Bool) {
    guard let kind = section.mediaKind else { return }
    var known = ReenactmentPlan.Section(kind: kind, mid: mid)
    let place = sections.firstIndex { $0.mid == mid && $0.kind == kind }
    if let place { known = sections[place] }
    // The first description that names a payload type determines its format; offer and answer
    // usually agree.
    for format in ReenactmentPlan.Format.all(of: section)
    where known.format(format.payloadType) == nil { known.formats.append(format) }
    for map in section.extensionMaps where known.extensions[UInt8(clamping: map.id)] == nil {
      known.extensions[UInt8(clamping: map.id)] = map.uri
    }
    for feedback in section.rtcpFeedback where !known.feedback.contains(feedback) {
      known.feedback.append(feedback)
    }
    if isSender {
      for attribute in section.ssrcs where !known.announced.contains(attribute.ssrc) {
        known.announced.append(attribute.ssrc)
      }
      for group in section.ssrcGroups where group.semantics == "FID" && group.ssrcs.count == 2 {
        known.repairs[group.ssrcs[1]] = group.ssrcs[0]
      }
    }
    if let place { sections[place] = known } else { sections.append(known) }
  }

  /// Adds formats that no description has: inferred from packets, or stated by the user.
  private mutating func readTracks(_ connection: borrowing SQLiteConnection) throws(SQLiteError) {
    let statement = try connection.prepare(
      """
      SELECT mid, kind, ssrc, codec, payload_type, clock_rate, transport_sequence_id FROM track
      WHERE peer = ? AND direction = 'in' ORDER BY track, "row"
      """)
    statement.bind(peer, at: 1)
    while try statement.step() {
      let (mid, kindName, ssrc, codec, type, clockRate, sequenceID) = statement.values(
        String.self, String.self, UInt32?.self, String.self, UInt8.self, UInt32.self, UInt8.self)
      guard let kind = MediaKind(rawValue: kindName), !codec.isEmpty else { continue }
      let format = ReenactmentPlan.Format(
        payloadType: type, name: codec.lowercased(), clockRate: clockRate,
        channels: codec.lowercased() == "opus" ? 2 : nil)
      if sections.contains(where: { $0.kind == kind && $0.format(type) != nil }) {
        let isKnown = ssrc.map { source in sections.contains { $0.announced.contains(source) } }
        if isKnown ?? true { continue }
      }
      // If there are no descriptions, each media SSRC gets its own section. All other formats are
      // added to every section of their kind.
      if format.isMedia, !hasDescriptions {
        let name = mid.isEmpty ? "\(kind.rawValue)\(sections.count)" : mid
        var section = ReenactmentPlan.Section(kind: kind, mid: name)
        section.formats = [format]
        if sequenceID > 0 {
          section.extensions[sequenceID] = HeaderExtensionURI.transportSequence.rawValue
        }
        if let ssrc { section.announced = [ssrc] }
        deduced += 1
        sections.append(section)
        continue
      }
      for place in sections.indices
      where sections[place].kind == kind && sections[place].format(type) == nil {
        sections[place].formats.append(format)
      }
    }
  }

  /// The number of sections that were created from tracks.
  private var deduced = 0
  private var hasDescriptions: Bool { sections.count > deduced }

  // MARK: Data channels

  private mutating func readChannels(
    _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) {
    let statement = try connection.prepare(
      """
      SELECT channel, min(at_ns), remote, label, protocol, id, ordered, max_packet_life_time,
        max_retransmits, negotiated
      FROM channel WHERE peer = ? GROUP BY channel ORDER BY min(at_ns), channel
      """)
    statement.bind(peer, at: 1)
    while try statement.step() {
      let (number, at, isRemote, label, subprotocol) = statement.values(
        Int64.self, Int64.self, Bool.self, String.self, String.self)
      let (id, isOrdered, lifeTime, retransmits, isNegotiated) = statement.values(
        from: 5, UInt16?.self, Bool.self, UInt16?.self, UInt16?.self, Bool.self)
      channels.append(
        ReenactmentPlan.Channel(
          number: number, distance: distance(ofNanoseconds: at), isRemote: isRemote,
          options: DataChannelInit(
            label: label, protocol: subprotocol, ordered: isOrdered,
            maxPacketLifeTime: lifeTime, maxRetransmits: retransmits, negotiated: isNegotiated,
            id: isNegotiated ? id : nil)))
    }
  }

  private mutating func readMessages(
    _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) {
    let statement = try connection.prepare(
      """
      SELECT at_ns, channel, binary, bytes FROM message
      WHERE peer = ? AND direction = 'in' AND bytes IS NOT NULL ORDER BY "row"
      """)
    statement.bind(peer, at: 1)
    while try statement.step() {
      let (at, channel, isBinary, bytes) = statement.values(
        Int64.self, Int64.self, Bool.self, [UInt8].self)
      messages.append(
        ReenactmentPlan.Message(
          distance: distance(ofNanoseconds: at), channel: channel, isBinary: isBinary,
          bytes: bytes))
    }
  }

  private func distance(ofNanoseconds at: Int64) -> Interval {
    max(.zero, connected.map { Instant(nanoseconds: at) - $0 } ?? .zero)
  }
}

extension SDPSection {
  /// The kind of media; nil for data channels and unknown kinds.
  fileprivate var mediaKind: MediaKind? {
    switch kind {
    case .audio: .audio
    case .video: .video
    default: nil
    }
  }
}

extension ReenactmentPlan.Format {
  /// Returns an m-section's formats, in order of preference.
  static func all(of section: SDPSection) -> [ReenactmentPlan.Format] {
    let parameters = section.formatParameters
    let maps = section.rtpMaps
    return section.formats.compactMap { name in
      guard let type = UInt8(name), type < 128 else { return nil }
      let fmtp = parameters.first { $0.format == name }?.parameters ?? ""
      guard let map = maps.first(where: { $0.payloadType == type }) else {
        return standard(type).map {
          ReenactmentPlan.Format(
            payloadType: type, name: $0, clockRate: 8000, parameters: fmtp)
        }
      }
      return ReenactmentPlan.Format(
        payloadType: type, name: map.name.lowercased(), clockRate: map.clockRate,
        channels: map.channels, parameters: fmtp)
    }
  }

  /// Returns the encoding of a payload type that needs no rtpmap line (RFC 3551 section 6).
  private static func standard(_ type: UInt8) -> String? {
    switch type {
    case 0: "pcmu"
    case 8: "pcma"
    case 9: "g722"
    case 13: "cn"
    default: nil
    }
  }
}
