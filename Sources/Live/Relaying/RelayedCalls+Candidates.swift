import JSEP
import Live
import Peer
package import SDP
import Wire

extension RelayedCalls {
  // MARK: Candidates

  /// Adds a candidate from one side to that side's leg, and returns the relay's candidate to
  /// forward in its place.
  package func pass(
    _ candidate: CandidateInit, from side: RelaySide, on channel: Channel
  ) async -> (replacement: SignalingReplacement, legs: RelayLegs)? {
    guard let call = call(of: candidate, from: side, on: channel) else { return nil }
    await enter(call)
    defer { leave(call) }
    // An invalid candidate is dropped here; the other end would have ignored it as well.
    try? await call.legs.leg(side).addICECandidate(candidate)
    let shown = call.shown[side.other].flatMap { try? SDPDocument(parsing: $0.description.sdp) }
    guard let shown else {
      return (SignalingReplacement(candidate.candidate), call.legs)
    }
    let index =
      candidate.sdpMid.flatMap { mid in shown.sections.firstIndex { $0.mid == mid } }
      ?? candidate.sdpMLineIndex
    let section = index.flatMap { shown.sections.indices.contains($0) ? shown.sections[$0] : nil }
    let fragment = section?.iceUsernameFragment ?? shown.iceUsernameFragment
    guard !candidate.candidate.isEmpty else {
      return (SignalingReplacement("", usernameFragment: fragment), call.legs)
    }
    // The forwarded description already has all of the leg's candidates, so one of them is
    // repeated.
    let own = section?.candidates.first ?? shown.sections.lazy.flatMap(\.candidates).first
    return (SignalingReplacement(own ?? "", usernameFragment: fragment), call.legs)
  }

  private func call(
    of candidate: CandidateInit, from side: RelaySide, on channel: Channel
  ) -> Call? {
    let fields = candidate.candidate.split(separator: " ")
    let stated = fields.firstIndex(of: "ufrag").flatMap { place in
      place + 1 < fields.count ? String(fields[place + 1]) : nil
    }
    if let fragment = candidate.usernameFragment ?? stated,
      let call = calls.last(where: { $0.fragments[side]?.contains(fragment) == true })
    {
      return call
    }
    return calls.last { $0.channel == channel } ?? calls.last
  }

  // MARK: Fragments

  // WHIP and WHEP sessions signal candidates and ICE restarts in fragments of descriptions
  // (RFC 8840, RFC 9725 section 4.3). A fragment's request and response pass separately.

  /// An ICE restart that one end requested and the other has not confirmed.
  struct Restart {
    var side: RelaySide
    /// The requesting end's description with its new credentials.
    var offer: SDPDocument
  }

  /// Records the path under which the server keeps a call's session.
  package func name(session path: String, of number: Int) {
    calls.last { $0.legs.number == number }?.session = path
  }

  /// Applies a fragment from one side, and returns the fragment to forward to the other side.
  ///
  /// - Parameter session: the path of the request.
  package func pass(
    fragment text: String, from side: RelaySide, session: String
  ) async throws(SignalingRefusal) -> (text: String, legs: RelayLegs) {
    let fragment = TrickleFragment(text)
    if let name = fragment.usernameFragment,
      let call = calls.last(where: { $0.fragments[side]?.contains(name) == true })
    {
      return (try await trickle(fragment, from: side, in: call), call.legs)
    }
    guard let call = calls.last(where: { $0.session == session }) else {
      throw SignalingRefusal(
        "a fragment of a description names credentials that no description had, for a session "
          + "that the relay has not seen begin")
    }
    await enter(call)
    defer { leave(call) }
    if let restart = call.restart, restart.side == side.other {
      return (try await complete(restart, with: text, fragment, in: call), call.legs)
    }
    return (try await request(text, fragment, from: side, in: call), call.legs)
  }

  private func trickle(
    _ fragment: TrickleFragment, from side: RelaySide, in call: Call
  ) async throws(SignalingRefusal) -> String {
    await enter(call)
    defer { leave(call) }
    for candidate in fragment.candidates {
      // An invalid candidate is dropped here; the other end would have ignored it as well.
      try? await call.legs.leg(side).addICECandidate(candidate)
    }
    guard let shown = call.shown[side.other] else {
      throw SignalingRefusal("candidates arrived before their description")
    }
    return try forwarded(fragment, for: shown.description)
  }

  // MARK: ICE restarts

  /// Prepares an ICE restart of both legs.
  ///
  /// Nothing changes until the other end confirms the restart: if that end refuses, the call
  /// continues as before (RFC 9725 section 4.3.3).
  private func request(
    _ text: String, _ fragment: TrickleFragment, from side: RelaySide, in call: Call
  ) async throws(SignalingRefusal) -> String {
    guard call.pending == nil, call.said[side.other] != nil else {
      throw SignalingRefusal("an ICE restart has to wait until the offer before it is answered")
    }
    let offer = try restarted(call.said[side], by: text)
    let prepared: SessionDescription
    do throws(PeerError) {
      prepared = try await call.legs.leg(side.other).createOffer(iceRestart: true)
    } catch {
      throw SignalingRefusal("the relay cannot restart ICE: \(error.message)")
    }
    call.restart = Restart(side: side, offer: offer)
    return try forwarded(fragment, for: prepared)
  }

