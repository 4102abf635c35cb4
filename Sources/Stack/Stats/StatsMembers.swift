/// Every member of the W3C statistics (webrtc-stats, without provisional members): when Retake's
/// reports have it and where its value comes from, or why it is missing.
///
/// `retake sql --schema` prints this table and the article on statistics shows it; tests compare
/// both, and real reports, with it.
package struct StatsMembers: Sendable {
  /// The W3C type; `kind` is `audio` or `video` for streams and sources.
  package var type: String
  package var kind: String?
  /// A member present in reports.
  package struct Given: Sendable {
    package var name: String
    /// The condition under which the member is present; "always" if every object of the type has
    /// it.
    package var when: String
    package var source: String
    /// Whether the member is an addition to the standard.
    package var isFurther: Bool
  }

  /// The members present in reports; additions to the standard are last.
  package var members: [Given]
  /// The members that no report has, with the reason.
  package var missing: [(members: [String], reason: String)]

  package var given: [String] { members.map(\.name) }

  static let always = "always"

  init(
    _ type: String, _ kind: String? = nil,
    given: [(members: String, when: String, source: String)],
    further: [(members: String, when: String, source: String)] = [],
    missing: [(members: String, reason: String)] = []
  ) {
    self.type = type
    self.kind = kind
    members = [(given, false), (further, true)].flatMap { groups, isFurther in
      groups.flatMap { group in
        group.members.words.map {
          Given(name: $0, when: group.when, source: group.source, isFurther: isFurther)
        }
      }
    }
    self.missing = missing.map { ($0.members.words, $0.reason) }
  }

  /// The type's title: `inbound-rtp (audio)`.
  package var title: String { type + (kind.map { " (\($0))" } ?? "") }

  /// All types as Markdown tables for the article on statistics; a test compares the two.
  package static var markdown: String {
    all.map { entry in
      let given = entry.members.map {
        "| `\($0.name)`\($0.isFurther ? " *" : "") | \($0.when) | \($0.source) |"
      }
      let missing = entry.missing.flatMap { group in
        group.members.map { "| `\($0)` | never | \(group.reason) |" }
      }
      let head = [
        "### \(entry.title)", "", "| member | when | from what, or why not |", "|---|---|---|",
      ]
      return (head + given + missing).joined(separator: "\n")
    }.joined(separator: "\n\n")
  }

  /// All types as plain text, for `retake sql --schema`.
  package static var text: String {
    all.map { entry in
      let given = "  \(entry.given.joined(separator: " "))"
      let missing = entry.missing.map {
        "  without \($0.members.joined(separator: ", ")): \($0.reason)"
      }
      return ([entry.title, given] + missing).joined(separator: "\n")
    }.joined(separator: "\n\n")
  }

  /// Returns the types whose objects can have all of these members.
  package static func types(with members: some Collection<String>) -> Set<String> {
    Set(all.filter { entry in members.allSatisfy(entry.given.contains) }.map(\.type))
  }

  /// Returns why no report has a member; nil if reports can have it, or if the standard does not
  /// define it.
  package static func absence(of member: String) -> String? {
    all.lazy.flatMap(\.missing).first { $0.members.contains(member) }?.reason
  }

  /// Returns whether a member never decreases during its object's life.
  private static func isCumulative(_ member: String) -> Bool {
    member.hasPrefix("total") || cumulative.contains(member)
      || (member.hasSuffix("Count") && member != "activeSlotCount")
  }

  /// Returns the amount by which a cumulative member may temporarily fall; nil for other members.
  ///
  /// Late packets count as lost until they arrive (RFC 3550 appendix A.3).
  package static func slack(of member: String) -> Double? {
    member == "packetsLost" ? 10 : isCumulative(member) ? 0 : nil
  }

  private static let cumulative: Set<String> = Set(
    """
    packetsSent packetsReceived bytesSent bytesReceived headerBytesSent headerBytesReceived \
    packetsDiscarded retransmittedPacketsSent retransmittedPacketsReceived \
    retransmittedBytesSent retransmittedBytesReceived framesReceived framesDecoded \
    framesRendered framesDropped framesSent framesEncoded keyFramesDecoded keyFramesEncoded \
    hugeFramesSent qpSum framesAssembledFromMultiplePackets concealedSamples \
    silentConcealedSamples concealmentEvents insertedSamplesForDeceleration \
    removedSamplesForAcceleration jitterBufferDelay jitterBufferTargetDelay \
    jitterBufferMinimumDelay dataChannelsOpened dataChannelsClosed messagesSent \
    messagesReceived requestsSent requestsReceived responsesSent responsesReceived \
    consentRequestsSent selectedCandidatePairChanges roundTripTimeMeasurements \
    qualityLimitationResolutionChanges packetsDiscardedOnSend bytesDiscardedOnSend \
    packetsReceivedWithEct1 packetsReceivedWithCe packetsSentWithEct1
    """.words)
}

extension String {
  fileprivate var words: [String] { split(separator: " ").map(String.init) }
}
