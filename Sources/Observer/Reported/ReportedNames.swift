import Wire

/// Translates names in report files to W3C API names.
package enum ReportedNames {
  /// The API functions whose calls are recorded; other names are events.
  private static let calls: Set<String> = [
    "createOffer", "createAnswer", "setLocalDescription", "setRemoteDescription",
    "addIceCandidate", "addTrack", "removeTrack", "addTransceiver", "addStream", "removeStream",
    "createDataChannel", "close", "restartIce", "setConfiguration", "setCodecPreferences",
    "setHeaderExtensionsToNegotiate", "setParameters", "replaceTrack", "getUserMedia",
    "getDisplayMedia", "enumerateDevices", "applyConstraints", "stop", "updateIce", "peerIdentity",
  ]

  /// Returns whether a log's method belongs to the API, or is a method of rtcstats.
  static func isKnown(_ method: String) -> Bool {
    switch content(methods[method] ?? method, nil) {
    case .event(let name, _): ["create", "getStats", "getstats"].contains(name) || name != method
    default: true
    }
  }

  /// The prefixes of states in Chromium's older logs, as in `ICEConnectionStateChecking`.
  package static let statePrefixes = [
    "SignalingState", "ICEConnectionState", "ICEGatheringState", "kIceConnection",
    "PeerConnectionState",
  ]

  /// Classifies a log method as a call, its result, or an event.
  static func content(_ method: String, _ value: JSONValue?) -> ReportedEvent.Content {
    var name = method
    for prefix in ["navigator.mediaDevices.", "navigator.", "MediaStreamTrack."]
    where name.hasPrefix(prefix) { name.removeFirst(prefix.count) }
    for (ending, isGood) in [("OnSuccess", true), ("OnFailure", false)]
    where name.hasSuffix(ending) {
      let call = String(name.dropLast(ending.count))
      guard calls.contains(call) else { continue }
      return isGood ? .success(name: call, result: value) : .failure(name: call, reason: value)
    }
    if calls.contains(name) { return .call(name: name, arguments: value) }
    return .event(name: event(name), detail: value)
  }

  /// Maps `onicecandidate` to `icecandidate`, and older Chromium names to current ones.
  private static func event(_ name: String) -> String {
    switch name {
    case "legacyIceConnectionStateChange", "iceConnectionStateChange":
      return "iceconnectionstatechange"
    case "signalingStateChange": return "signalingstatechange"
    case "connectionStateChange": return "connectionstatechange"
    case "iceGatheringStateChange", "onIceGatheringStateChange": return "icegatheringstatechange"
    case "onRenegotiationNeeded": return "negotiationneeded"
    case "onAddStream": return "addstream"
    case "onRemoveStream": return "removestream"
    case "onIceCandidate": return "icecandidate"
    default:
      guard name.hasPrefix("on"), name.dropFirst(2).first?.isLowercase == true else { return name }
      return String(name.dropFirst(2))
    }
  }

  // MARK: rtcstats, file format 3

  /// The methods that rtcstats writes as numbers.
  static let methods: [String: String] = {
    var names = [
      "g": "getStats", "1": "getStats", "2": "createOffer", "3": "createOfferOnSuccess",
      "12": "createOfferOnFailure", "4": "createAnswer", "5": "createAnswerOnSuccess",
      "13": "createAnswerOnFailure", "6": "setLocalDescription",
      "7": "setLocalDescriptionOnSuccess", "14": "setLocalDescriptionOnFailure",
      "8": "setRemoteDescription", "9": "setRemoteDescriptionOnSuccess",
      "15": "setRemoteDescriptionOnFailure", "10": "addIceCandidate",
      "11": "addIceCandidateOnSuccess", "16": "addIceCandidateOnFailure", "20": "onicecandidate",
      "21": "onicecandidateerror", "22": "ontrack", "23": "onsignalingstatechange",
      "24": "oniceconnectionstatechange", "25": "onconnectionstatechange",
      "26": "onicegatheringstatechange", "27": "onnegotiationneeded", "28": "ondatachannel",
      "30": "addTrack", "31": "addTrackOnSuccess", "32": "addTransceiver",
      "33": "addTransceiverOnSuccess", "34": "removeTrack", "35": "createDataChannel",
      "36": "close", "37": "restartIce", "38": "setConfiguration", "39": "create",
      "40": "constraints", "41": "setCodecPreferences", "42": "setHeaderExtensionsToNegotiate",
      "50": "setParameters", "51": "replaceTrack", "70": "MediaStreamTrack.stop",
      "71": "MediaStreamTrack.applyConstraints", "72": "MediaStreamTrack.onended",
      "73": "MediaStreamTrack.onmute", "74": "MediaStreamTrack.onunmute",
      "80": "HTMLMediaElement.resize",
    ]
    let devices = [
      "60": "getUserMedia", "61": "getUserMediaOnSuccess", "65": "getUserMediaOnFailure",
      "63": "getDisplayMedia", "64": "getDisplayMediaOnSuccess",
      "68": "getDisplayMediaOnFailure", "66": "enumerateDevices", "67": "ondevicechange",
    ]
    for (number, name) in devices { names[number] = "navigator.mediaDevices.\(name)" }
    return names
  }()

  /// Statistics types by number, from 1.
  static let types = [
    "inbound-rtp", "outbound-rtp", "remote-inbound-rtp", "remote-outbound-rtp", "transport",
    "candidate-pair", "local-candidate", "remote-candidate", "data-channel", "peer-connection",
    "certificate", "media-source", "media-playout", "codec",
  ]

  /// The statistics members that rtcstats writes as numbers; `t` is the time.
  static let memberNames: [String: String] = {
    var names = ["t": "timestamp"]
    for (first, list) in numberedMembers {
      for (place, name) in list.split(separator: " ").enumerated() {
        names[String(first + place)] = String(name)
      }
    }
    return names
  }()

  /// The first number of each range, with the names of the range's members in order.
  private static let numberedMembers: [(Int, String)] = [
    (4, "payloadType transportId mimeType clockRate channels sdpFmtpLine ssrc kind codecId"),
    (
      14,
      """
      packetsReceived packetsLost jitter trackIdentifier mid remoteId framesDecoded \
      keyFramesDecoded framesDropped frameWidth frameHeight framesPerSecond qpSum totalDecodeTime \
      totalInterFrameDelay totalSquaredInterFrameDelay pauseCount totalPausesDuration freezeCount \
      totalFreezesDuration lastPacketReceivedTimestamp headerBytesReceived packetsDiscarded \
      fecPacketsReceived fecPacketsDiscarded fecBytesReceived fecSsrc bytesReceived nackCount \
      firCount pliCount totalProcessingDelay estimatedPlayoutTimestamp jitterBufferDelay \
      jitterBufferTargetDelay jitterBufferEmittedCount jitterBufferMinimumDelay \
      totalSamplesReceived concealedSamples silentConcealedSamples concealmentEvents \
      insertedSamplesForDeceleration removedSamplesForAcceleration audioLevel totalAudioEnergy \
      totalSamplesDuration framesReceived decoderImplementation playoutId powerEfficientDecoder \
      framesAssembledFromMultiplePackets totalAssemblyTime contentType googTimingFrameInfo \
      retransmittedPacketsReceived retransmittedBytesReceived rtxSsrc totalCorruptionProbability \
      totalSquaredCorruptionProbability corruptionMeasurements localId roundTripTime \
      totalRoundTripTime fractionLost roundTripTimeMeasurements packetsSent bytesSent \
      mediaSourceId rid encodingIndex headerBytesSent retransmittedPacketsSent \
      retransmittedBytesSent targetBitrate totalEncodedBytesTarget framesSent hugeFramesSent \
      framesEncoded keyFramesEncoded totalEncodeTime totalPacketSendDelay qualityLimitationReason \
      qualityLimitationDurations qualityLimitationResolutionChanges encoderImplementation \
      powerEfficientEncoder active scalabilityMode remoteTimestamp reportsSent echoReturnLoss \
      echoReturnLossEnhancement width height frames synthesizedSamplesDuration \
      synthesizedSamplesEvents totalPlayoutDelay totalSamplesCount dataChannelsOpened \
      dataChannelsClosed label protocol dataChannelIdentifier state messagesSent \
      messagesReceived iceRole iceLocalUsernameFragment dtlsState iceState \
      selectedCandidatePairId localCertificateId remoteCertificateId tlsVersion dtlsCipher \
      dtlsRole srtpCipher selectedCandidatePairChanges rtcpTransportStatsId address port \
      candidateType priority url relayProtocol foundation relatedAddress relatedPort \
      usernameFragment tcpType networkType
      """
    ),
    (148, "localCandidateId remoteCandidateId nominated lastPacketSentTimestamp"),
    (
      152,
      """
      currentRoundTripTime availableOutgoingBitrate availableIncomingBitrate requestsReceived \
      requestsSent responsesReceived responsesSent consentRequestsSent packetsDiscardedOnSend \
      bytesDiscardedOnSend
      """
    ),
    (163, "fingerprint fingerprintAlgorithm base64Certificate issuerCertificateId"),
    (
      167,
      """
      psnrMeasurements psnrSum packetsReceivedWithEct1 packetsReceivedWithCe \
      packetsReportedAsLost packetsReportedAsLostButRecovered packetsWithBleachedEct1Marking \
      packetsSentWithEct1 ccfbMessagesSent ccfbMessagesReceived
      """
    ),
  ]
}
