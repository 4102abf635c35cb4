import JSEP
import Lab
import Media
import RTP
import SDP
import Stats
import Testing
import Wire

@testable import Peer

/// Calls with peers that only support G.711.
struct G711CallTests {
  private func configuration(_ codecs: [String]) -> PeerConfiguration {
    var configuration = PeerConfiguration()
    configuration.codecs = codecs
    return configuration
  }

  /// Makes a call between a new connection and a peer that accepts only some codecs.
  private func call(
    _ codecs: [String], seed: UInt64, link: LinkSettings = LinkSettings(), callerOffers: Bool = true
  ) -> VirtualCall {
    let configurations = [configuration(Codec.offeredNames), configuration(codecs)]
    let call = VirtualCall(
      seed: seed, links: [link, link],
      configurations: callerOffers ? configurations : configurations.reversed())
    call.addMedia(audio: .tone(hertz: 1_000, pauseSeconds: 0))
    #expect(call.negotiate() == nil)
    call.run(for: .seconds(3))
    return call
  }

  private func stats(_ call: VirtualCall, _ peer: Int, _ type: String) throws -> StatsObject {
    guard case .stats(let report) = call.call(peer, .getStats()) else {
      throw PeerError(name: "Error", message: "no stats")
    }
    return try #require(report.objects.first { $0.type == type })
  }

