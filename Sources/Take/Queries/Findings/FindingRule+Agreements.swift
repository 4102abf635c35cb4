import Tape
import Wire

// Rules about settings on which both ends should agree after signaling but do not: roles, passwords
// and payload types.

extension FindingRule {
  /// Finds DTLS roles that conflict: with two servers, neither starts the handshake; with two
  /// clients, neither answers (RFC 8842 section 5).
  static let rolesClash = FindingRule(
    id: "dtls-roles-clash", severity: .high, title: "Conflicting DTLS roles",
    scope: .connection,
    thresholds: [
      Threshold("least_ms", 3_000, "ms", "after ICE connected: two timeouts of RFC 6347")
    ],
    silentUnder: ["ice-password-wrong"],
    sql: """
      SELECT peer, at_ns, direction, substr(hex(bytes), 1, 28) AS record FROM packet
      WHERE protocol = 'dtls' ORDER BY row
      """,
    detector: findClashingRoles)

  private static func findClashingRoles(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var found: [Detection] = []
    for peer in facts.peers where !peer.isReported {
      let states = facts.states.filter { $0.peer == peer.number }
      guard
        let ready = states.first(where: {
          $0.machine == "ice-connection" && ["connected", "completed"].contains($0.to)
        })?.at,
        !states.contains(where: { $0.machine.hasPrefix("dtls") && $0.to == "connected" }),
        peer.isObserved || states.contains(where: { $0.machine.hasPrefix("dtls") })
      else { continue }
      let closed = states.first { $0.machine == "connection" && $0.to == "closed" }?.at
      let end = closed ?? facts.end
      guard Double(end &- ready) / 1e6 >= limits["least_ms"] else { continue }
      let messages = facts.network.datagrams.messages.filter { $0.peer == peer.number }
      let words: String
      var basis: FindingBasis?
      if messages.isEmpty {
        guard !peer.isObserved, let text = waitingWords(peer, facts, end &- ready) else { continue }
        words = text
        // If the take lacks the other end's own rows, it is unknown whether that end waited too or
        // its packets were lost.
        basis = peer.other.flatMap(facts.peer)?.isObserved == false ? nil : .ambiguous
      } else {
        let own = messages.count { $0.direction == .outbound && $0.type == 1 }
        let theirs = messages.count { $0.direction == .inbound && $0.type == 1 }
        // A ServerHello (2) or HelloVerifyRequest (3) shows that a server answered.
        guard own > 0, theirs > 0, !messages.contains(where: { [2, 3].contains($0.type) }) else {
          continue
        }
        words =
          "both ends began the handshake as client (a=setup:active), and neither answered in "
          + "\(rounded(Double(end &- ready) / 1e9)) s"
      }
      found.append(
        Detection(
          "dtls-roles-clash", peer: peer.number, from: ready, to: end, words,
          impact: FindingImpact(withoutMedia: Double(end &- ready) / 1e9), basis: basis))
    }
    return found
  }

  /// Describes a handshake that neither end began; returns nil if this peer may have had to begin
  /// it, or if the other end sent a message.
  private static func waitingWords(
    _ peer: CallFacts.Peer, _ facts: CallFacts, _ waited: Int64
  ) -> String? {
    let seconds = rounded(Double(waited) / 1e9)
    if let other = peer.other, facts.peer(other)?.isObserved == false {
      let isBegun = facts.network.datagrams.messages.contains { $0.peer == other }
      return isBegun
        ? nil
        : "both ends waited \(seconds) s as server for a ClientHello (a=setup:passive)"
    }
    let answer = facts.network.exchanges(of: peer.number).last?.answer
    // The end that answered `active`, or whose offer was answered with `passive`, has to start.
    guard let answer, answer.setup != (answer.isLocal ? "active" : "passive") else { return nil }
    return "no ClientHello arrived in \(seconds) s, although the remote peer had to begin: it "
      + "waits as server too, or its DTLS packets do not get through"
  }