  /// Restarts ICE on both legs, as if the ends had exchanged an offer and an answer.
  private func complete(
    _ restart: Restart, with text: String, _ fragment: TrickleFragment, in call: Call
  ) async throws(SignalingRefusal) -> String {
    call.restart = nil
    let (side, other) = (restart.side, restart.side.other)
    let answer = try restarted(call.said[other], by: text)
    let (asking, answering) = (call.legs.leg(side), call.legs.leg(other))
    let shown: SessionDescription
    for (document, side) in [(restart.offer, side), (answer, other)] {
      call.record(Said(document: document, text: document.text), from: side)
      events.description(call.legs.number, document, document.text, side)
    }
    do throws(PeerError) {
      let offer = SessionDescription(type: .offer, sdp: restart.offer.text)
      try await asking.setRemoteDescription(offer)
      call.shown[other] = (try await answering.show(offer), offer.sdp)
      let final = SessionDescription(type: .answer, sdp: answer.text)
      try await answering.setRemoteDescription(final)
      shown = try await asking.show(final)
      call.shown[side] = (shown, final.sdp)
    } catch {
      throw SignalingRefusal("the relay cannot restart ICE: \(error.message)")
    }
    return try forwarded(fragment, for: shown)
  }

  private func forwarded(
    _ fragment: TrickleFragment, for description: SessionDescription
  ) throws(SignalingRefusal) -> String {
    do throws(SDPError) {
      return fragment.text(for: try SDPDocument(parsing: description.sdp))
    } catch {
      throw SignalingRefusal("a description cannot be read: \(error.description)")
    }
  }

  private func restarted(
    _ said: Said?, by text: String
  ) throws(SignalingRefusal) -> SDPDocument {
    let fragment: SDPFragment
    do throws(SDPError) {
      fragment = try SDPFragment(parsing: text)
    } catch {
      throw SignalingRefusal("a fragment of a description cannot be read: \(error.description)")
    }
    guard let document = said?.document.restarted(by: fragment) else {
      throw SignalingRefusal("a fragment of a description has no ICE credentials")
    }
    return document
  }
}

// MARK: - TrickleFragment

/// A fragment of a description with candidates (RFC 8840 section 9).
///
/// It is read more leniently than an end would read it: lines that do not describe a transport are
/// forwarded unread.
struct TrickleFragment {
  private(set) var usernameFragment: String?
  private(set) var candidates: [CandidateInit] = []
  /// The lines before the first section that are forwarded, such as `a=group:BUNDLE 0 1`.
  private var common: [Substring] = []
  /// Each section's forwarded lines, the `m=` line first, and its MID.
  private var sections: [(lines: [Substring], mid: String?)] = []
  /// The username fragment of the last section, if it has its own.
  private var sectionFragment: String?
  private var isComplete = false

  private static let candidatesMaximum = 200

  init(_ text: String) {
    for line in text.split(whereSeparator: \.isNewline) {
      if line.hasPrefix("m=") {
        sections.append(([line], nil))
        sectionFragment = nil
      } else if line.hasPrefix("a=ice-ufrag:") {
        let name = String(line.dropFirst("a=ice-ufrag:".count))
        if !sections.isEmpty { sectionFragment = name }
        usernameFragment = usernameFragment ?? name
      } else if line.hasPrefix("a=mid:") {
        let mid = String(line.dropFirst("a=mid:".count))
        if sections.isEmpty { sections.append(([], nil)) }
        sections[sections.count - 1].lines.append(line)
        sections[sections.count - 1].mid = mid
      } else if line.hasPrefix("a=candidate:"), candidates.count < Self.candidatesMaximum {
        candidates.append(candidate(String(line.dropFirst(2))))
      } else if line.hasPrefix("a=end-of-candidates") {
        isComplete = true
        candidates.append(candidate(""))
      } else if !Self.isOfTransport(line) {
        if sections.isEmpty {
          common.append(line)
        } else {
          sections[sections.count - 1].lines.append(line)
        }
      }
    }
  }

  /// Returns whether a line describes one transport, and so never passes to the other leg.
  private static func isOfTransport(_ line: Substring) -> Bool {
    guard line.hasPrefix("a=") else { return line.hasPrefix("c=") }
    return SDPDocument.transportAttributes.contains(String(line.dropFirst(2).prefix { $0 != ":" }))
  }

  /// Returns a candidate for the last section read or, if that section has no MID, for the first
  /// section.
  private func candidate(_ text: String) -> CandidateInit {
    let mid = sections.last?.mid
    return CandidateInit(
      candidate: text, sdpMid: mid, sdpMLineIndex: mid == nil ? 0 : nil,
      usernameFragment: sectionFragment ?? usernameFragment)
  }

  /// Returns the fragment with a description's credentials and candidates in place of its own.
  func text(for document: SDPDocument) -> String {
    let credentials = document.credentials
    var lines = common.map(String.init) + (credentials?.attributes ?? [])
    for (forwarded, mid) in sections {
      lines += forwarded.map(String.init)
      let section =
        document.sections.first { $0.mid == mid }
        ?? document.sections.first { $0.iceUsernameFragment != nil }
      // Sections that are not bundled have credentials of their own.
      if let own = section?.credentials, own != credentials { lines += own.attributes }
      lines += section?.candidates.map { "a=\($0)" } ?? []
      if isComplete { lines.append("a=end-of-candidates") }
    }
    return lines.joined(separator: "\r\n") + "\r\n"
  }
}

extension SDPFragment.Credentials {
  fileprivate var attributes: [String] {
    ["a=ice-ufrag:\(usernameFragment)", "a=ice-pwd:\(password)"]
  }
}

extension SDPSection {
  fileprivate var credentials: SDPFragment.Credentials? {
    guard let iceUsernameFragment, let icePassword else { return nil }
    return SDPFragment.Credentials(usernameFragment: iceUsernameFragment, password: icePassword)
  }
}
