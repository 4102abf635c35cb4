import Observer
import RTP
import Testing
import Wire

/// Tests what an observer reports about real calls.
struct ObservedCallTests {
  static let names = [
    "aiortc-offers-chromium", "chromium-aiortc", "chromium-firefox-cr-offers", "firefox-loop",
  ]

  @Test(arguments: names)
  func aCallIsObservedFromTheFirstCheckToTheLastPacket(name: String) throws {
    let seen = try Watch.whole(name)
    #expect(seen.calls.map(\.how) == [.wire])
    #expect(seen.calls.count == 1)
    let (rtp, control) = (seen.count(rtp: true), seen.count(rtp: false))
    #expect(rtp.clear == rtp.all)
    #expect(control.clear == control.all)
    #expect(rtp.all > 200 && control.all > 5)
    #expect(seen.packets.contains { $0.kind == .sctp })
    for end in 0..<2 {
      let ice = seen.states.filter { $0.end == end && $0.machine == "ice-connection" }.map(\.to)
      #expect(ice.starts(with: ["checking", "connected"]), "\(name) \(end) \(ice)")
      let dtls = seen.states.filter { $0.end == end && $0.machine == "dtls" }.map(\.to)
      #expect(dtls.starts(with: ["connecting", "connected"]), "\(name) \(end) \(dtls)")
    }
    let roles = Set(seen.states.filter { $0.machine == "ice-role" }.map(\.to))
    #expect(roles == ["controlling", "controlled"])
    #expect(seen.pairs.last?.isSelected == true)
    #expect(seen.pairs.last?.roundTrips.allSatisfy { $0 != nil } == true)
    print(
      "\(name): rtp \(rtp), rtcp \(control), sctp",
      seen.packets.count { $0.kind == .sctp }, seen.coverage.map { "\($0.kind) \($0.count)" })
    for stream in seen.streams.sorted(by: { $0.number < $1.number }) {
      let numbers = seen.statistics[stream.number]
      print(
        "  end \(stream.from) ssrc \(stream.ssrc)", stream.payloads.map(\.codec),
        stream.payloads.map(\.how.rawValue), stream.mid ?? "-", stream.canonicalName ?? "-",
        "packets \(numbers?.packets ?? 0) lost \(numbers?.lost ?? 0)")
    }
  }

  @Test(arguments: names)
  func lateKeysDecryptWaitingPackets(name: String) throws {
    let expected = try Watch.whole(name)
    var watch = Watch()
    var observer = Observer()
    try watch.show(&observer, capture: try Watch.sample("\(name).pcap"))
    #expect(watch.seen.packets.isEmpty)
    let waiting = observer.waitingPackets
    #expect(waiting > 200)
    let end = Instant(nanoseconds: .max / 4)
    watch.step(&observer, .keyLog(try Watch.sample("\(name).keys")), at: end)
    watch.end(&observer)
    #expect(watch.seen.keys.map(\.waitingPackets) == [waiting])
    #expect(watch.seen.count(rtp: true) == expected.count(rtp: true))
    #expect(watch.seen.count(rtp: false) == expected.count(rtp: false))
    #expect(observer.waitingPackets == 0)
  }

  @Test(arguments: names)
  func aCallWithoutKeysStillReportsItsStreams(name: String) throws {
    let expected = try Watch.whole(name)
    let seen = try Watch.whole(name, hasKeys: false, hasDescriptions: false)
    #expect(seen.count(rtp: true).clear == 0)
    #expect(seen.count(rtp: true).all == expected.count(rtp: true).all)
    #expect(seen.streams.count == expected.streams.count)
    for stream in expected.streams {
      let same = try #require(
        seen.streams.first { $0.ssrc == stream.ssrc && $0.from == stream.from })
      #expect(
        seen.statistics[same.number]?.packets == expected.statistics[stream.number]?.packets)
      #expect(seen.statistics[same.number]?.lost == expected.statistics[stream.number]?.lost)
    }
    #expect(seen.coverage.contains { $0.kind == .noKeys })
  }

  @Test(arguments: [("chromium-noenc-VP8", "vp8"), ("chromium-noenc-H264", "h264")])
  func codecsOfAnUnencryptedCallAreDeduced(name: String, codec: String) throws {
    let seen = try Watch.whole(name, hasKeys: false, hasDescriptions: false)
    #expect(seen.calls.count == 1)
    let rtp = seen.count(rtp: true)
    #expect(rtp.clear == rtp.all && rtp.all > 300)
    #expect(seen.streams.contains { $0.payloads.first?.codec == codec })
    #expect(seen.streams.contains { $0.payloads.first?.codec == "opus" })
    #expect(seen.streams.flatMap(\.payloads).allSatisfy { $0.how == .deduced })
  }

  @Test func streamsAreDeducedFromConsecutivePackets() throws {
    let seen = try Watch.whole(
      "chromium-rtpdump", ending: "pcapng", hasKeys: false, hasDescriptions: false)
    #expect(seen.calls.map(\.how) == [.deduced])
    #expect(seen.count(rtp: true).all == 290)
    #expect(seen.count(rtp: false).all == 46)
    #expect(seen.coverage.contains { $0.kind == .lateStart })
  }

  /// Header extensions' meanings, inferred from their contents, match the descriptions.
  @Test(arguments: ["chromium-aiortc", "aiortc-offers-chromium", "chromium-firefox-cr-offers"])
  func headerExtensionsAreDeducedFromTheirContents(name: String) throws {
    let stated = try #require(try Watch.whole(name).extensions.first)
    #expect(stated.how == .description)
    let seen = try Watch.whole(name, hasKeys: false, hasDescriptions: false)
    let deduced = try #require(seen.extensions.first)
    #expect(deduced.how == .deduced)
    for (left, right) in [
      (deduced.map.absoluteSendTime, stated.map.absoluteSendTime),
      (deduced.map.transportSequence, stated.map.transportSequence),
      (deduced.map.audioLevel, stated.map.audioLevel), (deduced.map.mid, stated.map.mid),
    ] where left != 0 {
      #expect(left == right)
    }
    #expect(deduced.map.absoluteSendTime != 0 || deduced.map.mid != 0)
  }

  @Test func theSamePacketsGiveTheSameResults() throws {
    let first = try Watch.whole("chromium-aiortc")
    let second = try Watch.whole("chromium-aiortc")
    #expect(first.states == second.states)
    #expect(first.pairs == second.pairs)
    #expect(first.streams == second.streams)
    #expect(first.coverage == second.coverage)
    #expect(first.packets.map(\.bytes) == second.packets.map(\.bytes))
  }

  @Test func payloadTypeMappingsOverrideEverything() throws {
    var settings = ObserverSettings()
    settings.payloadTypes = try #require(PayloadTypeMapping.list(parsing: "96=vp9,rtx=97"))
    let seen = try Watch.whole("chromium-aiortc", settings: settings)
    let mapped = seen.streams.flatMap(\.payloads).filter { $0.how == .given }
    #expect(Set(mapped.map(\.codec)).isSubset(of: ["vp9", "rtx"]) && !mapped.isEmpty)
    #expect(PayloadTypeMapping.list(parsing: "96=") == nil)
    #expect(PayloadTypeMapping.list(parsing: "200=vp8") == nil)
  }
}
