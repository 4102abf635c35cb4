import Foundation
import Lab
import Media
import Peer
import SCTP
import SDP
import Secure
import Stats
import Tape
import Testing
import Wire

@testable import Replay

/// Tests that an observer's reconstruction of a Retake call matches the endpoint.
struct WatchedCallTests {
  /// A received frame.
  fileprivate struct Heard: Equatable {
    var ssrc: UInt32
    var rtpTime: UInt32
    var outcome: String
    var isKey: Bool
    var digest: [UInt8]?
  }

  private static let seconds: Int64 = 4

  /// A call whose second end is observed at its own network interface.
  private final class Watched {
    var inputs: [(at: Instant, input: ObserverInput)] = []
    var heard: [MediaKind: [Heard]] = [:]
    var keyLog = ""
    var descriptions: [String] = []
    var stats = StatsReport()
    var end = Instant.zero

    init(seed: UInt64, link: LinkSettings = LinkSettings(), says: [String] = []) {
      let call = VirtualCall(seed: seed, links: [link, link]) { self.take($0) }
      call.addMedia(videoFrames: .pattern(width: 160, height: 120, framesPerSecond: 15))
      if !says.isEmpty {
        _ = call.call(0, .createDataChannel(DataChannelInit(label: "chat")))
      }
      _ = call.negotiate()
      if !says.isEmpty { call.run(for: .seconds(1)) }
      for text in says {
        call.send(0, DataMessage(channel: 0, isBinary: false, bytes: Array(text.utf8)))
      }
      call.run(for: .seconds(WatchedCallTests.seconds))
      if case .stats(let report) = call.call(1, .getStats()) { stats = report }
      end = call.now
    }

    private func take(_ step: StepRecord) {
      guard step.actor == 2 else { return }
      switch step.peerInput {
      case .datagram(let datagram, _)?:
        see(
          Datagram(local: datagram.remote, remote: datagram.local, bytes: datagram.bytes), step.at)
      case .signaling(let message)?: descriptions.append(message.message)
      default: break
      }
      for output in step.peerOutputs {
        switch output {
        case .datagram(let datagram): see(datagram, step.at)
        case .event(.keyLog(let log)):
          keyLog +=
            "CLIENT_RANDOM \(hex(log.secrets.clientRandom)) \(hex(log.secrets.masterSecret))\n"
        case .event(.frame(let frame)) where frame.isInbound:
          heard[frame.kind, default: []].append(Heard(frame))
        default: break
        }
      }
    }

    private func see(_ datagram: Datagram, _ at: Instant) {
      inputs.append((at, .datagram(datagram, isTruncated: false, arrival: at)))
    }

    private func hex(_ bytes: [UInt8]) -> String {
      bytes.map { String(format: "%02x", $0) }.joined()
    }
  }

  /// An observer that is fed a call and recorded on a tape.
  private final class Watcher {
    let machine = ObserverMachine()
    var heard: [UInt32: [MediaKind: [Heard]]] = [:]
    var samples: [UInt32: Int] = [:]
    var spoken: Set<UInt32> = []
    private var outbox = Outbox<ObserverOutput>()
    private let sink: (StepRecord) -> Void

    init(_ sink: @escaping (StepRecord) -> Void = { _ in }) { self.sink = sink }

    func show(_ call: Watched, decodes: Bool) {
      var genesis = ObserverGenesis.ofToday
      genesis.decodes = decodes
      genesis.startUnixNanoseconds = labEpoch
      step(.genesis(genesis), at: .zero)
      step(.call(.keyLog(call.keyLog)), at: .zero)
      for text in call.descriptions { step(.call(.description(text)), at: .zero) }
      for (at, input) in call.inputs {
        reach(at)
        step(input, at: at)
      }
      reach(call.end + Interval(nanoseconds: 1))
    }

    private func reach(_ at: Instant) {
      while let due = machine.deadline, due < at { step(.deadline, at: due) }
    }

