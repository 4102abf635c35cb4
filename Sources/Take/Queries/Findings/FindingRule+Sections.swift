import RTP
import Tape
import Wire

// Rules about negotiated media, and packets that do not match it.

extension FindingRule {
  /// Finds lines that a description contains twice, because a program edited it twice (rtcstats'
  /// "duplicated lines in SDP").
  static let doubledLines = FindingRule(
    id: "duplicate-lines", severity: .info, title: "Duplicate lines in a description",
    scope: .connection,
    sql: "SELECT peer, at_ns, direction, type, message FROM signaling",
    detector: findDoubledLines)

  private static func findDoubledLines(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var found: [Detection] = []
    var seen: Set<String> = []
    for one in facts.network.descriptions {
      for section in one.sections {
        for line in section.doubled
        where seen.insert("\(one.peer) \(one.isLocal) \(section.mid) \(line)").inserted {
          let whose = one.isLocal ? "its own" : "the remote peer's"
          found.append(
            Detection(
              "duplicate-lines", peer: one.peer, from: one.at, to: one.at,
              "\(line) occurs twice in one section of \(whose) description"))
        }
      }
    }
    return found
  }

  /// Finds an answer with port 0 (RFC 3264 section 6) to a section in which one side wants to send.
  static let sectionRejected = FindingRule(
    id: "section-rejected", severity: .medium, title: "Media refused in the answer",
    scope: .connection, causes: ["refused-section"],
    sql: "SELECT peer, at_ns, direction, type, message FROM signaling",
    detector: findRejected)

  private static func findRejected(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var found: [Detection] = []
    for peer in facts.peers {
      var agreed: Set<String> = []
      var told: Set<String> = []
      for exchange in facts.network.exchanges(of: peer.number) {
        for (place, offered) in exchange.offer.sections.enumerated()
        where place < exchange.answer.sections.count {
          let answered = exchange.answer.sections[place]
          let name = "\(offered.kind) \(offered.mid)"
          if !answered.isRejected { agreed.insert(name) }
          // Rejecting a section that was in use stops its media on purpose.
          guard answered.isRejected, !offered.isRejected, offered.sends || offered.receives,
            !agreed.contains(name), told.insert(name).inserted
          else { continue }
          let who = exchange.answer.isLocal ? "its answer" : "the remote peer's answer"
          let direction: WireDirection? =
            offered.sends && offered.hasSource
            ? (exchange.offer.isLocal ? .outbound : .inbound) : nil
          let isUnsupported = isUnsupported(offered, to: answered)
          found.append(
            Detection(
              "section-rejected", peer: peer.number, from: exchange.answer.at,
              to: peer.live?.upperBound ?? facts.end,
              "\(who) refused the \(offered.kind == "application" ? "data channel" : offered.kind) "
                + "section"
                + (offered.mid.isEmpty ? "" : " (mid \(offered.mid))")
                + (isUnsupported
                  ? " and named none of its codecs: it may do no \(offered.kind) at all" : ""),
              direction: direction, kind: offered.kind == "application" ? "data" : offered.kind,
              // Many servers do not support data channels and reject them like this.
              severity: offered.kind == "application" || direction == nil || isUnsupported
                ? .low : .medium))
        }
      }
    }
    return found
  }

  /// Returns whether an answer accepts none of a section's formats although the offer has the
  /// codecs that every endpoint must have (RFC 7742 section 5, RFC 7874 section 3).
  ///
  /// The answering side does not support this kind of media, for example an audio-only service.
  private static func isUnsupported(
    _ offered: SignaledDescription.Section, to answered: SignaledDescription.Section
  ) -> Bool {
    let common = offered.kind == "video" ? ["vp8", "h264"] : ["opus", "pcmu"]
    return offered.kind != "application" && common.allSatisfy(offered.codecs.values.contains)
      && !answered.formats.contains(where: offered.formats.contains)
  }

  /// Finds media that one side offers and the other never agrees to receive.
  ///
  /// Media on hold does not count, because it was negotiated earlier.
  static let directionRefused = FindingRule(
    id: "direction-refused", severity: .high, title: "Media disabled by the answer's direction",
    scope: .connection, silentUnder: ["section-rejected"],
    sql: "SELECT peer, at_ns, direction, type, message FROM signaling",
    detector: findRefusedDirections)

