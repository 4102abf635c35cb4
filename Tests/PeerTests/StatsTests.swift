import Flow
import JSEP
import Lab
import Media
import Peer
import Stats
import Testing
import Wire

struct StatsTests {
  private func report(
    _ call: VirtualCall, of peer: Int, _ selector: StatsSelector? = nil,
    times: [CodecTime]? = nil
  ) throws -> StatsReport {
    guard case .stats(let report) = call.call(peer, .getStats(of: selector, codecTimes: times))
    else {
      Issue.record("getStats returned no report")
      return StatsReport()
    }
    return report
  }

  private func objects(_ report: StatsReport, _ type: String, kind: String? = nil) -> [StatsObject]
  {
    report.objects.filter {
      $0.type == type && (kind == nil || $0["kind"] == kind.map { .text($0) })
    }
  }

  private func number(_ object: StatsObject?, _ name: String) throws -> Double {
    switch try #require(object?[name], "\(name) of \(object?.type ?? "nothing")") {
    case .integer(let value): return Double(value)
    case .number(let value): return value
    default:
      Issue.record("\(name) is not a number")
      return .nan
    }
  }

  /// The mandatory members of webrtc-pc section 8.6, by type and kind, as far as they apply in a
  /// call without data channels, servers and certificate issuers.
  private static let mandatory: [(type: String, kind: String?, members: String)] = [
    ("codec", nil, "payloadType mimeType clockRate"),
    (
      "inbound-rtp", "audio",
      "ssrc kind transportId codecId packetsReceived packetsLost jitter trackIdentifier remoteId "
        + "bytesReceived totalAudioEnergy totalSamplesDuration packetsDiscarded"
    ),
    (
      "inbound-rtp", "video",
      "ssrc kind transportId codecId packetsReceived packetsLost jitter trackIdentifier remoteId "
        + "framesDecoded framesDropped nackCount framesReceived bytesReceived packetsDiscarded"
    ),
    (
      "outbound-rtp", "video",
      "ssrc kind transportId codecId packetsSent bytesSent remoteId framesEncoded nackCount "
        + "framesSent mediaSourceId"
    ),
    ("outbound-rtp", "audio", "ssrc kind transportId codecId packetsSent bytesSent remoteId"),
    (
      "remote-inbound-rtp", nil,
      "ssrc kind transportId codecId packetsReceived packetsLost jitter localId roundTripTime"
    ),
    (
      "remote-outbound-rtp", nil,
      "ssrc kind transportId codecId packetsSent bytesSent localId remoteTimestamp roundTripTime"
    ),
    ("media-source", "audio", "trackIdentifier kind totalAudioEnergy totalSamplesDuration"),
    ("media-source", "video", "trackIdentifier kind width height framesPerSecond"),
    ("media-playout", nil, "kind totalSamplesDuration totalSamplesCount totalPlayoutDelay"),
    ("peer-connection", nil, "dataChannelsOpened dataChannelsClosed"),
    (
      "transport", nil,
      "bytesSent bytesReceived selectedCandidatePairId localCertificateId remoteCertificateId"
    ),
    (
      "candidate-pair", nil,
      "transportId localCandidateId remoteCandidateId state nominated bytesSent bytesReceived "
        + "totalRoundTripTime responsesReceived currentRoundTripTime"
    ),
    ("local-candidate", nil, "address port protocol candidateType usernameFragment"),
    ("remote-candidate", nil, "address port protocol candidateType usernameFragment"),
    ("certificate", nil, "fingerprint fingerprintAlgorithm base64Certificate"),
  ]

  @Test func everyMandatoryMemberIsReported() throws {
    let call = CallTests.call(seed: 21, seconds: 5)
    for peer in 0..<2 {
      let report = try report(call, of: peer)
      for (type, kind, members) in StatsTests.mandatory {
        let found = objects(report, type, kind: kind)
        #expect(!found.isEmpty, "\(type)")
        for object in found {
          for member in members.split(separator: " ").map(String.init) {
            #expect(object[member] != nil, "\(type) \(kind ?? "") \(member)")
          }
        }
      }
    }
  }

  @Test func everyReferenceResolvesAndIDsAreUnique() throws {
    let call = CallTests.call(seed: 22, seconds: 3)
    let report = try report(call, of: 1)
    let ids = report.objects.map(\.id)
    #expect(Set(ids).count == ids.count)
    for object in report.objects {
      for member in object.members where member.name.hasSuffix("Id") {
        guard case .text(let target) = member.value else { continue }
        #expect(ids.contains(target), "\(object.type).\(member.name)")
      }
    }
    let other = try self.report(CallTests.call(seed: 23, seconds: 3), of: 1)
    #expect(Set(other.objects.map(\.id)).isDisjoint(with: ids))
    #expect(try self.report(CallTests.call(seed: 22, seconds: 3), of: 1) == report)
  }

  @Test func aSelectorReturnsOneStreamAndItsReferences() throws {
    let call = CallTests.call(seed: 24, seconds: 3)
    let sender = try report(call, of: 0, .sender(transceiver: 2))
    #expect(objects(sender, "outbound-rtp").count == 1)
    #expect(objects(sender, "outbound-rtp", kind: "video").count == 1)
    for type in [
      "remote-inbound-rtp", "media-source", "codec", "transport", "candidate-pair",
      "local-candidate", "remote-candidate",
    ] {
      #expect(objects(sender, type).count == 1, "\(type)")
    }
    #expect(objects(sender, "certificate").count == 2)
    #expect(objects(sender, "inbound-rtp").isEmpty && objects(sender, "media-playout").isEmpty)

    let receiver = try report(call, of: 0, .receiver(transceiver: 1))
    #expect(objects(receiver, "inbound-rtp", kind: "audio").count == 1)
    #expect(objects(receiver, "inbound-rtp").count == 1)
    #expect(objects(receiver, "media-playout").count == 1)
    #expect(objects(receiver, "outbound-rtp").isEmpty)
    let error = call.call(0, .getStats(of: .sender(transceiver: 99))).error
    #expect(error?.name == "InvalidAccessError")

    let whole = try report(call, of: 0)
    #expect(Set(whole.local.statistics.values.map(\.type)).contains("media-source"))
    #expect(!Set(whole.local.statistics.values.map(\.type)).contains("inbound-rtp"))
    #expect(Set(whole.remote.statistics.values.map(\.type)).contains("remote-outbound-rtp"))
    #expect(whole.local.timeStamp * 1000 == whole.objects.map(\.timestamp).max())
  }

  @Test func bothEndsOfEveryStreamMeasureTheRoundTrip() throws {
    var link = LinkSettings()
    link.delay = .milliseconds(40)
    let call = CallTests.call(seed: 25, link: link, seconds: 6)
    for peer in 0..<2 {
      let report = try report(call, of: peer)
      for type in ["remote-inbound-rtp", "remote-outbound-rtp"] {
        #expect(objects(report, type).count == 2)
        for object in objects(report, type) {
          let roundTrip = try number(object, "roundTripTime")
          #expect((0.079...0.083).contains(roundTrip), "\(type) \(roundTrip)")
          #expect(try number(object, "roundTripTimeMeasurements") >= 3)
        }
      }
      let pair = objects(report, "candidate-pair").first
      #expect((0.079...0.083).contains(try number(pair, "currentRoundTripTime")))
    }
  }

  @Test func aReplacedSourceIsANewObjectThatStartsAtZero() throws {
    let call = CallTests.call(seed: 26, seconds: 3)
    let before = try #require(objects(try report(call, of: 0), "media-source", kind: "audio").first)
    call.call(0, .replaceSource(transceiver: 1, .tone(hertz: 300, pauseSeconds: 0)))
    call.run(for: .seconds(1))
    let after = try #require(objects(try report(call, of: 0), "media-source", kind: "audio").first)
    #expect(before.id != after.id)
    #expect(try number(before, "totalSamplesDuration") > 2.5)
    #expect(try number(after, "totalSamplesDuration") < 1.1)
    // After hold and resume, it is still the same source.
    call.call(0, .setDirection(transceiver: 1, .recvonly))
    call.negotiate()
    call.run(for: .seconds(1))
    call.call(0, .setDirection(transceiver: 1, .sendrecv))
    call.negotiate()
    call.run(for: .seconds(1))
    let later = try #require(objects(try report(call, of: 0), "media-source", kind: "audio").first)
    #expect(later.id == after.id)
    #expect(try number(later, "totalSamplesDuration") > 1.8)
    call.call(0, .replaceSource(transceiver: 1, nil))
    #expect(objects(try report(call, of: 0), "media-source", kind: "audio").isEmpty)
  }

  @Test func theLevelsOfAToneAgreeAtBothEnds() throws {
    let call = CallTests.call(seed: 27, seconds: 4)
    let source = try #require(objects(try report(call, of: 0), "media-source", kind: "audio").first)
    let inbound = try #require(objects(try report(call, of: 1), "inbound-rtp", kind: "audio").first)
    let sent = try number(source, "audioLevel")
    // A tone at a quarter of full scale has an RMS of 0.177.
    #expect((0.15...0.2).contains(sent), "\(sent)")
    #expect(abs(try number(inbound, "audioLevel") / sent - 1) < 0.12)
    let energy = try number(source, "totalAudioEnergy")
    let duration = try number(source, "totalSamplesDuration")
    #expect(abs((energy / duration).squareRoot() / sent - 1) < 0.02)
  }

  @Test func pairsCountTheirOwnTraffic() throws {
    let call = CallTests.call(seed: 28, seconds: 3)
    call.call(0, .restartICE)
    #expect(call.negotiate() == nil)
    call.run(for: .seconds(3))
    let report = try report(call, of: 0)
    let transport = try #require(objects(report, "transport").first)
    let pairs = objects(report, "candidate-pair")
    let selected = try #require(
      pairs.first { $0.id == transport["selectedCandidatePairId"].flatMap(\.text) })
    for name in ["packetsSent", "bytesSent"] {
      let sum = try pairs.map { try number($0, name) }.reduce(0, +)
      let total = try number(transport, name)
      #expect(sum <= total && sum > 0)
      // The pair before the restart carried part of the traffic, whether it still exists or not.
      #expect(try number(selected, name) < total)
    }
    #expect(selected["lastPacketSentTimestamp"] != nil)
    #expect(try number(transport, "selectedCandidatePairChanges") == 2)
  }

  @Test func codecTimesComeFromTheCall() throws {
    let call = CallTests.call(seed: 29, seconds: 3)
    let times = [
      CodecTime(transceiver: 2, isInbound: false, nanoseconds: 250_000_000),
      CodecTime(transceiver: 2, isInbound: true, nanoseconds: 125_000_000),
      CodecTime(transceiver: 1, isInbound: true, nanoseconds: 4_000_000_000),
    ]
    let timed = try report(call, of: 0, times: times)
    let sent = objects(timed, "outbound-rtp", kind: "video").first
    let received = objects(timed, "inbound-rtp", kind: "video").first
    #expect(try number(sent, "totalEncodeTime") == 0.25)
    #expect(try number(received, "totalDecodeTime") == 0.125)
    #expect(try number(received, "totalProcessingDelay") > 0.125)
    let inbound = try #require(objects(timed, "inbound-rtp", kind: "audio").first)
    #expect(
      try number(inbound, "totalProcessingDelay") == 4 + number(inbound, "jitterBufferDelay"))
    let untimed = try report(call, of: 0)
    #expect(objects(untimed, "inbound-rtp", kind: "audio").first?["totalProcessingDelay"] == nil)
    #expect(objects(untimed, "outbound-rtp", kind: "video").first?["totalEncodeTime"] == nil)
    #expect(objects(untimed, "inbound-rtp", kind: "video").first?["totalProcessingDelay"] == nil)
  }

  @Test func anEncoderWithTooFewBitsIsLimitedByBandwidth() throws {
    var configuration = PeerConfiguration()
    configuration.videoBitrateStart = 50_000
    configuration.videoBitrateMaximum = 50_000
    let call = VirtualCall(seed: 30, configurations: [configuration, configuration])
    call.call(
      0,
      .addTrack(
        kind: .video, streamIDs: ["s"],
        source: .pattern(width: 640, height: 480, framesPerSecond: 30)))
    call.negotiate()
    call.run(for: .seconds(5))
    let stream = objects(try report(call, of: 0), "outbound-rtp").first
    #expect(stream?["qualityLimitationReason"] == .text("bandwidth"))
    guard case .record(let durations)? = stream?["qualityLimitationDurations"] else {
      Issue.record("there are no durations")
      return
    }
    #expect(durations.map(\.name) == ["none", "cpu", "bandwidth", "other"])
    let lengths = durations.compactMap { member in
      if case .number(let value) = member.value { value } else { nil }
    }
    #expect(lengths[2] > 2 && lengths[1] == 0)
    #expect((4.5...5).contains(lengths.reduce(0, +)))

    let free = objects(try report(CallTests.call(seed: 31, seconds: 4), of: 0), "outbound-rtp")
    for stream in free where stream["kind"] == .text("video") {
      #expect(stream["qualityLimitationReason"] == .text("none"))
    }
  }

  @Test func codecsAreThoseInUseWithTheReceiversParameters() throws {
    let call = CallTests.call(seed: 32, seconds: 2)
    let codecs = objects(try report(call, of: 0), "codec")
    #expect(codecs.compactMap { $0["mimeType"]?.text }.sorted() == ["audio/opus", "video/VP8"])
    #expect(
      codecs.first { $0["mimeType"] == .text("audio/opus") }?["sdpFmtpLine"]
        == .text("minptime=10;useinbandfec=1"))
    // Before anything is negotiated, no codec is in use.
    #expect(objects(try report(VirtualCall(seed: 33), of: 0), "codec").isEmpty)
  }
}

extension StatsValue {
  var text: String? { if case .text(let text) = self { text } else { nil } }
}