    func step(_ input: ObserverInput, at now: Instant) {
      machine.step(input, at: now, into: &outbox)
      let outputs = outbox.drain()
      for output in outputs { note(output) }
      sink(
        StepRecord(
          actor: 1, at: now, input: input, outputs: OutputList(outputs),
          deadline: machine.deadline, entropyDrawn: 0))
    }

    private func note(_ output: ObserverOutput) {
      guard case .followed(let followed, _) = output.content, let peer = output.peers?.first else {
        return
      }
      switch followed {
      case .event(.frame(let frame)):
        heard[peer, default: [:]][frame.kind, default: []].append(Heard(frame))
      case .event(.speech): spoken.insert(peer)
      case .stats: samples[peer, default: 0] += 1
      case .event: break
      }
    }

    /// Returns the observed peer for the watched end.
    func end(of call: Watched) -> UInt32? {
      let ssrc = call.heard[.video]?.first?.ssrc
      return heard.first { $0.value[.video]?.first?.ssrc == ssrc }?.key
    }
  }

  @Test(arguments: [1, 2] as [UInt64])
  func anObserverDecodesWhatAnEndpointDecodes(seed: UInt64) throws {
    let call = Watched(seed: seed)
    let watcher = Watcher()
    watcher.show(call, decodes: true)
    let peer = try #require(watcher.end(of: call))
    for kind in [MediaKind.audio, .video] {
      let expected = try #require(call.heard[kind])
      let seen = try #require(watcher.heard[peer]?[kind])
      #expect(expected.count > 45)
      #expect(seen.count == expected.count, "\(kind)")
      let different = zip(expected, seen).enumerated().first { $1.0 != $1.1 }
      #expect(different == nil, "\(kind) \(String(describing: different))")
      #expect(seen.allSatisfy { $0.digest != nil })
    }
    #expect(watcher.spoken.count == 2)
    #expect(watcher.samples.values.allSatisfy { $0 >= Int(Self.seconds) - 1 })
  }

  /// The members of inbound-rtp and of remote reports that must be equal at the endpoint and at the
  /// observer.
  private static let members = [
    "ssrc", "kind", "mid", "packetsReceived", "packetsLost", "jitter", "bytesReceived",
    "headerBytesReceived", "retransmittedPacketsReceived", "nackCount", "pliCount", "firCount",
    "framesReceived", "framesDecoded", "keyFramesDecoded", "framesDropped", "frameWidth",
    "frameHeight", "framesPerSecond", "qpSum", "totalInterFrameDelay", "freezeCount",
    "jitterBufferDelay", "jitterBufferTargetDelay", "jitterBufferEmittedCount",
    "totalSamplesReceived", "concealedSamples", "concealmentEvents", "audioLevel",
    "totalAudioEnergy", "lastPacketReceivedTimestamp", "framesAssembledFromMultiplePackets",
    "totalAssemblyTime", "packetsDiscarded",
  ]

  private static let sentMembers = [
    "ssrc", "kind", "mid", "packetsSent", "bytesSent", "headerBytesSent", "framesSent",
    "nackCount", "pliCount", "firCount",
  ]

  private func members(_ report: StatsReport, _ type: String, _ names: [String])
    -> [[String: String]]
  {
    report.objects.filter { $0.type == type }.map { object in
      Dictionary(
        uniqueKeysWithValues: object.members.filter { names.contains($0.name) }.map {
          ($0.name, $0.value.json)
        })
    }.sorted { $0["ssrc"] ?? "" < $1["ssrc"] ?? "" }
  }

