// The members present in reports, by type, with their conditions and sources.
extension StatsMembers {
  private static let noFeedback =
    "exists only where feedback of RFC 8888 is negotiated, and feedback here is transport-cc"
  private static let noFEC = "neither FlexFEC nor ULPFEC is negotiated"
  private static let negotiated = "the negotiated section"
  /// The condition for some members of received video; a track shows one simulcast layer at a time.
  private static let shown = "while the track shows the stream"
  private static let wholeHeader =
    "received packets: RTP headers with extensions, and padding; of retransmissions too"
  private static let buffer = "the playout's buffer, summed up as samples or frames leave it"

  package static let all: [StatsMembers] =
    [codec, inboundAudio, inboundVideo, outboundAudio, outboundVideo, remoteInbound]
    + [remoteOutbound, audioSource, videoSource, playout, connection, dataChannel, transport]
    + [pair, localCandidate, remoteCandidate, certificate]

  private static let codec = StatsMembers(
    "codec",
    given: [
      ("transportId payloadType mimeType clockRate", always, negotiated),
      ("channels", "for audio", negotiated),
      ("sdpFmtpLine", "where there are parameters", "the description of the receiving side"),
    ])

  private static let inboundAudio = StatsMembers(
    "inbound-rtp", "audio",
    given: [
      ("ssrc kind transportId mid", always, "the first packet and its section"),
      ("codecId", "while the payload type is negotiated", "the last packet with audio"),
      ("trackIdentifier", always, "the transceiver"),
      ("remoteId", "from the first sender report on", "RTCP"),
      ("playoutId", "while the track has a playout", "the playout"),
      ("packetsReceived bytesReceived", always, "received packets, payloads without padding"),
      (
        "packetsReceivedWithEct1 packetsReceivedWithCe",
        "from the first packet on whose mark is known: over UDP",
        "the IP header (IP_RECVTOS, IPV6_RECVTCLASS; the header in a capture)"
      ),
      ("headerBytesReceived", always, wholeHeader),
      ("packetsLost", always, "sequence numbers (RFC 3550 appendix A.3)"),
      ("jitter", always, "RTP times and the kernel's receive times (RFC 3550 appendix A.8)"),
      ("lastPacketReceivedTimestamp", always, "the kernel's receive time"),
      (
        "packetsDiscarded", "while the track has a playout",
        "packets that arrived too late or cannot be played"
      ),
      ("fecPacketsReceived", "while the track has a playout", "Opus in-band FEC that was used"),
      ("fecPacketsDiscarded", "while the track has a playout", "0: unused FEC does not count"),
      ("nackCount", always, "NACK requests sent"),
      ("estimatedPlayoutTimestamp", "from the first sender report and sample on", "both of them"),
      (
        """
        jitterBufferDelay jitterBufferTargetDelay jitterBufferMinimumDelay \
        jitterBufferEmittedCount
        """, "while the track has a playout", buffer
      ),
      (
        """
        totalSamplesReceived concealedSamples silentConcealedSamples concealmentEvents \
        insertedSamplesForDeceleration removedSamplesForAcceleration totalSamplesDuration
        """, "while the track has a playout", "samples that were played"
      ),
      (
        "audioLevel", "after 100 ms of audio",
        "the root mean square of the last 100 ms, of the loudest channel"
      ),
      ("totalAudioEnergy", "while the track has a playout", "squared samples times their duration"),
      ("totalProcessingDelay", "where the decoder's work is measured", "the clock and the buffer"),
    ],
    further: [
      (
        "peakAudioLevel", "after 100 ms of audio",
        "the loudest sample of the last 100 ms, falling to a quarter in each: Chromium's audioLevel"
      )
    ],
    missing: [
      ("packetsReportedAsLost packetsReportedAsLostButRecovered", noFeedback),
      ("fecBytesReceived fecSsrc", "Opus carries its FEC inside of its packets"),
      (
        "rtxSsrc retransmittedPacketsReceived retransmittedBytesReceived",
        "must not exist without RTX, which audio does not use"
      ),
    ])

