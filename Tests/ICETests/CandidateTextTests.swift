import Testing
import Wire

@testable import ICE

struct CandidateTextTests {
  /// Candidates as browsers and other stacks print them; the second form, if different, is what
  /// Retake prints.
  @Test(arguments: [
    (
      "candidate:1028769688 1 udp 2122260223 127.0.0.1 40901 typ host generation 0 network-id 1"
        + " network-cost 50", nil
    ),
    ("candidate:0 1 UDP 2122187007 10.99.0.1 39506 typ host", "10.99.0.1"),
    ("a=candidate:1 2 UDP 2122252542 fd00::2 48141 typ host", "fd00::2"),
    ("candidate:2 1 TCP 2105458943 10.99.0.1 9 typ host tcptype active", "10.99.0.1"),
    ("candidate:16572de626da4e5384a0ce2d0d93678a 1 udp 2130706431 127.0.0.1 33508 typ host", nil),
    (
      "candidate:842163049 1 udp 1677729535 203.0.113.9 46154 typ srflx raddr 192.168.0.10"
        + " rport 46154 generation 0 ufrag EsAw", nil
    ),
    ("candidate:3 1 udp 8331263 203.0.113.1 50000 typ relay raddr :: rport 0 generation 0", nil),
    (
      "candidate:1 1 udp 2113937151 5ab1c2d3-1111-2222-3333-444455556666.local 50000 typ host",
      nil
    ),
  ])
  func candidatesFromOtherStacksRoundTrip(text: String, changed: String?) throws {
    let candidate = try ICECandidate(attribute: text)
    if let changed {
      #expect(candidate.host.description == changed)
      #expect(candidate.transport == candidate.transport.lowercased())
    } else {
      #expect(candidate.attribute == text)
    }
    #expect(try ICECandidate(attribute: candidate.attribute) == candidate)
    #expect(try ICECandidate(attribute: "a=" + candidate.attribute + "\r\n") == candidate)
  }

  @Test func partsAreReadInAnyOrder() throws {
    let candidate = try ICECandidate(
      attribute:
        "candidate:f 1 udp 5 192.0.2.1 6 generation 0 rport 7 typ srflx x y raddr 10.0.0.1")
    #expect(candidate.kind == .serverReflexive)
    #expect(candidate.related == SocketAddress("10.0.0.1:7"))
    #expect(candidate.extensions.map(\.name) == ["generation", "x"])
    #expect(candidate.value(ofExtension: "x") == "y")
    #expect(candidate.value(ofExtension: "z") == nil)
  }

  @Test(arguments: [
    "", "candidate:", "a=", "candidate:1 1 udp 5 192.0.2.1 6", "1 1 udp 5 192.0.2.1 6 typ host",
    "candidate:1 0 udp 5 192.0.2.1 6 typ host", "candidate:1 x udp 5 192.0.2.1 6 typ host",
    "candidate:1 1 udp -5 192.0.2.1 6 typ host", "candidate:1 1 udp +5 192.0.2.1 6 typ host",
    "candidate:1 1 udp 4294967296 192.0.2.1 6 typ host",
    "candidate:1 1 udp 5 192.0.2.256 6 typ host", "candidate:1 1 udp 5 fe80::1%eth0 6 typ host",
    "candidate:1 1 udp 5 a/b 6 typ host", "candidate:1 1 udp 5 192.0.2.1 65536 typ host",
    "candidate:1 1 udp 5 192.0.2.1 6 typ martian", "candidate:1 1 udp 5 192.0.2.1 6 x host",
    "candidate:\u{e9} 1 udp 5 192.0.2.1 6 typ host",
  ])
  func nonsenseIsRefusedWithAReason(text: String) {
    #expect(throws: ICECandidateError.self) { try ICECandidate(attribute: text) }
  }

  @Test func endlessTextsAreRefused() {
    let text =
      "candidate:1 1 udp 5 192.0.2.1 6 typ host" + String(repeating: " a b", count: 1_000)
    #expect(throws: ICECandidateError.self) { try ICECandidate(attribute: text) }
  }

  @Test func mutatedTextsAreReadOrRefused() throws {
    let entropy = Entropy(seed: [9]).stream("mutate")
    let good = Array(
      ("candidate:842163049 1 udp 1677729535 2001:db8::9 46154 typ srflx raddr 192.168.0.10"
        + " rport 46154 generation 0 ufrag EsAw").utf8)
    var read = 0
    for _ in 0..<20_000 {
      var bytes = good
      for _ in 0...entropy.integer(below: 3) {
        let place = Int(entropy.integer(below: UInt64(bytes.count)))
        switch entropy.integer(below: 4) {
        case 0: bytes[place] = entropy.byte()
        case 1: bytes.remove(at: place)
        case 2: bytes.insert(0x20, at: place)
        default: bytes.swapAt(place, Int(entropy.integer(below: UInt64(bytes.count))))
        }
      }
      let text = String(decoding: bytes, as: UTF8.self)
      guard let candidate = try? ICECandidate(attribute: text) else { continue }
      read += 1
      #expect(try ICECandidate(attribute: candidate.attribute) == candidate)
    }
    #expect(read > 1_000)
  }
}
