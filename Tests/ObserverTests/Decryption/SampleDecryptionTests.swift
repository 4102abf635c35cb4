import Observer
import SDP
import Secure
import Testing
import Wire

/// Decrypts browsers' calls with their key logs.
struct SampleDecryptionTests {
  static let names = [
    "aiortc-offers-chromium", "chromium-aiortc", "chromium-firefox-cr-offers", "firefox-loop",
  ]

  @Test(arguments: [
    ("aiortc-offers-chromium", UInt16(0xfefd), "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"),
    ("chromium-aiortc", 0xfefd, "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"),
    ("chromium-firefox-cr-offers", 0xfefc, "TLS_AES_128_GCM_SHA256"),
    ("firefox-loop", 0xfefc, "TLS_AES_128_GCM_SHA256"),
  ])
  func theHandshakeIsRead(name: String, version: UInt16, suite: String) throws {
    let call = try RecordedCall(name)
    let (follower, events) = call.followed(call.log)
    let facts = try #require(follower.facts)
    #expect(facts.version == version)
    #expect(facts.cipherSuite?.name == suite)
    #expect(facts.profileIsKnown)
    #expect(facts.fingerprints.allSatisfy { $0 != nil })
    #expect(events.contains(.connected))
    #expect(follower.sealedRecords == 0)
    #expect(follower.waitingRecords == 0)
    #expect(follower.openedRecords > 0)
  }

  @Test(arguments: names)
  func everyPacketIsDecrypted(name: String) throws {
    let call = try RecordedCall(name)
    let found = try #require(call.followed(call.log).events.srtpKeys)
    let suite = try #require(SRTPSuite(found.profile))
    let receivers = try found.keys.map { try SRTPReceiver(suite, key: $0) }
    var seen: [UInt32: Int] = [:]
    var opened: [UInt32: Int] = [:]
    var bytes = 0
    for datagram in call.datagrams where [.rtp, .rtcp].contains(datagram.kind) {
      let isRTCP = datagram.kind == .rtcp
      let ssrc = datagram.bytes.span.bytes.uint32(at: isRTCP ? 4 : 8)
      seen[ssrc, default: 0] += 1
      var packet = datagram.bytes
      do {
        try receivers[datagram.end].open(&packet, isRTCP: isRTCP)
        opened[ssrc, default: 0] += 1
        bytes += packet.count
      } catch {
        Issue.record("\(name): ssrc \(ssrc): \(error)")
      }
    }
    #expect(opened == seen)
    #expect(seen.count >= 3)
    print("\(name): \(seen.values.reduce(0, +)) packets of \(seen.count) sources, \(bytes) bytes")
  }

  @Test(arguments: names)
  func keysMayArriveAfterThePackets(name: String) throws {
    let call = try RecordedCall(name)
    var (follower, events) = call.followed(NSSKeyLog())
    #expect(events.srtpKeys == nil)
    #expect(follower.waitingRecords > 0)
    follower.retry(call.log, into: &events)
    #expect(events.srtpKeys?.keys == call.followed(call.log).events.srtpKeys?.keys)
    #expect(follower.waitingRecords == 0)
    #expect(follower.sealedRecords == 0)
  }

  @Test(arguments: names)
  func fingerprintsMatchTheDescriptions(name: String) throws {
    let call = try RecordedCall(name)
    let facts = try #require(call.followed(call.log).follower.facts)
    var stated: Set<CertificateFingerprint> = []
    for kind in ["offer", "answer"] {
      let document = try SDPDocument(parsing: try sampleText("\(name)-\(kind).sdp"))
      stated.formUnion(document.fingerprints)
      for section in document.sections { stated.formUnion(section.fingerprints) }
    }
    for fingerprint in facts.fingerprints {
      let fingerprint = try #require(fingerprint)
      // The browser loop's descriptions are from another run.
      if name != "firefox-loop" { #expect(stated.contains(fingerprint)) }
    }
  }

  @Test(arguments: names)
  func datagramsMayBeRepeatedAndReordered(name: String) throws {
    var call = try RecordedCall(name)
    let expected = call.followed(call.log).events.srtpKeys
    let handshake = call.datagrams.filter { $0.kind == .dtls }
    let (head, tail) = (handshake.prefix(1), handshake.dropFirst())
    var shuffled = Array(head)
    for pair in stride(from: 0, to: tail.count - 1, by: 2) {
      shuffled.append(handshake[2 + pair])
      shuffled.append(handshake[1 + pair])
      shuffled.append(handshake[1 + pair])
    }
    call.datagrams = shuffled
    #expect(call.followed(call.log).events.srtpKeys?.keys == expected?.keys)
  }

  @Test func dataOfAnEarlierAssociationRemainsCounted() throws {
    let call = try RecordedCall("firefox-loop")
    var (follower, events) = call.followed(NSSKeyLog())
    let unopened = follower.unopenedData
    #expect(unopened > 0)
    for datagram in call.datagrams where datagram.kind == .dtls {
      var bytes = datagram.bytes
      // A ClientHello with another random value starts another association.
      let isClientHello = bytes[0] == 22 && bytes[13] == 1 && bytes[19..<22] == [0, 0, 0]
      if isClientHello { bytes[27] ^= 1 }
      follower.receive(bytes, from: datagram.end, NSSKeyLog(), into: &events)
    }
    #expect(follower.unopenedData == 2 * unopened)
  }

  @Test func dataChannelsAreDecrypted() throws {
    let call = try RecordedCall("firefox-loop")
    let packets = call.followed(call.log).events.compactMap { event -> [UInt8]? in
      if case .data(_, let bytes) = event { bytes } else { nil }
    }
    #expect(packets.count > 10)
    // SCTP port 5000 at both ends (RFC 8841 section 5).
    #expect(packets.allSatisfy { $0.starts(with: [0x13, 0x88, 0x13, 0x88]) })
  }
}