  private static let inboundVideo = StatsMembers(
    "inbound-rtp", "video",
    given: [
      ("ssrc kind transportId mid", always, "the first packet and its section"),
      ("codecId", "while the payload type is negotiated", "the last packet with video"),
      ("trackIdentifier", always, "the transceiver"),
      ("remoteId", "from the first sender report on", "RTCP"),
      (
        "packetsReceived bytesReceived", always,
        "received packets, payloads without padding; including retransmissions"
      ),
      (
        "packetsReceivedWithEct1 packetsReceivedWithCe",
        "from the first packet on whose mark is known: over UDP",
        "the IP header (IP_RECVTOS, IPV6_RECVTCLASS; the header in a capture)"
      ),
      ("headerBytesReceived", always, wholeHeader),
      ("packetsLost", always, "sequence numbers (RFC 3550 appendix A.3)"),
      ("jitter", always, "RTP times and the kernel's receive times (RFC 3550 appendix A.8)"),
      ("lastPacketReceivedTimestamp", always, "the kernel's receive time"),
      ("packetsDiscarded", shown, "packets that arrived too late or cannot be used"),
      ("nackCount", always, "NACK requests sent"),
      ("firCount pliCount", shown, "key frame requests sent"),
      (
        "retransmittedPacketsReceived retransmittedBytesReceived", "where RTX is negotiated",
        "packets of the RTX source, including probes, as in Chromium"
      ),
      ("rtxSsrc", "where RTX is negotiated", "the description, or the first packet"),
      ("estimatedPlayoutTimestamp", "from the first sender report and frame on", "both of them"),
      (
        """
        jitterBufferDelay jitterBufferTargetDelay jitterBufferMinimumDelay \
        jitterBufferEmittedCount
        """, "while the track has a playout", buffer
      ),
      ("framesReceived", shown, "frames whose packets have all arrived"),
      (
        "framesDecoded keyFramesDecoded framesRendered qpSum", "where frames are decoded",
        "the decoder; what is decoded is rendered"
      ),
      ("framesDropped", "while the track has a playout", "complete frames that were not decoded"),
      ("frameWidth frameHeight framesPerSecond", "from the first decoded frame on", "the decoder"),
      ("decoderImplementation", "from the first decoded frame on", "the library"),
      ("powerEfficientDecoder", "from the first decoded frame on", "false: it is software"),
      ("totalDecodeTime totalProcessingDelay", "where the decoder's work is measured", "the clock"),
      (
        """
        totalInterFrameDelay totalSquaredInterFrameDelay pauseCount totalPausesDuration \
        freezeCount totalFreezesDuration
        """, "where frames are decoded", "the times at which frames are shown"
      ),
      (
        "framesAssembledFromMultiplePackets totalAssemblyTime", shown,
        "the kernel's receive times of a frame's packets"
      ),
    ],
    missing: [
      ("packetsReportedAsLost packetsReportedAsLostButRecovered", noFeedback),
      ("fecPacketsReceived fecPacketsDiscarded fecBytesReceived fecSsrc", noFEC),
      (
        """
        totalCorruptionProbability totalSquaredCorruptionProbability corruptionMeasurements
        """, "the corruption detection extension is not negotiated"
      ),
    ])

  private static let outboundAudio = StatsMembers(
    "outbound-rtp", "audio",
    given: [
      ("ssrc kind transportId codecId mid encodingIndex", always, negotiated),
      ("mediaSourceId", "while media from a source is sent", "the sender"),
      ("remoteId", "from the first report block on", "RTCP"),
      ("packetsSent bytesSent", always, "sent packets, payloads without padding"),
      ("headerBytesSent", always, "sent packets: RTP headers with extensions, and padding"),
      ("packetsSentWithEct1", always, "0: packets are sent without an ECN mark"),
      ("retransmittedPacketsSent retransmittedBytesSent", always, "retransmitted packets"),
      ("targetBitrate", "while audio is sent", "the encoder's setting; 64000 of G.711"),
      ("totalPacketSendDelay", always, "the pacer"),
      ("nackCount", always, "requests received from the peer"),
      ("active", always, "the negotiated direction and the encoding"),
    ],
    missing: [
      ("rid", "there is one encoding"),
      ("rtxSsrc", "must not exist without RTX, which audio does not use"),
    ])

