import RTP
import Testing
import Wire

@testable import Observer

/// Tests calls whose start was not captured, and packets outside any stream.
struct MidCallTests {
  private let there = FiveTuple(.udp, from: Messages.a, to: Messages.b)

  /// Two sources at each end take turns; all their packets belong to the call.
  @Test func alternatingSourcesAreOneCall() {
    var watch = PathWatch()
    for number in 0..<20 {
      for ssrc in 1...2 as ClosedRange<UInt32> {
        watch.show(Messages.rtp(number, ssrc: ssrc, type: 0), after: 5)
        watch.show(Messages.rtp(number, ssrc: ssrc + 8, type: 0), isBack: true, after: 5)
      }
    }
    let seen = watch.end()
    #expect(seen.calls.count == 1 && seen.streams.count == 4)
    #expect(seen.streams.allSatisfy { seen.statistics[$0.number]?.packets == 20 })
    #expect(seen.coverage.allSatisfy { $0.kind != .ignored })
  }

  /// The gate holds packets that may belong to a call, and releases them once the call is certain.
  @Test func theGateReleasesEarlierPackets() {
    var gate = CallGate()
    func admit(_ bytes: [UInt8]) -> Int {
      let verdict = gate.examine(
        there, bytes, isTruncated: false, at: .zero, isKnown: false, isRelay: false)
      switch verdict {
      case .admitted: return 1
      case .admittedWith(let packets): return packets.count
      case .waiting, .refused: return 0
      }
    }
    // Twenty sources take turns, and the third packet of the first source reveals the call.
    var admitted: [Int] = []
    for number in 0..<3 {
      for ssrc in 0..<20 { admitted.append(admit(Messages.rtp(number, ssrc: UInt32(ssrc)))) }
    }
    #expect(admitted.prefix(40).allSatisfy { $0 == 0 } && admitted[40] == 41)
    // A check reveals the call too, without further packets.
    gate = CallGate()
    let before = (0..<2).map { admit(Messages.rtp($0)) }
    let check = admit(Messages.check(1, from: "a", to: "b"))
    #expect(before == [0, 0] && check == 3)
  }

  /// Consent checks nominate nothing, but media in one or both directions shows that a pair with
  /// answered checks is connected.
  @Test(arguments: [true, false])
  func mediaOnACheckedPairIsAConnection(_ isBothWays: Bool) {
    var watch = PathWatch()
    for number in 0..<100 {
      watch.show(Messages.rtp(number))
      if isBothWays { watch.show(Messages.rtp(number, ssrc: 9), isBack: true, after: 0) }
      guard number == 50 else { continue }
      watch.show(Messages.check(7, from: "aaaa", to: "bbbb"), after: 1)
      watch.show(Messages.success(7, mapped: Messages.a), isBack: true, after: 1)
    }
    let seen = watch.end()
    let states = seen.states.filter { $0.machine == "ice-connection" }
    for end in 0..<2 {
      let last = states.last { $0.end == end && $0.to != "disconnected" && $0.to != "failed" }
      #expect(last?.to == "connected")
    }
    #expect(seen.count(rtp: true).all == (isBothWays ? 200 : 100))
  }

  /// Application messages that look like RTP are not streams; packets of a known payload type are,
  /// even single ones.
  @Test func singlePacketsOfOtherProtocolsAreNotStreams() {
    var watch = PathWatch()
    watch.call.connect(&watch.observer, watch.there)
    var other = SyntheticStream(seed: 5)
    for number in 0..<200 {
      watch.show(Messages.rtp(number), after: 10)
      var message = other.random(60)
      (message[0], message[1]) = (0x80, UInt8(number % 64))
      watch.show(message, after: 10)
    }
    let seen = watch.end()
    #expect(seen.streams.count == 1)
    #expect(seen.coverage.contains { $0.kind == .ignored })
    var quiet = PathWatch()
    quiet.call.connect(&quiet.observer, quiet.there)
    for number in 0..<50 { quiet.show(Messages.rtp(number)) }
    quiet.show(Messages.rtp(7, ssrc: 99))
    #expect(quiet.end().streams.count == 2)
  }

  // MARK: Unencrypted media

  private func description(_ lines: String..., address: String = "203.0.113.9", port: Int = 7000)
    -> String
  {
    (["v=0", "o=- 1 1 IN IP4 \(address)", "s=-", "c=IN IP4 \(address)", "t=0 0"]
      + ["m=audio \(port) RTP/AVP 97", "a=rtpmap:97 speex/16000"] + lines).joined(
        separator: "\r\n") + "\r\n"
  }

