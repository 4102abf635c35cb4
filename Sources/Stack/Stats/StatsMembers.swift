/// Every member of the W3C statistics (webrtc-stats, without the provisional ones): which of them
/// reports here have, and why the others cannot exist.
///
/// `retake sql --schema` prints it, and a test holds reports against it.
package struct StatsMembers: Sendable {
  /// The W3C type, and for streams and sources `audio` or `video`.
  package var type: String
  package var kind: String?
  /// What reports have, as soon as it applies.
  package var given: [String]
  /// What they never have, with the reason.
  package var missing: [(members: [String], reason: String)]

  private init(
    _ type: String, _ kind: String? = nil, given: String,
    missing: [(members: String, reason: String)] = []
  ) {
    self.type = type
    self.kind = kind
    self.given = given.words
    self.missing = missing.map { ($0.members.words, $0.reason) }
  }

  /// All types, as people read them.
  package static var text: String {
    all.map { entry in
      let title = entry.type + (entry.kind.map { " (\($0))" } ?? "")
      let given = "  \(entry.given.joined(separator: " "))"
      let missing = entry.missing.map {
        "  without \($0.members.joined(separator: ", ")): \($0.reason)"
      }
      return ([title, given] + missing).joined(separator: "\n")
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
    qualityLimitationResolutionChanges packetsDiscardedOnSend bytesDiscardedOnSend
    """.words)

  private static let noECN = "ECN of RTP (RFC 6679, L4S) is not used"

  /// All types in the order of the standard.
  package static let all: [StatsMembers] = [
    StatsMembers(
      "codec",
      given: """
        transportId payloadType mimeType clockRate channels sdpFmtpLine
        """),
    StatsMembers(
      "inbound-rtp", "audio",
      given: """
        ssrc kind transportId codecId trackIdentifier mid remoteId playoutId packetsReceived \
        packetsLost jitter lastPacketReceivedTimestamp headerBytesReceived bytesReceived \
        packetsDiscarded fecPacketsReceived fecPacketsDiscarded nackCount \
        retransmittedPacketsReceived retransmittedBytesReceived estimatedPlayoutTimestamp \
        jitterBufferDelay jitterBufferTargetDelay jitterBufferEmittedCount \
        jitterBufferMinimumDelay totalSamplesReceived concealedSamples \
        silentConcealedSamples concealmentEvents insertedSamplesForDeceleration \
        removedSamplesForAcceleration audioLevel totalAudioEnergy totalSamplesDuration \
        totalProcessingDelay
        """,
      missing: [
        (
          """
          packetsReceivedWithEct1 packetsReceivedWithCe packetsReportedAsLost \
          packetsReportedAsLostButRecovered
          """, noECN
        ),
        ("fecBytesReceived fecSsrc", "Opus carries its FEC inside of its packets"),
        ("rtxSsrc", "audio is not sent again"),
      ]),
    StatsMembers(
      "inbound-rtp", "video",
      given: """
        ssrc kind transportId codecId trackIdentifier mid remoteId packetsReceived \
        packetsLost jitter lastPacketReceivedTimestamp headerBytesReceived bytesReceived \
        packetsDiscarded nackCount firCount pliCount retransmittedPacketsReceived \
        retransmittedBytesReceived rtxSsrc estimatedPlayoutTimestamp jitterBufferDelay \
        jitterBufferTargetDelay jitterBufferEmittedCount jitterBufferMinimumDelay \
        framesReceived framesDecoded keyFramesDecoded framesRendered framesDropped \
        frameWidth frameHeight framesPerSecond qpSum totalDecodeTime totalInterFrameDelay \
        totalSquaredInterFrameDelay pauseCount totalPausesDuration freezeCount \
        totalFreezesDuration totalProcessingDelay framesAssembledFromMultiplePackets \
        totalAssemblyTime decoderImplementation powerEfficientDecoder
        """,
      missing: [
        (
          """
          packetsReceivedWithEct1 packetsReceivedWithCe packetsReportedAsLost \
          packetsReportedAsLostButRecovered
          """, noECN
        ),
        (
          "fecPacketsReceived fecPacketsDiscarded fecBytesReceived fecSsrc",
          "no FlexFEC or ULPFEC is agreed on"
        ),
        (
          """
          totalCorruptionProbability totalSquaredCorruptionProbability \
          corruptionMeasurements
          """, "the corruption detection extension is not agreed on"
        ),
      ]),
    StatsMembers(
      "outbound-rtp", "audio",
      given: """
        ssrc kind transportId codecId mid mediaSourceId remoteId encodingIndex packetsSent \
        bytesSent headerBytesSent retransmittedPacketsSent retransmittedBytesSent \
        targetBitrate totalPacketSendDelay nackCount active
        """,
      missing: [
        ("packetsSentWithEct1", noECN),
        ("rid", "there is one encoding"),
        ("rtxSsrc", "audio is not sent again"),
      ]),
    StatsMembers(
      "outbound-rtp", "video",
      given: """
        ssrc kind transportId codecId mid mediaSourceId remoteId encodingIndex packetsSent \
        bytesSent headerBytesSent retransmittedPacketsSent retransmittedBytesSent rtxSsrc \
        targetBitrate totalEncodedBytesTarget totalPacketSendDelay frameWidth frameHeight \
        framesPerSecond framesSent hugeFramesSent framesEncoded keyFramesEncoded qpSum \
        totalEncodeTime qualityLimitationReason qualityLimitationDurations \
        qualityLimitationResolutionChanges nackCount firCount pliCount encoderImplementation \
        powerEfficientEncoder active scalabilityMode rid
        """,
      missing: [
        ("packetsSentWithEct1", noECN),
        ("psnrSum psnrMeasurements", "the encoder does not measure it"),
      ]),
    StatsMembers(
      "remote-inbound-rtp",
      given: """
        ssrc kind transportId codecId localId packetsReceived packetsLost jitter \
        fractionLost roundTripTime totalRoundTripTime roundTripTimeMeasurements
        """,
      missing: [
        (
          """
          packetsWithBleachedEct1Marking packetsReceivedWithEct1 packetsReceivedWithCe \
          packetsReportedAsLost packetsReportedAsLostButRecovered
          """, noECN
        )
      ]),
    StatsMembers(
      "remote-outbound-rtp",
      given: """
        ssrc kind transportId codecId localId packetsSent bytesSent remoteTimestamp \
        reportsSent roundTripTime totalRoundTripTime roundTripTimeMeasurements
        """),
    StatsMembers(
      "media-source", "audio",
      given: """
        trackIdentifier kind audioLevel totalAudioEnergy totalSamplesDuration
        """,
      missing: [
        ("echoReturnLoss echoReturnLossEnhancement", "there is no echo canceller")
      ]),
    StatsMembers(
      "media-source", "video",
      given: "trackIdentifier kind width height frames framesPerSecond"),
    StatsMembers(
      "media-playout",
      given: """
        kind synthesizedSamplesDuration synthesizedSamplesEvents totalSamplesDuration \
        totalPlayoutDelay totalSamplesCount
        """),
    StatsMembers(
      "peer-connection",
      given: "dataChannelsOpened dataChannelsClosed"),
    StatsMembers(
      "data-channel",
      given: """
        label protocol dataChannelIdentifier state messagesSent bytesSent messagesReceived \
        bytesReceived
        """),
    StatsMembers(
      "transport",
      given: """
        packetsSent packetsReceived bytesSent bytesReceived iceRole iceLocalUsernameFragment \
        dtlsState iceState selectedCandidatePairId localCertificateId remoteCertificateId \
        tlsVersion dtlsCipher dtlsRole srtpCipher selectedCandidatePairChanges
        """,
      missing: [
        ("ccfbMessagesSent ccfbMessagesReceived", "feedback is transport-cc, not RFC 8888")
      ]),
    StatsMembers(
      "candidate-pair",
      given: """
        transportId localCandidateId remoteCandidateId state nominated priority packetsSent \
        packetsReceived bytesSent bytesReceived lastPacketSentTimestamp \
        lastPacketReceivedTimestamp totalRoundTripTime currentRoundTripTime \
        availableOutgoingBitrate availableIncomingBitrate requestsReceived requestsSent \
        responsesReceived responsesSent consentRequestsSent packetsDiscardedOnSend \
        bytesDiscardedOnSend
        """),
    StatsMembers(
      "local-candidate",
      given: """
        transportId address port protocol candidateType priority url relayProtocol \
        foundation relatedAddress relatedPort usernameFragment tcpType
        """),
    StatsMembers(
      "remote-candidate",
      given: """
        transportId address port protocol candidateType priority foundation relatedAddress \
        relatedPort usernameFragment tcpType
        """,
      missing: [
        ("url relayProtocol", "only the other side knows its servers")
      ]),
    StatsMembers(
      "certificate",
      given: "fingerprint fingerprintAlgorithm base64Certificate",
      missing: [
        ("issuerCertificateId", "DTLS certificates are self-signed, and chains are not kept")
      ]),
  ]
}

extension String {
  fileprivate var words: [String] { split(separator: " ").map(String.init) }
}