  private static let outboundVideo = StatsMembers(
    "outbound-rtp", "video",
    given: [
      ("ssrc kind transportId codecId mid encodingIndex", always, negotiated),
      ("mediaSourceId", "while media from a source is sent", "the sender"),
      ("remoteId", "from the first report block on", "RTCP"),
      ("rid", "of the layers of a simulcast", "the encoding"),
      (
        "packetsSent bytesSent", always,
        "sent packets, payloads without padding; including retransmissions"
      ),
      ("headerBytesSent", always, "sent packets: RTP headers with extensions, and padding"),
      ("packetsSentWithEct1", always, "0: packets are sent without an ECN mark"),
      ("retransmittedPacketsSent retransmittedBytesSent", always, "retransmitted packets"),
      ("rtxSsrc", "where RTX is negotiated", negotiated),
      ("targetBitrate", "while video is encoded", "its share of the estimate"),
      ("totalEncodedBytesTarget", always, "that share, summed over all frames"),
      ("totalPacketSendDelay", always, "the pacer"),
      ("framesSent hugeFramesSent", always, "frames handed to the pacer"),
      ("framesEncoded keyFramesEncoded qpSum", "where frames are encoded here", "the encoder"),
      ("frameWidth frameHeight framesPerSecond", "from the first encoded frame on", "the encoder"),
      ("encoderImplementation", "from the first encoded frame on", "the library"),
      ("powerEfficientEncoder", "from the first encoded frame on", "false: it is software"),
      ("scalabilityMode", "from the first encoded frame on", "the encoding"),
      ("totalEncodeTime", "of one encoding, where its work is measured", "the clock"),
      (
        "qualityLimitationReason qualityLimitationResolutionChanges", always,
        "the adaptation to bandwidth and processor"
      ),
      ("qualityLimitationDurations", "from the first frame on", "the same, with its times"),
      ("nackCount firCount pliCount", always, "requests received from the peer"),
      ("active", always, "the negotiated direction and the encoding"),
    ],
    missing: [("psnrSum psnrMeasurements", "the encoder does not measure it")])

  private static let remoteInbound = StatsMembers(
    "remote-inbound-rtp",
    given: [
      ("ssrc kind transportId codecId localId", always, "the stream that the peer reports on"),
      ("packetsLost jitter fractionLost", always, "report blocks (RFC 3550 section 6.4.1)"),
      ("packetsReceived", always, "the highest number in report blocks, minus losses"),
      (
        "roundTripTime totalRoundTripTime roundTripTimeMeasurements",
        "from the first answer to a sender report on", "report blocks: LSR and DLSR"
      ),
    ],
    missing: [
      (
        """
        packetsReceivedWithEct1 packetsReceivedWithCe packetsReportedAsLost \
        packetsReportedAsLostButRecovered packetsWithBleachedEct1Marking
        """, noFeedback
      )
    ])

  private static let remoteOutbound = StatsMembers(
    "remote-outbound-rtp",
    given: [
      ("ssrc kind transportId codecId localId", always, "the stream that the peer reports on"),
      ("packetsSent bytesSent remoteTimestamp reportsSent", always, "sender reports"),
      (
        "roundTripTime totalRoundTripTime roundTripTimeMeasurements",
        "where the peer answers extended reports", "RRTR and DLRR (RFC 3611)"
      ),
    ])

  private static let audioSource = StatsMembers(
    "media-source", "audio",
    given: [
      ("trackIdentifier kind", always, "the sender's track"),
      (
        "audioLevel", "after 100 ms of audio",
        "the root mean square of the last 100 ms, of the loudest channel"
      ),
      ("totalAudioEnergy", always, "squared samples times their duration"),
      ("totalSamplesDuration", always, "captured samples"),
    ],
    further: [
      (
        "peakAudioLevel", "after 100 ms of audio",
        "the loudest sample of the last 100 ms, falling to a quarter in each: Chromium's audioLevel"
      )
    ],
    missing: [("echoReturnLoss echoReturnLossEnhancement", "there is no echo canceller")])

  private static let videoSource = StatsMembers(
    "media-source", "video",
    given: [
      ("trackIdentifier kind", always, "the sender's track"),
      ("width height framesPerSecond", "from the first frame on", "captured frames"),
      ("frames", always, "captured frames"),
    ])

  private static let playout = StatsMembers(
    "media-playout",
    given: [
      ("kind", always, "audio"),
      ("totalSamplesDuration totalSamplesCount", always, "samples that were played"),
      (
        "synthesizedSamplesDuration synthesizedSamplesEvents", always,
        "0: missing audio is concealed earlier"
      ),
      ("totalPlayoutDelay", always, "0: audio is handed over immediately"),
    ])