  private static func findRefusedDirections(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var found: [Detection] = []
    for peer in facts.peers {
      var agreed: Set<String> = []
      var open: [(name: String, detection: Detection)] = []
      for exchange in facts.network.exchanges(of: peer.number) {
        for (place, offered) in exchange.offer.sections.enumerated()
        where place < exchange.answer.sections.count && offered.kind != "application" {
          let answered = exchange.answer.sections[place]
          guard !answered.isRejected else { continue }
          let name = offered.mid.isEmpty ? "\(place)" : offered.mid
          if offered.sends && answered.receives { agreed.insert(name) }
          guard offered.sends, offered.hasSource, !answered.receives else { continue }
          let isOwn = exchange.offer.isLocal
          // In an observed call, an earlier exchange that is not in the take may have allowed the
          // media.
          let isKnown = !hasFlowed(offered.kind, peer, isOwn ? .outbound : .inbound, facts)
          guard isKnown else { continue }
          let way = answered.sends ? "sendonly" : "inactive"
          open.append(
            (
              name,
              Detection(
                "direction-refused", peer: peer.number, from: exchange.answer.at,
                to: peer.live?.upperBound ?? facts.end,
                (isOwn
                  ? "its offer would send \(offered.kind)"
                  : "the remote peer's offer would send \(offered.kind)")
                  + ", and the answer made it \(way)",
                direction: isOwn ? .outbound : .inbound, kind: offered.kind)
            ))
        }
      }
      var told: Set<String> = []
      for entry in open where !agreed.contains(entry.name) && told.insert(entry.name).inserted {
        found.append(entry.detection)
      }
    }
    return found
  }

  /// Returns whether media of a kind was seen in an observed call.
  private static func hasFlowed(
    _ kind: String, _ peer: CallFacts.Peer, _ direction: WireDirection, _ facts: CallFacts
  ) -> Bool {
    peer.isObserved
      && facts.streams.contains {
        $0.peer == peer.number && $0.direction == direction && $0.kind == kind
          && $0.role == .media
      }
  }

  /// Finds media that an exchange switched off and no later one switched on again.
  ///
  /// This may be intended: the call is on hold, or the application removed a camera.
  static let switchedOff = FindingRule(
    id: "media-switched-off", severity: .low, title: "Media disabled by a later description",
    thresholds: [
      Threshold("least_time", 5, "s", "until the end without it; W3C calls 5 s a pause")
    ],
    silentUnder: ["section-rejected"],
    sql: "SELECT peer, at_ns, direction, type, message FROM signaling",
    detector: findSwitchedOff)

  private static func findSwitchedOff(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var found: [Detection] = []
    for peer in facts.peers {
      guard let live = peer.live else { continue }
      let exchanges = facts.network.exchanges(of: peer.number)
      // If the take has both ends, the sender's view is enough.
      for direction in peer.other == nil ? [WireDirection.outbound, .inbound] : [.outbound] {
        for (place, section) in (exchanges.last?.offer.sections ?? []).enumerated()
        where section.kind == "audio" || section.kind == "video" {
          let ways = exchanges.compactMap { way($0, place, direction) }
          let lastOn = ways.lastIndex { $0.isOn }
          guard let off = ways.dropFirst((lastOn ?? -1) + 1).first,
            let stream = facts.streams.last(where: {
              $0.peer == peer.number && $0.direction == direction && $0.role == .media
                && $0.kind == section.kind && ($0.mid.isEmpty || $0.mid == section.mid)
            }),
            // Descriptions supplied to an observer have no time.
            lastOn != nil || peer.isObserved,
            case let from = max(off.at, stream.last),
            Double(live.upperBound &- from) / 1e9 >= limits["least_time"],
            // If media had already stopped before the exchange, the exchange is not the reason.
            peer.isObserved || stream.last >= off.at -| 1_000_000_000
          else { continue }
          found.append(
            Detection(
              "media-switched-off", peer: peer.number, from: from, to: live.upperBound,
              "it was sent until \(off.words) it"
                + (section.mid.isEmpty ? "" : " (mid \(section.mid))")
                + ", and nothing switched it on again in \(tenths(live.upperBound &- from)) s",
              ssrc: stream.ssrc, track: stream.track, direction: direction, kind: section.kind))
        }
      }
    }
    return found
  }

