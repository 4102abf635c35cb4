/// Every member of the W3C statistics (webrtc-stats, without the provisional ones): which of them
/// reports here have, when and from what, and why the others cannot exist.
///
/// `retake sql --schema` prints it, the article on statistics has it as tables, and tests hold both
/// and reports against it.
package struct StatsMembers: Sendable {
  /// The W3C type, and for streams and sources `audio` or `video`.
  package var type: String
  package var kind: String?
  /// A member that reports have: when, and from what.
  package struct Given: Sendable {
    package var name: String
    /// "always" for what every object of the type has.
    package var when: String
    package var source: String
    /// Whether it is none of the standard.
    package var isFurther: Bool
  }

  /// What reports have, as soon as it applies, with what is none of the standard at the end.
  package var members: [Given]
  /// What they never have, with the reason.
  package var missing: [(members: [String], reason: String)]

  /// The names of what reports have.
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

  /// The title of the type: `inbound-rtp (audio)`.
  package var title: String { type + (kind.map { " (\($0))" } ?? "") }

  /// All types as tables of the article on statistics, which a test compares with it.
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

  /// All types, as people read them.
  package static var text: String {
    all.map { entry in
      let given = "  \(entry.given.joined(separator: " "))"
      let missing = entry.missing.map {
        "  without \($0.members.joined(separator: ", ")): \($0.reason)"
      }
      return ([entry.title, given] + missing).joined(separator: "\n")
    }.joined(separator: "\n\n")
  }

  /// The types whose objects have all of these members.
  package static func types(with members: some Collection<String>) -> Set<String> {
    Set(all.filter { entry in members.allSatisfy(entry.given.contains) }.map(\.type))
  }

  /// Why no report has a member; nil when it is none of the standard.
  package static func absence(of member: String) -> String? {
    all.lazy.flatMap(\.missing).first { $0.members.contains(member) }?.reason
  }

  /// Whether a member only ever grows while its object lives.
  private static func isCumulative(_ member: String) -> Bool {
    member.hasPrefix("total") || cumulative.contains(member)
      || (member.hasSuffix("Count") && member != "activeSlotCount")
  }

  /// By how much a member that grows may fall for a moment: packets that are late count as lost
  /// until they come (RFC 3550 appendix A.3); nil for one that comes and goes.
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