  /// A description with RTP/AVP is trusted, whatever addresses it has.
  @Test func aDescriptionCanDeclareMediaUnencrypted() {
    var watch = PathWatch()
    watch.call.watch.step(
      &watch.observer, .description(description()), at: .zero)
    var stream = SyntheticStream(type: 97)
    for _ in 0..<10 { watch.show(stream.sealed(320)) }
    let seen = watch.end()
    #expect(seen.count(rtp: true).clear == 10)
    #expect(seen.streams.first?.payloads.first?.codec == "speex")
    #expect(seen.streams.first?.clockRate == 16_000)
  }

  @Test func settingsCanDeclareMediaUnencrypted() {
    for isClear in [true, false] {
      var settings = ObserverSettings()
      settings.isClear = isClear
      settings.awaitsKeys = false
      var watch = PathWatch(settings)
      var stream = SyntheticStream(type: 97)
      for _ in 0..<20 { watch.show(stream.sealed(320)) }
      let seen = watch.end()
      #expect(seen.count(rtp: true).clear == (isClear ? 20 : 0))
      let hint = seen.coverage.first { $0.kind == .noKeys }?.detail
      #expect(hint == (isClear ? nil : Observer.clearHint))
    }
  }

  /// An unknown clock rate is reported, with the option that sets it.
  @Test func anUnknownClockRateIsReported() {
    var watch = PathWatch()
    var stream = SyntheticStream(type: 97)
    for number in 0..<40 { watch.show(stream.sealed(UInt32(100 + number * 13 % 37))) }
    let seen = watch.end()
    #expect(seen.statistics[1]?.packets == 40 && seen.statistics[1]?.lost == 0)
    let row = seen.coverage.first { $0.kind == .unknownClock }
    #expect(row?.count == 1 && row?.detail.contains("--map") == true)
  }

  @Test func descriptionsAreFoundInSIP() {
    let body = description()
    let invite = "INVITE sip:b@192.0.2.2 SIP/2.0\r\nContent-Type: application/sdp\r\n\r\n" + body
    #expect(SignalingText.descriptions(in: Array(invite.utf8)) == [body])
    let parts =
      "SIP/2.0 200 OK\r\nContent-Type: multipart/mixed;boundary=x\r\n\r\n--x\r\n"
      + "Content-Type: application/sdp\r\n\r\n" + body + "--x\r\nContent-Type: text/plain\r\n\r\n"
      + "hello\r\n--x--\r\n"
    #expect(SignalingText.descriptions(in: Array(parts.utf8)).first?.hasPrefix("v=0") == true)
    #expect(SignalingText.descriptions(in: Array("INVITES nobody\r\n\r\nv=0".utf8)).isEmpty)
  }

  /// RTSP interleaves media with its messages, and answers without a length have no body.
  @Test func descriptionsAreFoundInRTSP() {
    var reader = HTTPReader()
    let body = description(port: 0)
    reader.append(Array("RTSP/1.0 200 OK\r\nCSeq: 1\r\nPublic: DESCRIBE\r\n\r\n".utf8))
    reader.append([0x24, 0, 0, 3, 1, 2, 3])
    let answer =
      "RTSP/1.0 200 OK\r\nCSeq: 2\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
    #expect(HTTPReader.begins(Array("DESCRIBE rtsp://camera/ RTSP/1.0".utf8)))
    reader.append(Array(answer.utf8))
    let texts = reader.consumeTexts()
    #expect(texts == [Array(body.utf8)] && reader.problem == nil)
    #expect(DescriptionSearch.descriptions(in: texts.first ?? []) == [body])
  }

  /// A description also applies to earlier packets from its address.
  @Test func aDescriptionMayArriveAfterItsMedia() {
    var watch = PathWatch()
    var stream = SyntheticStream(type: 97)
    for _ in 0..<5 { watch.show(stream.sealed(320)) }
    let text = description(address: Messages.b.ip.description, port: Int(Messages.b.port))
    watch.call.watch.step(&watch.observer, .description(text, .wire), at: watch.call.now)
    for _ in 0..<5 { watch.show(stream.sealed(320)) }
    let seen = watch.end()
    #expect(seen.descriptions.count == 1)
    #expect(seen.count(rtp: true).clear == 10)
    #expect(seen.streams.first?.payloads.first?.codec == "speex")
  }

  @Test func anUnannouncedSourceIsReported() {
    var watch = PathWatch()
    let text = description(
      "a=ssrc:1 cname:a", address: Messages.a.ip.description, port: Int(Messages.a.port))
    watch.call.watch.step(&watch.observer, .description(text), at: .zero)
    for number in 0..<10 {
      watch.show(Messages.rtp(number, ssrc: 1))
      watch.show(Messages.rtp(number, ssrc: 2))
    }
    let row = watch.end().coverage.first { $0.kind == .unannounced }
    #expect(row?.count == 1 && row?.detail.contains("ssrc 2") == true)
  }
}