  /// Returns whether an exchange leaves a section's media on in a direction, and if not, what
  /// switched it off; nil if a description lacks the section.
  private static func way(
    _ exchange: NetworkFacts.Exchange, _ place: Int, _ direction: WireDirection
  ) -> (at: Int64, isOn: Bool, words: String)? {
    guard place < exchange.offer.sections.count, place < exchange.answer.sections.count else {
      return nil
    }
    let (offered, answered) = (exchange.offer.sections[place], exchange.answer.sections[place])
    let isOfferers = exchange.offer.isLocal == (direction == .outbound)
    let isOn =
      !offered.isRejected && !answered.isRejected
      && (isOfferers ? offered.sends && answered.receives : answered.sends && offered.receives)
    let isByOffer = offered.isRejected || !(isOfferers ? offered.sends : offered.receives)
    let section = isByOffer ? offered : answered
    let words =
      section.isRejected
      ? "stopped" : section.sends ? "sendonly" : section.receives ? "recvonly" : "inactive"
    let isByLocal = (isByOffer ? exchange.offer : exchange.answer).isLocal
    let whose = isByLocal == (direction == .outbound) ? "its sender's" : "its receiver's"
    return (
      exchange.answer.at, isOn, "\(whose) \(isByOffer ? "offer" : "answer") (\(words)) ended"
    )
  }

  /// Finds negotiated audio or video without a single packet although the sender's description
  /// announced a source for it.
  static let mediaAbsent = FindingRule(
    id: "media-absent", severity: .medium, title: "Negotiated media without a packet",
    thresholds: [
      Threshold("least_s", 5, "s", "our choice; a device may take a moment to start"),
      Threshold("least_others", 1, "packets/s", "of other media the same way; else the path is it"),
    ],
    causes: ["encoder-stopped", "camera-stopped", "microphone-without-signal"],
    silentUnder: ["section-rejected", "direction-refused", "media-without-transceiver"],
    sql: """
      SELECT peer, direction, kind, min(at_ns) AS from_ns, count(*) AS rows
      FROM track GROUP BY peer, direction, kind
      """,
    detector: findAbsentMedia)

  // MARK: Packets

  /// Finds packets with payload types that were not negotiated, which a receiver drops; ex_webrtc's
  /// debugging guide begins with this.
  static let payloadTypeUnknown = FindingRule(
    id: "payload-type-unknown", severity: .high, title: "Payload type that was not negotiated",
    thresholds: [
      Threshold("least_packets", 5, "packets", "fewer may be left over; our choice")
    ],
    causes: ["section-rejected", "direction-refused"],
    sumsUp: true,
    sql: """
      SELECT peer, direction, ssrc, payload_type, packets, first_ns, last_ns FROM stream
      WHERE direction = 'in' ORDER BY peer, first_ns
      """,
    detector: findUnknownTypes)

  private static func findUnknownTypes(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var found: [Detection] = []
    for peer in facts.peers {
      let agreed = facts.network.agreedFormats(of: peer.number, .inbound)
      guard !agreed.isEmpty else { continue }
      for stream in facts.streams where stream.peer == peer.number && stream.direction == .inbound {
        for entry in stream.payloadTypes
        where agreed[entry.type] == nil
          && entry.packets >= Int64(saturating: limits["least_packets"])
        {
          let share = Double(entry.packets) / Double(max(1, stream.packets))
          found.append(
            Detection(
              "payload-type-unknown", peer: peer.number, from: entry.first,
              to: stream.last,
              "\(entry.packets) of \(stream.packets) packets had payload type \(entry.type), which "
                + "neither description contains",
              ssrc: stream.ssrc, track: stream.track, direction: .inbound, kind: stream.kind,
              impact: FindingImpact(share: share, count: entry.packets)))
        }
      }
    }
    return found
  }