  @Test(arguments: [(["PCMU"], true), (["PCMA", "telephone-event"], false)])
  func aPeerWithOnlyG711SendsAndReceivesAudio(codecs: [String], callerOffers: Bool) throws {
    let call = call(codecs, seed: 501, callerOffers: callerOffers)
    let name = CodecName(rawValue: codecs[0])
    for peer in 0..<2 {
      let sent = call.frames(of: peer, kind: .audio, isInbound: false)
      #expect(sent.count > 100 && sent.allSatisfy { $0.codec == name && $0.bytes.count == 160 })
      // 20 ms are 160 ticks.
      #expect(zip(sent, sent.dropFirst()).allSatisfy { $1.rtpTime &- $0.rtpTime == 160 })
      let received = call.frames(of: peer, kind: .audio, isInbound: true)
      #expect(received.count > 100)
      #expect(received.allSatisfy { $0.codec == name && $0.outcome == "decoded" })
      // The generator's tone arrives with its original loudness.
      let (there, here) = (try #require(sent.last), try #require(received.last))
      #expect(here.energy > there.energy * 9 / 10 && here.energy < there.energy * 11 / 10)
    }
    let codec = try stats(call, 0, "codec")
    #expect(codec["mimeType"]?.text == "audio/" + codecs[0])
    #expect(codec["clockRate"]?.value == 8_000)
    let inbound = try stats(call, 0, "inbound-rtp")
    #expect(inbound["codecId"]?.text == codec.id || inbound["codecId"] != nil)
    #expect(inbound["concealedSamples"]?.value == 0)
    #expect(inbound["packetsDiscarded"]?.value == 0)
    #expect((inbound["totalSamplesDuration"]?.value ?? 0) > 2)
    #expect((inbound["jitter"]?.value ?? 1) < 0.002)
    #expect(try stats(call, 0, "outbound-rtp")["targetBitrate"]?.value == 64_000)
    let remote = try stats(call, 0, "remote-inbound-rtp")
    #expect((remote["jitter"]?.value ?? 1) < 0.002)
    // The reports describe the current playout.
    let playout = try #require(inbound["estimatedPlayoutTimestamp"]?.value)
    let sending = Double(labEpoch / 1_000_000) + 2_208_988_800_000
    #expect(playout > sending && playout < sending + 5_000)
  }

  /// libwebrtc answers with its application's choice but sends the offer's first codec; the offerer
  /// keeps receiving it (RFC 3264 section 7).
  @Test(arguments: [true, false])
  func anOfferedCodecMissingFromTheAnswerIsStillReceived(receivesAllOffered: Bool) throws {
    var offering = configuration(Codec.offeredNames)
    offering.receivesAllOffered = receivesAllOffered ? true : nil
    let call = VirtualCall(
      seed: 504, configurations: [offering, configuration(Codec.offeredNames)])
    call.addMedia(audio: .tone(hertz: 1_000, pauseSeconds: 0))
    var isAnswer = false
    let refusal = call.negotiate { text in
      defer { isAnswer = true }
      guard isAnswer else { return text }
      return text.split(separator: "\r\n", omittingEmptySubsequences: false).map { line in
        guard line.hasPrefix("m=audio") else { return String(line) }
        return line.split(separator: " ").prefix(3).joined(separator: " ") + " 0"
      }.joined(separator: "\r\n")
    }
    #expect(refusal == nil)
    call.run(for: .seconds(3))
    let sent = call.frames(of: 0, kind: .audio, isInbound: false)
    #expect(sent.count > 100 && sent.allSatisfy { $0.codec == .pcmu })
    let received = call.frames(of: 0, kind: .audio, isInbound: true)
    guard receivesAllOffered else {
      #expect(received.allSatisfy { $0.outcome != "decoded" })
      return
    }
    let inbound = try stats(call, 0, "inbound-rtp")
    #expect(received.count > 100 && received.allSatisfy { $0.codec == .opus && $0.energy > 0 })
    #expect(inbound["packetsDiscarded"]?.value == 0)
    let codec = try #require(inbound["codecId"]?.text)
    guard case .stats(let report) = call.call(0, .getStats()) else { return }
    #expect(report.objects.first { $0.id == codec }?["mimeType"]?.text == "audio/opus")
  }

  @Test func lossIsConcealed() throws {
    var lossy = LinkSettings()
    lossy.lossPerMille = 50
    let call = call(["PCMU"], seed: 502, link: lossy)
    #expect(call.network.lost > 0)
    let inbound = try stats(call, 1, "inbound-rtp")
    #expect((inbound["concealedSamples"]?.value ?? 0) > 0)
    let received = call.frames(of: 1, kind: .audio, isInbound: true)
    let concealments = received.filter { $0.outcome == "concealed" }
    #expect(!concealments.isEmpty && concealments.allSatisfy { $0.codec == .pcmu })
    #expect(concealments.contains { $0.energy > 0 })
  }

  /// The application's preferred codec is sent from the next exchange on.
  @Test func anotherCodecTakesOverInARunningCall() throws {
    let call = call(Codec.offeredNames, seed: 503)
    let audio = RTPCodec.capabilities(.audio)
    #expect(
      call.call(
        0, .setCodecPreferences(transceiver: 1, [audio[2], audio[0]])
      ).error == nil)
    #expect(call.negotiate() == nil)
    call.run(for: .seconds(2))
    for peer in 0..<2 {
      let received = call.frames(of: peer, kind: .audio, isInbound: true)
      let change = try #require(received.firstIndex { $0.codec == .pcma })
      #expect(change > 100 && received.count - change > 80)
      #expect(received[..<change].allSatisfy { $0.codec == .opus })
      #expect(received[change...].allSatisfy { $0.codec == .pcma && $0.energy > 0 })
    }
  }
}

/// Telephone keys, pressed in calls with either clock rate.
struct KeyTonesTests {
  private func call(_ codecs: [String], seed: UInt64) -> VirtualCall {
    var configuration = PeerConfiguration()
    configuration.codecs = codecs
    let call = VirtualCall(seed: seed, configurations: [configuration, configuration])
    call.addMedia(audio: .tone(hertz: 1_000, pauseSeconds: 0))
    #expect(call.negotiate() == nil)
    call.run(for: .seconds(1))
    return call
  }

