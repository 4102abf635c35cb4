import Testing
import Wire

@testable import ICE

struct DNSMessageTests {
  private let name = "1f4712db-ea17-4bcf-a596-105139dfd8bf.local"

  @Test func messagesAreReadAsTheyWereWritten() throws {
    let four = IPAddress(ipv4: 0xc000_0201)
    let six = try #require(IPAddress("2001:db8::7"))
    let message = DNSMessage(
      id: 7, isResponse: true,
      questions: [.init(name: name, type: .a, wantsUnicast: true), .init(name: name, type: .any)],
      answers: [
        .init(name: name, value: .address(four), lifetime: 120),
        .init(name: name, value: .address(six), lifetime: 0, isUnique: false),
        .init(name: name, value: .types([.a, .aaaa]), lifetime: 120),
      ])
    #expect(DNSMessage(message.bytes) == message)
  }

  @Test func bytesMatchTheStandard() throws {
    let query = DNSMessage(questions: [.init(name: "ab.local", type: .a)])
    let expected: [UInt8] =
      [0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 2] + Array("ab".utf8) + [5] + Array("local".utf8)
      + [0, 0, 1, 0, 1]
    #expect(query.bytes == expected)
  }

  @Test func compressionPointersOnlyPointBackwards() throws {
    // An answer whose name points to the question's, and further names in a chain.
    var bytes = DNSMessage(
      isResponse: true, questions: [.init(name: "ab.local", type: .a)]
    ).bytes
    bytes[7] = 2
    bytes += [0xc0, 12, 0, 1, 0x80, 1, 0, 0, 0, 120, 0, 4, 192, 0, 2, 1]
    // "x" before the pointer to "local".
    bytes += [1, UInt8(ascii: "X"), 0xc0, 15, 0, 1, 0, 1, 0, 0, 0, 120, 0, 4, 192, 0, 2, 2]
    let message = try #require(DNSMessage(bytes))
    #expect(message.answers.map(\.name) == ["ab.local", "x.local"])
    // Parsing ends at a pointer that points to itself, and at two pointers that point to each
    // other.
    bytes[7] = 1
    let start = 26
    for target in [start, start + 2] {
      var loop = Array(bytes.prefix(start)) + [0xc0, UInt8(target), 0xc0, UInt8(start)]
      loop += [0, 1, 0, 1, 0, 0, 0, 1, 0, 0]
      #expect(DNSMessage(loop) == nil)
    }
  }

  @Test func anyBytesAreReadOrRefused() {
    let entropy = Entropy(seed: [9]).stream("mutate")
    let sample = DNSMessage(
      isResponse: true, questions: [.init(name: name, type: .aaaa)],
      answers: [
        .init(name: name, value: .address(IPAddress(ipv4: 1)), lifetime: 9),
        .init(name: name, value: .types([.a]), lifetime: 9),
      ]
    ).bytes
    var read = 0
    for _ in 0..<20_000 {
      var bytes = sample
      for _ in 0...entropy.integer(below: 4) {
        let place = Int(entropy.integer(below: UInt64(bytes.count)))
        switch entropy.integer(below: 4) {
        case 0: bytes[place] = 0xc0
        case 1: bytes.removeLast(min(bytes.count - 1, 7))
        default: bytes[place] = entropy.byte()
        }
      }
      if let message = DNSMessage(bytes) {
        read += 1
        _ = DNSMessage(message.bytes)
      }
    }
    #expect(read > 1000)
  }
}