  private static let connection = StatsMembers(
    "peer-connection",
    given: [("dataChannelsOpened dataChannelsClosed", always, "data channels")])

  private static let dataChannel = StatsMembers(
    "data-channel",
    given: [
      ("label protocol state", always, "the channel"),
      ("dataChannelIdentifier", "from the handshake on", "the stream of SCTP"),
      ("messagesSent bytesSent messagesReceived bytesReceived", always, "messages"),
    ])
}

// MARK: - Transports

// The members of transports, candidates and certificates.
extension StatsMembers {
  static let transport = StatsMembers(
    "transport",
    given: [
      ("packetsSent packetsReceived bytesSent bytesReceived", always, "datagrams, without STUN"),
      ("iceRole iceLocalUsernameFragment iceState", always, "ICE"),
      ("dtlsState", always, "DTLS"),
      ("selectedCandidatePairId", "while a pair is in use", "ICE"),
      ("selectedCandidatePairChanges", always, "ICE; the first pair counts"),
      ("localCertificateId", "from the handshake's beginning on", "DTLS"),
      (
        "remoteCertificateId tlsVersion dtlsCipher dtlsRole srtpCipher", "after the handshake",
        "DTLS; srtpCipher where media is protected"
      ),
    ],
    missing: [
      ("ccfbMessagesSent ccfbMessagesReceived", "feedback is transport-cc, not RFC 8888")
    ])

  static let pair = StatsMembers(
    "candidate-pair",
    given: [
      ("transportId localCandidateId remoteCandidateId state nominated", always, "ICE"),
      ("packetsSent packetsReceived bytesSent bytesReceived", always, "datagrams, without STUN"),
      (
        "lastPacketSentTimestamp lastPacketReceivedTimestamp", "after the first of them",
        "the clock, and the kernel's receive time"
      ),
      ("totalRoundTripTime", always, "answered checks"),
      ("currentRoundTripTime", "after the first answer", "the last answered check"),
      (
        "availableOutgoingBitrate", "of the pair in use, once there is an estimate",
        "congestion control"
      ),
      (
        "availableIncomingBitrate", "of the pair in use, where REMB is the feedback",
        "the estimate that is sent"
      ),
      ("requestsReceived responsesSent responsesReceived", always, "STUN"),
      ("requestsSent", always, "STUN, without repetitions"),
      ("consentRequestsSent", always, "STUN after the pair was selected (RFC 7675)"),
      ("packetsDiscardedOnSend bytesDiscardedOnSend", always, "datagrams refused by the system"),
    ],
    further: [("priority", always, "ICE (RFC 8445 section 6.1.2.3)")])

  static let localCandidate = StatsMembers(
    "local-candidate",
    given: [
      ("transportId address port protocol candidateType priority foundation", always, "ICE"),
      ("url", "for candidates from a server", "the configuration"),
      ("relayProtocol", "of relayed candidates", "the configuration"),
      ("relatedAddress relatedPort", "of reflexive and relayed candidates", "ICE"),
      ("usernameFragment", always, "ICE"),
      ("tcpType", "of TCP candidates", "ICE (RFC 6544)"),
    ],
    further: [
      (
        "networkType", "of candidates of an interface of this host",
        "the system, by the interface (provisional statistics)"
      )
    ])

  static let remoteCandidate = StatsMembers(
    "remote-candidate",
    given: [
      ("transportId port protocol candidateType priority foundation", always, "signaling, or ICE"),
      ("address", "of candidates that were signaled", "signaling"),
      ("relatedAddress relatedPort", "of reflexive and relayed candidates", "signaling"),
      ("usernameFragment", always, "signaling"),
      ("tcpType", "of TCP candidates", "signaling (RFC 6544)"),
    ],
    missing: [("url relayProtocol", "must not exist: only the peer knows its servers")])

  static let certificate = StatsMembers(
    "certificate",
    given: [
      ("fingerprint fingerprintAlgorithm base64Certificate", always, "DTLS"),
      (
        "issuerCertificateId", "where the peer sends its issuer's certificate",
        "the chain in its Certificate message; browsers sign their own"
      ),
    ])
}