  /// Finds changes of the payload type within a stream, which Wireshark marks; they are
  /// informational, because switching between negotiated codecs is legitimate.
  static let payloadTypeChanged = FindingRule(
    id: "payload-type-changed", severity: .info, title: "Codec changed within a stream",
    thresholds: [
      Threshold("least_packets", 5, "packets", "of each type; single ones are no change")
    ],
    silentUnder: ["payload-type-unknown"],
    sql: """
      SELECT peer, direction, ssrc, payload_type, packets, first_ns, last_ns FROM stream
      WHERE direction = 'in' ORDER BY peer, first_ns
      """,
    detector: findChangedTypes)

  private static func findChangedTypes(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    let besides: Set<String> = ["telephone-event", "cn", "red", "rtx", "ulpfec", "flexfec-03"]
    var found: [Detection] = []
    for stream in facts.streams where stream.direction == .inbound && stream.role == .media {
      let agreed = facts.network.agreedFormats(of: stream.peer, .inbound)
      let types = stream.payloadTypes.filter {
        $0.packets >= Int64(saturating: limits["least_packets"]) && $0.type != 13
          && !besides.contains(agreed[$0.type] ?? "")
      }
      guard types.count > 1, !agreed.isEmpty else { continue }
      let names = types.map { "\(agreed[$0.type] ?? "?") (\($0.type))" }.joined(separator: ", ")
      found.append(
        Detection(
          "payload-type-changed", peer: stream.peer, from: types[1].first, to: stream.last,
          "its packets had the payload types \(names), one after another", ssrc: stream.ssrc,
          track: stream.track, direction: .inbound, kind: stream.kind))
    }
    return found
  }

  /// Finds packets with a negotiated payload type but a source that no m-section claims: the mid or
  /// an SSRC line is missing.
  static let mediaWithoutTransceiver = FindingRule(
    id: "media-without-transceiver", severity: .medium, title: "Media without a transceiver",
    scope: .flow,
    thresholds: [
      Threshold("least_packets", 20, "packets", "fewer may come before a description; our choice"),
      Threshold("least_ms", 1_000, "ms", "see above"),
    ],
    causes: ["section-rejected", "direction-refused"], silentUnder: ["payload-type-unknown"],
    sumsUp: true,
    sql: """
      SELECT peer, ssrc, payload_type, packets, first_ns, last_ns FROM stream
      WHERE direction = 'in' AND ssrc NOT IN (
        SELECT members ->> '$.ssrc' FROM stat WHERE type = 'inbound-rtp'
          AND members ->> '$.ssrc' IS NOT NULL)
      """,
    detector: findUntaken)

  private static func findUntaken(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    // A source is claimed if it has frames or statistics.
    var taken: Set<[Int64]> = []
    var judged: [Int64: Int64] = [:]
    let rows = try connection.prepare(
      """
      SELECT peer, members ->> '$.ssrc', members ->> '$.rtxSsrc', at_ns FROM stat
      WHERE type = 'inbound-rtp'
      UNION ALL
      SELECT peer, ssrc & 0xffffffff, NULL, 0 FROM format WHERE direction = 'in'
      """)
    while try rows.step() {
      let peer = rows.integer(0)
      taken.insert([peer, rows.integer(1)])
      if !rows.isNull(2) { taken.insert([peer, rows.integer(2)]) }
      judged[peer] = max(judged[peer] ?? 0, rows.integer(3))
    }
    var found: [Detection] = []
    for stream in facts.streams
    where stream.direction == .inbound && !taken.contains([stream.peer, stream.ssrc]) {
      let agreed = facts.network.agreedFormats(of: stream.peer, .inbound)
      let codec = agreed[stream.payloadTypes.first?.type ?? -1] ?? ""
      guard let last = judged[stream.peer], last > stream.first &+ 1_000_000_000, !codec.isEmpty,
        !["rtx", "red", "ulpfec", "flexfec-03"].contains(codec),
        facts.peer(stream.peer)?.isObserved == false,
        stream.packets >= Int64(saturating: limits["least_packets"]),
        stream.last -| stream.first >= Int64(saturating: limits["least_ms"]) *| 1_000_000
      else { continue }
      found.append(
        Detection(
          "media-without-transceiver", peer: stream.peer, from: stream.first, to: stream.last,
          "\(stream.packets) packets of \(codec) arrived from a source that was not negotiated",
          ssrc: stream.ssrc, direction: .inbound, kind: stream.kind,
          impact: FindingImpact(count: stream.packets)))
    }
    return found
  }
}