  @Test func theStatisticsAreThoseOfTheEndpoint() throws {
    let call = Watched(seed: 4)
    let watcher = Watcher()
    watcher.show(call, decodes: true)
    let peer = try #require(watcher.end(of: call))
    let seen = try #require(
      watcher.machine.stats(at: call.end).first { $0.peer == peer }
    ).report
    for (type, names) in [
      ("inbound-rtp", Self.members), ("outbound-rtp", Self.sentMembers),
      ("remote-outbound-rtp", ["ssrc", "packetsSent", "bytesSent", "reportsSent"]),
      ("remote-inbound-rtp", ["ssrc", "packetsLost", "jitter", "fractionLost"]),
    ] {
      let expected = members(call.stats, type, names)
      #expect(expected.count == 2, "\(type)")
      #expect(members(seen, type, names) == expected, "\(type)")
    }
    let trips = seen.objects.filter { $0.type == "remote-inbound-rtp" }.compactMap { object in
      object.members.first { $0.name == "roundTripTime" }?.value
    }
    #expect(trips.count == 2)
    for case .number(let seconds) in trips { #expect(abs(seconds - 0.02) < 0.005) }
  }

  /// For transports, certificates and the selected pair, the observer reports the endpoint's
  /// values.
  @Test func transportsAndPairsAreThoseOfTheEndpoint() throws {
    let call = Watched(seed: 4)
    let watcher = Watcher()
    watcher.show(call, decodes: false)
    let peer = try #require(watcher.end(of: call))
    let seen = try #require(
      watcher.machine.stats(at: call.end).first { $0.peer == peer }
    ).report
    for (type, names) in [
      (
        "transport",
        [
          "iceRole", "iceLocalUsernameFragment", "dtlsState", "tlsVersion", "dtlsCipher",
          "dtlsRole", "srtpCipher", "selectedCandidatePairChanges",
        ]
      ), ("certificate", ["fingerprint", "fingerprintAlgorithm"]),
    ] {
      let expected = members(call.stats, type, names)
      #expect(!expected.isEmpty)
      #expect(Set(members(seen, type, names)) == Set(expected), "\(type)")
    }
    let own = try #require(selectedPair(call.stats))
    let pair = try #require(selectedPair(seen))
    #expect(pair["state"] == own["state"] && pair["nominated"] == own["nominated"])
    // An endpoint counts the handshake packets too.
    for name in ["packetsSent", "packetsReceived"] {
      guard case .integer(let all)? = own[name], case .integer(let seen)? = pair[name] else {
        Issue.record("no \(name)")
        continue
      }
      #expect((1...8).contains(all - seen) && seen > 100, "\(name): \(seen) of \(all)")
    }
    for name in ["requestsSent", "requestsReceived"] {
      #expect(pair[name] == own[name], "\(name)")
    }
    // Every object that the pair refers to is in the report.
    let ids = Set(seen.objects.map(\.id))
    for name in ["localCandidateId", "remoteCandidateId", "transportId"] {
      guard case .text(let id)? = pair[name] else {
        Issue.record("no \(name)")
        continue
      }
      #expect(ids.contains(id))
    }
  }

  private func selectedPair(_ report: StatsReport) -> StatsObject? {
    guard
      case .text(let id)? = report.objects.first(where: { $0.type == "transport" })?[
        "selectedCandidatePairId"]
    else { return nil }
    return report[id: id]
  }

  @Test func withoutDecodersFramesArePutTogetherAndCounted() throws {
    let call = Watched(seed: 5)
    let watcher = Watcher()
    watcher.show(call, decodes: false)
    let peer = try #require(watcher.end(of: call))
    let videoFrames = try #require(watcher.heard[peer]?[.video])
    #expect(videoFrames.map(\.rtpTime) == call.heard[.video]?.map(\.rtpTime))
    #expect(videoFrames.map(\.isKey) == call.heard[.video]?.map(\.isKey))
    #expect(videoFrames.allSatisfy { $0.outcome == "not decoded" && $0.digest == nil })
    let seen = try #require(
      watcher.machine.stats(at: call.end).first { $0.peer == peer }
    ).report
    let names = [
      "packetsReceived", "jitter", "framesReceived", "frameWidth", "freezeCount", "ssrc",
    ]
    #expect(
      members(seen, "inbound-rtp", names) == members(call.stats, "inbound-rtp", names))
  }

  /// Observed data channels have the same rows as at endpoints, with the traffic in each direction;
  /// without keys, the take says that they could not be decrypted.
  @Test func dataChannelsAreObserved() throws {
    let call = Watched(seed: 5, says: ["hello", "there"])
    for hasKeys in [true, false] {
      if !hasKeys { call.keyLog = "" }
      let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      defer { try? FileManager.default.removeItem(at: folder) }
      let path = folder.appending(path: "watched.take").path
      let writer = try TapeWriter(path: path, options: TapeWriter.Options())
      _ = writer.addActor(.observer, label: "observer")
      let watcher = Watcher { writer.record($0) }
      watcher.show(call, decodes: false)
      watcher.step(.call(.end), at: call.end + .milliseconds(1))
      _ = try writer.finish()
      let take = try TakeFile.openForQueries(path)
      let said =
        "SELECT count(DISTINCT peer) FROM message WHERE direction = '%' AND bytes IN "
        + "(CAST('hello' AS BLOB), CAST('there' AS BLOB))"
      for direction in ["in", "out"] {
        let count = try take.integer(said.replacing("%", with: direction))
        #expect(count == (hasKeys ? 1 : 0), "\(direction)")
      }
      #expect(
        try take.integer("SELECT count(*) FROM message") == (hasKeys ? 4 : 0))
      #expect(
        try take.integer(
          "SELECT count(DISTINCT peer) FROM channel WHERE label = 'chat' AND state = 'open'")
          == (hasKeys ? 2 : 0))
      #expect(
        try take.integer("SELECT count(*) > 0 FROM coverage WHERE what = 'data-not-opened'")
          == (hasKeys ? 0 : 1))
      let samples = "SELECT count(*) > 0 FROM stat WHERE type = 'data-channel'"
      #expect(try take.integer(samples) == (hasKeys ? 1 : 0))
    }
  }

  /// With loss, reordering and duplicates, the observer's results are on the tape and replay.
  @Test(arguments: [false, true])
  func aWatchedCallOverABadPathReplays(decodes: Bool) throws {
    var link = LinkSettings()
    (link.jitter, link.lossPerMille, link.duplicatesPerMille) = (.milliseconds(30), 50, 10)
    let call = Watched(seed: 6, link: link)
    let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let path = folder.appending(path: "watched.take").path
    var options = TapeWriter.Options()
    options.waitsForDisk = true
    let writer = try TapeWriter(path: path, options: options)
    _ = writer.addActor(.observer, label: "observer")
    let watcher = Watcher { writer.record($0) }
    watcher.show(call, decodes: decodes)
    watcher.step(.call(.end), at: call.end + .milliseconds(1))
    _ = try writer.finish()
    let replayer = try Replayer(
      path: path, codecs: { LibraryCodecs() }, peer: { PeerMachine(codecs: $0) })
    let report = try replayer.run()
    guard case .identical = report.verdict else {
      Issue.record("\(report)")
      return
    }
    let take = try TakeFile.openForQueries(path)
    let videoFrames = "SELECT count(*) FROM frame WHERE kind = 'video'"
    #expect(try take.integer(videoFrames) ?? 0 > 35)
    let samples = "SELECT count(*) FROM stat WHERE type = 'inbound-rtp'"
    #expect(try take.integer(samples) ?? 0 > 5)
    let lost = "SELECT count(*) FROM stat WHERE members ->> '$.packetsLost' > 0"
    #expect(try take.integer(lost) ?? 0 > 0)
    let digests = "SELECT count(*) FROM frame WHERE digest IS NOT NULL"
    let decoded = try take.integer(digests) ?? 0
    #expect(decodes ? decoded > 70 : decoded == 0)
  }
}

extension WatchedCallTests.Heard {
  fileprivate init(_ frame: FrameRecord) {
    self.init(
      ssrc: frame.ssrc, rtpTime: frame.rtpTime, outcome: frame.outcome, isKey: frame.isKey,
      digest: frame.decoded.digest)
  }
}