  /// Finds checks refused with 401 because their MESSAGE-INTEGRITY was computed with a different
  /// password (RFC 8445 section 7.3): signaling changed `a=ice-pwd`, or mixed up two calls'
  /// descriptions.
  ///
  /// Checks in flight during an ICE restart are refused too.
  static let wrongPassword = FindingRule(
    id: "ice-password-wrong", severity: .high, title: "Wrong ICE password",
    scope: .connection,
    thresholds: [
      Threshold("least_checks", 4, "", "refused with 401, and none was answered well since"),
      Threshold("least_ms", 1_000, "ms", "from the first to the last one; our choice"),
    ],
    sql: """
      SELECT peer, at_ns, direction, local, remote FROM packet
      WHERE protocol = 'stun' AND substr(hex(bytes), 1, 4) = '0111' ORDER BY row
      """,
    detector: findWrongPasswords)

  private static func findWrongPasswords(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    let datagrams = facts.network.datagrams
    var found: [Detection] = []
    for peer in facts.peers {
      for direction in [WireDirection.inbound, .outbound] {
        let refused = (direction == .inbound ? datagrams.refusals : datagrams.localRefusals)
          .filter { $0.peer == peer.number && $0.method == 1 && $0.code == 401 }
        guard let first = refused.first, let last = refused.last,
          Double(refused.count) >= limits["least_checks"],
          Double(last.at &- first.at) / 1e6 >= limits["least_ms"]
        else { continue }
        let isAnswered =
          direction == .inbound
          && datagrams.checks.contains {
            $0.peer == peer.number && !$0.isRefused && ($0.answered ?? .min) > first.at
          }
        guard !isAnswered else { continue }
        let whose = direction == .inbound ? "of its checks" : "checks of the remote peer"
        found.append(
          Detection(
            "ice-password-wrong", peer: peer.number, from: first.at, to: last.at,
            "\(refused.count) \(whose) were rejected with 401: "
              + (direction == .inbound
                ? "the a=ice-pwd that it received is not the remote peer's"
                : "the remote peer received an a=ice-pwd that is not the local one"),
            impact: FindingImpact(count: Int64(refused.count))))
      }
    }
    return found
  }

  /// Finds payload types that mean different codecs at the two ends: a program between them wrote
  /// its own `a=rtpmap` lines.
  ///
  /// RFC 3264 section 6.1 lets an answer renumber codecs, so different numbers alone prove nothing.
  /// Media that arrived and could not be decoded is required as well.
  static let crossedTypes = FindingRule(
    id: "payload-types-crossed", severity: .high, title: "Payload type with two meanings",
    scope: .flow,
    thresholds: [
      Threshold("least_packets", 20, "packets", "of that type; our choice")
    ],
    sql: "SELECT peer, at_ns, direction, type, message FROM signaling",
    detector: findCrossedTypes)

  private static func findCrossedTypes(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var found: [Detection] = []
    for stream in facts.streams where stream.direction == .inbound && stream.role == .media {
      let own = facts.network.descriptions(of: stream.peer)
      guard let local = own.last(where: \.isLocal) else { continue }
      let remote = own.last { !$0.isLocal }
      // The sender uses the payload types of the description that it received; nil if the take
      // lacks that description.
      let sender = facts.peer(stream.peer)?.other.flatMap { other in
        facts.network.descriptions(of: other).last { !$0.isLocal }
      }
      for type in stream.payloadTypes
      where Double(type.packets) >= limits["least_packets"] {
        guard let here = local.codec(type.type),
          let there = sender?.codec(type.type) ?? remote?.codec(type.type), here != there,
          !here.isEmpty, !there.isEmpty, !isDecoded(stream, facts)
        else { continue }
        found.append(
          Detection(
            "payload-types-crossed", peer: stream.peer, from: type.first, to: stream.last,
            "\(type.packets) packets had payload type \(type.type), which is \(here) for the "
              + "receiver and \(there) for the sender; none could be decoded",
            ssrc: stream.ssrc, track: stream.track, direction: .inbound, kind: stream.kind,
            impact: FindingImpact(
              withoutMedia: Double(stream.last &- type.first) / 1e9, count: type.packets)))
      }
    }
    return found
  }