// MARK: - Descriptions

// Rules about session descriptions.

extension FindingRule {
  /// Finds a section of an accepted offer that the answer must reject, because the peer has none of
  /// its codecs.
  static let refusedSection = FindingRule(
    id: "refused-section", severity: .high, title: "Section of an offer refused",
    scope: .connection,
    sql: """
      WITH
        offer AS (
          SELECT request.row AS offer, request.peer AS peer, request.at_ns AS at_ns,
            request.arguments ->> '$._0.sdp' AS sdp,
            coalesce(peer.configuration -> '$.codecs', '[\(usualCodecs)]') AS codecs
          FROM call_request AS request JOIN peer USING (peer)
            JOIN call_reply AS reply ON reply.peer = request.peer AND reply.call = request.call
          WHERE request.name = 'setRemoteDescription'
            AND request.arguments ->> '$._0.type' = 'offer' AND reply.error IS NULL
        ),
        -- The lines, separated by a character that JSON does not escape.
        line AS (
          SELECT offer, json_each.key AS number, ltrim(rtrim(value, char(13) || ' ')) AS text
          FROM offer, json_each('[' || replace(
            json_quote(replace(sdp, char(10), char(8232))), char(8232), '","') || ']')
        ),
        placed AS (
          SELECT offer, number, text,
            count(*) FILTER (WHERE text LIKE 'm=%')
              OVER (PARTITION BY offer ORDER BY number) AS section
          FROM line
        ),
        section AS (
          SELECT offer, section,
            max(iif(text LIKE 'm=audio %', 'audio', iif(text LIKE 'm=video %', 'video', NULL)))
              AS kind,
            -- The formats follow the profile.
            max(iif(text LIKE 'm=%', substr(text, instr(text, '/')) || ' ', NULL)) AS formats,
            max(iif(text LIKE 'm=% 0 %/%', 1, 0)) > max(text = 'a=bundle-only') AS is_off,
            max(iif(text LIKE 'a=mid:%', substr(text, 7), NULL)) AS mid
          FROM placed WHERE section > 0 GROUP BY offer, section
        ),
        codec AS (
          SELECT offer, section, substr(text, instr(text, ' ') + 1) AS codec
          FROM placed WHERE text LIKE 'a=rtpmap:% %/%'
          UNION ALL
          -- Static payload types, which need no rtpmap line (RFC 3551 section 6).
          SELECT offer, section, name
          FROM section JOIN (
            SELECT ' 0 ' AS type, 'PCMU/8000' AS name UNION ALL SELECT ' 8 ', 'PCMA/8000'
            UNION ALL SELECT ' 3 ', 'GSM/8000' UNION ALL SELECT ' 9 ', 'G722/8000'
            UNION ALL SELECT ' 18 ', 'G729/8000' UNION ALL SELECT ' 34 ', 'H263/90000'
          ) ON instr(formats, type) > 0
        ),
        named AS (
          SELECT DISTINCT offer, section, codec,
            lower(substr(codec, 1, instr(codec, '/') - 1)) AS name
          FROM codec
        ),
        refused AS (
          SELECT peer, at_ns, offer, section, kind, mid, codec, codecs, name
          FROM section JOIN offer USING (offer) JOIN named USING (offer, section)
          WHERE kind IS NOT NULL AND NOT is_off AND name NOT IN ('rtx', 'telephone-event', 'cn')
          ORDER BY offer, section, codec
        )
      SELECT peer, at_ns AS from_ns, at_ns AS to_ns,
        'the offer''s ' || kind || coalesce(' (mid ' || mid || ')', '')
          || ' was refused: none of its codecs is supported ('
          || group_concat(codec, ', ') || ')' AS evidence
      FROM refused
      GROUP BY offer, section
      HAVING NOT max(name IN (SELECT lower(value) FROM json_each(codecs)))
      """)

  /// The codecs of a connection whose configuration names none.
  private static var usualCodecs: String {
    Codec.all.filter(\.isUsual).map { "\"\($0.spelling.lowercased())\"" }.joined(separator: ",")
  }
}
