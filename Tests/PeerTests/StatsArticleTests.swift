import Foundation
import Stats
import Testing

/// The tables in the article on statistics, which must contain every member of the standard.
///
/// `StatsMemberTests` compares real reports with the same list, so the article cannot differ from
/// them.
struct StatsArticleTests {
  /// Each type's members as the standard declares them (webrtc-stats, editor's draft of January
  /// 2026), including inherited ones, without id, type and timestamp.
  private static let standard: [(type: String, members: String)] = [
    (
      "codec",
      """
      payloadType transportId mimeType clockRate channels sdpFmtpLine
      """
    ),
    (
      "inbound-rtp",
      """
      ssrc kind transportId codecId packetsReceived packetsReceivedWithEct1 \
      packetsReceivedWithCe packetsReportedAsLost packetsReportedAsLostButRecovered \
      packetsLost jitter trackIdentifier mid remoteId framesDecoded keyFramesDecoded \
      framesRendered framesDropped frameWidth frameHeight framesPerSecond qpSum \
      totalDecodeTime totalInterFrameDelay totalSquaredInterFrameDelay pauseCount \
      totalPausesDuration freezeCount totalFreezesDuration lastPacketReceivedTimestamp \
      headerBytesReceived packetsDiscarded fecBytesReceived fecPacketsReceived \
      fecPacketsDiscarded bytesReceived nackCount firCount pliCount totalProcessingDelay \
      estimatedPlayoutTimestamp jitterBufferDelay jitterBufferTargetDelay \
      jitterBufferEmittedCount jitterBufferMinimumDelay totalSamplesReceived \
      concealedSamples silentConcealedSamples concealmentEvents \
      insertedSamplesForDeceleration removedSamplesForAcceleration audioLevel \
      totalAudioEnergy totalSamplesDuration framesReceived decoderImplementation playoutId \
      powerEfficientDecoder framesAssembledFromMultiplePackets totalAssemblyTime \
      retransmittedPacketsReceived retransmittedBytesReceived rtxSsrc fecSsrc \
      totalCorruptionProbability totalSquaredCorruptionProbability corruptionMeasurements
      """
    ),
    (
      "outbound-rtp",
      """
      ssrc kind transportId codecId packetsSent bytesSent mid mediaSourceId remoteId rid \
      encodingIndex headerBytesSent retransmittedPacketsSent retransmittedBytesSent \
      rtxSsrc targetBitrate totalEncodedBytesTarget frameWidth frameHeight framesPerSecond \
      framesSent hugeFramesSent framesEncoded keyFramesEncoded qpSum psnrSum \
      psnrMeasurements totalEncodeTime totalPacketSendDelay qualityLimitationReason \
      qualityLimitationDurations qualityLimitationResolutionChanges nackCount firCount \
      pliCount encoderImplementation powerEfficientEncoder active scalabilityMode \
      packetsSentWithEct1
      """
    ),
    (
      "remote-inbound-rtp",
      """
      ssrc kind transportId codecId packetsReceived packetsReceivedWithEct1 \
      packetsReceivedWithCe packetsReportedAsLost packetsReportedAsLostButRecovered \
      packetsLost jitter localId roundTripTime totalRoundTripTime fractionLost \
      roundTripTimeMeasurements packetsWithBleachedEct1Marking
      """
    ),
    (
      "remote-outbound-rtp",
      """
      ssrc kind transportId codecId packetsSent bytesSent localId remoteTimestamp \
      reportsSent roundTripTime totalRoundTripTime roundTripTimeMeasurements
      """
    ),
    (
      "media-playout",
      """
      kind synthesizedSamplesDuration synthesizedSamplesEvents totalSamplesDuration \
      totalPlayoutDelay totalSamplesCount
      """
    ),
    (
      "peer-connection",
      """
      dataChannelsOpened dataChannelsClosed
      """
    ),
    (
      "data-channel",
      """
      label protocol dataChannelIdentifier state messagesSent bytesSent messagesReceived \
      bytesReceived
      """
    ),
    (
      "transport",
      """
      packetsSent packetsReceived bytesSent bytesReceived iceRole iceLocalUsernameFragment \
      dtlsState iceState selectedCandidatePairId localCertificateId remoteCertificateId \
      tlsVersion dtlsCipher dtlsRole srtpCipher selectedCandidatePairChanges \
      ccfbMessagesSent ccfbMessagesReceived
      """
    ),
    (
      "candidate-pair",
      """
      transportId localCandidateId remoteCandidateId state nominated packetsSent \
      packetsReceived bytesSent bytesReceived lastPacketSentTimestamp \
      lastPacketReceivedTimestamp totalRoundTripTime currentRoundTripTime \
      availableOutgoingBitrate availableIncomingBitrate requestsReceived requestsSent \
      responsesReceived responsesSent consentRequestsSent packetsDiscardedOnSend \
      bytesDiscardedOnSend
      """
    ),
    (
      "local-candidate",
      """
      transportId address port protocol candidateType priority url relayProtocol \
      foundation relatedAddress relatedPort usernameFragment tcpType
      """
    ),
    (
      "remote-candidate",
      """
      transportId address port protocol candidateType priority url relayProtocol \
      foundation relatedAddress relatedPort usernameFragment tcpType
      """
    ),
    (
      "certificate",
      """
      fingerprint fingerprintAlgorithm base64Certificate issuerCertificateId
      """
    ),
    (
      "media-source audio",
      """
      trackIdentifier kind audioLevel totalAudioEnergy totalSamplesDuration echoReturnLoss \
      echoReturnLossEnhancement
      """
    ),
    (
      "media-source video",
      """
      trackIdentifier kind width height frames framesPerSecond
      """
    ),
  ]

  @Test(arguments: standard) func everyMemberOfTheStandardIsInTheTable(
    type: String, members: String
  ) throws {
    let wanted = Set(members.split(separator: " ").map(String.init))
    let entries = StatsMembers.all.filter {
      $0.type == type || "\($0.type) \($0.kind ?? "")" == type
    }
    #expect(!entries.isEmpty)
    var listed: Set<String> = []
    for entry in entries {
      listed.formUnion(entry.members.filter { !$0.isFurther }.map(\.name))
      listed.formUnion(entry.missing.flatMap(\.members))
    }
    #expect(listed == wanted, "\(listed.symmetricDifference(wanted).sorted())")
  }

  /// If the members of a report have changed, this test prints what the article has to say.
  @Test func theArticleMatchesTheTablesInTheCode() throws {
    let article = try String(
      contentsOf: URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()
        .appending(path: "Sources/Products/Retake/Retake.docc/Statistics.md"), encoding: .utf8)
    let tables = StatsMembers.markdown
    guard !article.contains(tables) else { return }
    let lines = Set(article.split(separator: "\n"))
    let missing = tables.split(separator: "\n").filter { !lines.contains($0) }
    Issue.record("the article has no such lines: \(missing.joined(separator: "\n"))")
  }

  @Test func membersAreListedOnce() {
    for entry in StatsMembers.all {
      let names = entry.members.map(\.name)
      #expect(Set(names).count == names.count, "\(entry.title)")
      #expect(entry.members.allSatisfy { !$0.when.isEmpty && !$0.source.isEmpty })
    }
  }
}