  @Test(arguments: [("opus", Int64(1)), ("PCMA", 6)])
  func tonesArriveAsTelephoneEvents(codec: String, ticks: Int64) throws {
    let call = call([codec, "telephone-event"], seed: 511)
    #expect(
      call.call(
        0, .insertDTMF(transceiver: 1, tones: "5,d#", duration: 100, gap: 60)
      ).error == nil)
    call.run(for: .seconds(4))
    let events = call.frames(of: 1, kind: .audio, isInbound: true).filter {
      $0.codec == .telephoneEvent
    }
    #expect(events.allSatisfy { $0.bytes.count == 4 && $0.outcome == "not decoded" })
    // A tone of 100 ms has five event packets, and its last packet is repeated twice.
    try #require(events.count == 3 * 7)
    #expect(events.map { $0.bytes[0] } == [5, 15, 11].flatMap { Array(repeating: $0, count: 7) })
    for key in 0..<3 {
      let toneEvents = events[(7 * key)..<(7 * key + 7)]
      #expect(Set(toneEvents.map(\.rtpTime)).count == 1, "the RTP time is that of the tone's start")
      let lengths = toneEvents.map { Int64($0.bytes[2]) << 8 | Int64($0.bytes[3]) }
      #expect(lengths == [1, 2, 3, 4, 5, 5, 5].map { $0 * 960 / ticks })
      #expect(toneEvents.map { $0.bytes[1] } == [10, 10, 10, 10, 138, 138, 138])
    }
    // A comma waits for two seconds.
    let waited = events[7].rtpTime &- events[0].rtpTime
    #expect(Int64(waited) * ticks > 96_000 && Int64(waited) * ticks < 110_000)
    // Audio continues after each tone, and the gap without audio is not loss.
    let audio = call.frames(of: 1, kind: .audio, isInbound: true).filter {
      $0.codec != .telephoneEvent && $0.outcome == "decoded"
    }
    #expect(audio.count > 220)
    guard case .stats(let report) = call.call(1, .getStats()) else { return }
    let inbound = try #require(report.objects.first { $0.type == "inbound-rtp" })
    #expect(inbound["packetsLost"]?.value == 0 && inbound["packetsDiscarded"]?.value == 0)
    let id = try #require(inbound["codecId"]?.text)
    #expect(report[id: id]?["mimeType"]?.text == "audio/" + codec)
  }

  @Test func invalidTonesAreRefused() throws {
    let call = call(["opus", "telephone-event"], seed: 512)
    func error(_ tones: String) -> String? {
      call.call(
        0, .insertDTMF(transceiver: 1, tones: tones, duration: 100, gap: 70)
      ).error?.name
    }
    #expect(error("12x") == "InvalidCharacterError")
    #expect(error(String(repeating: "1", count: 257)) == "InvalidCharacterError")
    #expect(error("123456") == nil)
    // An empty string ends the current tones.
    call.run(for: .milliseconds(50))
    #expect(error("") == nil)
    call.run(for: .seconds(2))
    let events = call.frames(of: 1, kind: .audio, isInbound: true).filter {
      $0.codec == .telephoneEvent
    }
    #expect(events.allSatisfy { $0.bytes[0] == 1 } && events.count < 5)
    let without = self.call(["opus"], seed: 513)
    #expect(
      without.call(0, .insertDTMF(transceiver: 1, tones: "1", duration: 100, gap: 70)).error?.name
        == "InvalidStateError")
  }

  /// A key pressed for longer than a duration field can express is sent in parts.
  @Test func longTonesAreSentInSegments() throws {
    let call = call(["opus", "telephone-event"], seed: 514)
    call.call(0, .insertDTMF(transceiver: 1, tones: "9", duration: 6_000, gap: 70))
    call.run(for: .seconds(7))
    let events = call.frames(of: 1, kind: .audio, isInbound: true).filter {
      $0.codec == .telephoneEvent
    }
    #expect(events.count == 302 && Set(events.map(\.rtpTime)).count == 5)
    #expect(events.filter { $0.bytes[1] & 0x80 != 0 }.count == 3)
    let last = try #require(events.last)
    let length = UInt32(last.bytes[2]) << 8 | UInt32(last.bytes[3])
    #expect(last.rtpTime &- events[0].rtpTime &+ length == 288_000)
  }
}

extension StatsValue {
  /// An integer or a floating-point number; nil for other values.
  fileprivate var value: Double? {
    switch self {
    case .integer(let value): Double(value)
    case .number(let value): value
    default: nil
    }
  }
}