  private static func isDecoded(_ stream: CallFacts.Stream, _ facts: CallFacts) -> Bool {
    guard let track = stream.track.flatMap({ facts.track(stream.peer, $0, .inbound) }) else {
      return false
    }
    return track.kind != "video" || track.pictures.contains(where: \.isGood)
  }

  /// Finds video whose frames cannot be decoded, or whose packets do not form frames: its codec is
  /// not the negotiated one, or the decoder lacks its profile.
  static let undecodable = FindingRule(
    id: "video-undecodable", severity: .high, title: "Video that cannot be decoded",
    thresholds: [
      Threshold("least_frames", 5, "frames", "that failed, and none that did not"),
      Threshold("least_ms", 2_000, "ms", "from the first to the last; our choice"),
    ],
    causes: ["payload-types-crossed", "payload-type-unknown"],
    sql: """
      SELECT peer, track, outcome, count(*) AS frames FROM frame
      WHERE kind = 'video' AND direction = 'in' GROUP BY peer, track, outcome
      """,
    detector: findUndecodable)

  private static func findUndecodable(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    unassembled(facts, limits)
      + facts.tracks.compactMap { track -> Detection? in
        guard track.kind == "video", track.direction == .inbound,
          !track.pictures.contains(where: \.isGood), let shown = track.pictures.first?.at,
          let last = track.pictures.last?.at,
          Double(track.pictures.count) >= limits["least_frames"],
          Double(last &- shown) / 1e6 >= limits["least_ms"]
        else { return nil }
        // The detection begins with the first packet, because it may be a while before packets of
        // another codec form a frame.
        let came = facts.streams.first {
          $0.peer == track.peer && $0.track == track.track && $0.direction == .inbound
            && $0.role == .media
        }?.first
        let first = min(shown, came ?? shown)
        return Detection(
          "video-undecodable", peer: track.peer, from: first, to: last,
          "none of \(counted(Int64(track.pictures.count), "received frame")) could be decoded as "
            + track.codec.uppercased(),
          ssrc: track.sources.last, track: track.track, direction: .inbound, kind: "video",
          impact: FindingImpact(
            withoutMedia: Double(last &- first) / 1e9, count: Int64(track.pictures.count)))
      }
  }

  /// Finds an endpoint's streams whose packets arrived with hardly any loss but never formed a
  /// frame: they do not begin like the negotiated codec's packets.
  private static func unassembled(_ facts: CallFacts, _ limits: Limits) -> [Detection] {
    facts.streams.compactMap { stream -> Detection? in
      guard stream.direction == .inbound, stream.role == .media, stream.kind == "video",
        let peer = facts.peer(stream.peer), !peer.isObserved, !peer.isReported,
        Double(stream.last &- stream.first) / 1e6 >= limits["least_ms"], stream.packets >= 30,
        stream.lost *| 50 <= stream.expected,
        // A simulcast layer is not assembled while another layer is shown.
        !facts.tracks.contains(where: {
          $0.peer == stream.peer && $0.direction == .inbound && $0.kind == "video"
            && !$0.pictures.isEmpty && ($0.track == stream.track || stream.track == nil)
        }),
        facts.agreements.contains(where: {
          $0.peer == stream.peer && $0.direction == .inbound && $0.kind == "video"
        })
      else { return nil }
      let codec = stream.codec.isEmpty ? "the negotiated codec" : stream.codec.uppercased()
      return Detection(
        "video-undecodable", peer: stream.peer, from: stream.first, to: stream.last,
        (stream.lost == 0
          ? "none of \(stream.packets) packets was lost"
          : "\(stream.packets) packets arrived, \(max(0, stream.lost)) were lost")
          + ", and no \(codec) frame could be assembled from them",
        ssrc: stream.ssrc, track: stream.track, direction: .inbound, kind: "video",
        impact: FindingImpact(
          withoutMedia: Double(stream.last &- stream.first) / 1e9, count: stream.packets))
    }
  }
}
