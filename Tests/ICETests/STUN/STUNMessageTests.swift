import Testing
import Wire

@testable import ICE

struct STUNMessageTests {
  @Test(arguments: RecordedMessage.all)
  func messagesFromOtherStacksAreRead(_ recorded: RecordedMessage) throws {
    let message = try STUNMessage(recorded.bytes)
    #expect(message.method == .binding)
    #expect(message.hasValidFingerprint == true)
    #expect(message.verifiesIntegrity(key: Array(recorded.password.utf8)))
    #expect(message.notUnderstood.isEmpty)
    switch recorded.expectation {
    case .request(let username, let priority, let nominates, let isControlling):
      #expect(message.messageClass == .request)
      #expect(message.username == username)
      #expect(message.priority == priority)
      #expect(message.usesCandidate == nominates)
      #expect((message.iceControlling != nil) == isControlling)
      #expect((message.iceControlled != nil) == !isControlling)
    case .response(let mapped):
      #expect(message.messageClass == .success)
      #expect(message.mappedAddress?.description == mapped)
    }
  }

  @Test(arguments: RecordedMessage.all)
  func integrityCoversEveryByteBeforeIt(_ recorded: RecordedMessage) throws {
    let end = recorded.bytes.count - 8
    let key = Array(recorded.password.utf8)
    for index in 0..<end {
      var changed = recorded.bytes
      changed[index] ^= 1
      guard let message = try? STUNMessage(changed) else { continue }
      #expect(!message.verifiesIntegrity(key: key) || !message.hasIntegrity, "byte \(index)")
    }
    let message = try STUNMessage(recorded.bytes)
    #expect(!message.verifiesIntegrity(key: key + [0x20]))
    #expect(!message.verifiesIntegrity(key: []))
  }

  /// The vectors of RFC 5769 section 2, with nonzero padding.
  @Test func publishedVectorsAreRead() throws {
    let key = Array("VOkJxbRl1RmTxUk/WvJxBt".utf8)
    let request = try STUNMessage(
      hexBytes(
        """
        000100582112a442b7e7a701bc34d686fa87dfae802200105354554e207465737420636c69656e74
        002400046e0001ff80290008932ff9b151263b36000600096576746a3a68367659202020
        000800149aeaa70cbfd8cb56781ef2b5b2d3f249c1b571a280280004e57a3bcf
        """))
    #expect(request.verifiesIntegrity(key: key))
    #expect(request.hasValidFingerprint == true)
    #expect(request.software == "STUN test client")
    #expect(request.username == "evtj:h6vY")
    #expect(request.priority == 0x6e00_01ff)
    #expect(request.iceControlled == 0x932f_f9b1_5126_3b36)

    let four = try STUNMessage(
      hexBytes(
        """
        0101003c2112a442b7e7a701bc34d686fa87dfae8022000b7465737420766563746f7220
        002000080001a147e112a643000800142b91f599fd9e90c38c7489f92af9ba53f06be7d7
        80280004c07d4c96
        """))
    #expect(four.verifiesIntegrity(key: key))
    #expect(four.hasValidFingerprint == true)
    #expect(four.mappedAddress?.description == "192.0.2.1:32853")

    let six = try STUNMessage(
      hexBytes(
        """
        010100482112a442b7e7a701bc34d686fa87dfae8022000b7465737420766563746f7220
        002000140002a1470113a9faa5d3f179bc25f4b5bed2b9d900080014a382954e4be67bf1
        1784c97c8292c275bfe3ed4180280004c8fb0b4c
        """))
    #expect(six.verifiesIntegrity(key: key))
    #expect(six.hasValidFingerprint == true)
    #expect(six.mappedAddress?.description == "[2001:db8:1234:5678:11:2233:4455:6677]:32853")
  }

  @Test func framesOfOtherKindsAreRefused() {
    let good = RecordedMessage.all[0].bytes
    func refusal(_ change: (inout [UInt8]) -> Void) -> STUNError? {
      var bytes = good
      change(&bytes)
      do {
        _ = try STUNMessage(bytes)
        return nil
      } catch {
        return error
      }
    }
    #expect(refusal { _ in } == nil)
    #expect(refusal { $0.removeLast() } == .wrongLength)
    #expect(refusal { $0 = Array($0.prefix(19)) } == .wrongLength)
    #expect(refusal { $0 = [] } == .wrongLength)
    #expect(refusal { $0 += [0, 0, 0, 0] } == .wrongLength)
    #expect(refusal { $0[3] -= 4 } == .wrongLength)
    #expect(refusal { $0[0] = 0x80 } == .notSTUN)
    #expect(refusal { $0[4] = 0 } == .notSTUN)
    #expect(refusal { $0[22] = 0xff } == .attributeOverrun)
  }

  @Test func attributesAfterIntegrityDoNotCount() throws {
    let transaction = STUNTransactionID(high: 1, low: 2)
    var writer = STUNWriter(.request, transactionID: transaction)
    writer.username("a:b")
    var bytes = writer.finish(key: [1, 2, 3], fingerprint: false)
    // An attacker on the path can append attributes, but gains nothing by it.
    bytes += [0x00, 0x25, 0x00, 0x00]
    bytes[3] += 4
    let message = try STUNMessage(bytes)
    #expect(message.verifiesIntegrity(key: [1, 2, 3]))
    #expect(!message.usesCandidate)
    #expect(message.attributes.map(\.type) == [.username, .messageIntegrity, .useCandidate])
  }

  @Test func unknownAttributesAreKeptAndListed() throws {
    var writer = STUNWriter(.request, transactionID: STUNTransactionID(high: 0, low: 0))
    writer.attribute(STUNAttributeType(rawValue: 0x7777), [1, 2, 3])
    writer.attribute(STUNAttributeType(rawValue: 0xc057), [4])
    writer.attribute(STUNAttributeType(rawValue: 0x7777), [])
    let message = try STUNMessage(writer.finish())
    #expect(message.notUnderstood.map(\.rawValue) == [0x7777])
    #expect(message.attributes.map(\.type.rawValue) == [0x7777, 0xc057, 0x7777, 0x8028])
    let first = try #require(message.attribute(STUNAttributeType(rawValue: 0x7777)))
    #expect([UInt8](message.value(first)) == [1, 2, 3])
  }

  @Test func classesAndMethodsRoundTrip() throws {
    // Methods from 0x100 on cannot be told apart from other protocols on the same port (RFC 7983
    // section 7).
    for method in 0..<UInt16(0x100) {
      for bits in 0..<UInt8(4) {
        let bytes = STUNWriter(
          STUNClass(rawValue: bits), method: STUNMethod(rawValue: method),
          transactionID: STUNTransactionID(high: 7, low: 9)
        ).finish(fingerprint: false)
        let message = try STUNMessage(bytes)
        #expect(message.method.rawValue == method && message.messageClass.rawValue == bits)
      }
    }
  }

  @Test func everyAttributeRoundTrips() throws {
    let transaction = STUNTransactionID(high: 0x0123_4567, low: 0x89ab_cdef_0011_2233)
    let six = try #require(SocketAddress("[2001:db8::1]:4711"))
    let four = try #require(SocketAddress("198.51.100.7:443"))
    var writer = STUNWriter(.error, transactionID: transaction)
    writer.errorCode(STUNErrorCode(code: 420, reason: "Unknown Attribute"))
    writer.unknownAttributes([STUNAttributeType(rawValue: 0x1234), .realm])
    writer.xorMappedAddress(six)
    writer.mappedAddress(four)
    writer.software("retake")
    writer.priority(99)
    writer.iceControlling(5)
    writer.iceControlled(6)
    writer.useCandidate()
    let message = try STUNMessage(writer.finish(key: Array("secret".utf8)))
    #expect(message.transactionID == transaction)
    #expect(message.errorCode == .unknownAttribute)
    #expect(message.unknownAttributes.map(\.rawValue) == [0x1234, 0x0014])
    #expect(message.mappedAddress == six)
    #expect(message.software == "retake")
    #expect(message.priority == 99)
    #expect(message.iceControlling == 5)
    #expect(message.iceControlled == 6)
    #expect(message.usesCandidate)
    #expect(message.verifiesIntegrity(key: Array("secret".utf8)))

    var plain = STUNWriter(.success, transactionID: transaction)
    plain.mappedAddress(four)
    #expect(try STUNMessage(plain.finish()).mappedAddress == four)
  }

  @Test func aMessageNeverExceedsADatagram() throws {
    var writer = STUNWriter(.request, transactionID: STUNTransactionID(high: 0, low: 0))
    writer.username(String(repeating: "x", count: 100_000))
    writer.software("kept")
    let message = try STUNMessage(writer.finish(key: [1]))
    #expect(message.username == nil)
    #expect(message.software == "kept")
  }

  @Test func mutatedMessagesAreReadOrRefused() {
    let entropy = Entropy(seed: [7]).stream("mutate")
    var read = 0
    for round in 0..<40_000 {
      var bytes = RecordedMessage.all[round % RecordedMessage.all.count].bytes
      for _ in 0...entropy.integer(below: 4) {
        let place = Int(entropy.integer(below: UInt64(bytes.count)))
        switch entropy.integer(below: 4) {
        case 0: bytes[place] = entropy.byte()
        case 1: bytes[place] ^= 1 << (entropy.byte() & 7)
        case 2 where bytes.count > 1: bytes.removeLast()
        default: bytes.insert(entropy.byte(), at: place)
        }
      }
      // Most frames would be rejected for their length alone, so every other frame gets a valid
      // length.
      if round % 2 == 0, bytes.count >= 20 {
        bytes.removeLast(bytes.count % 4)
        bytes[2] = UInt8((bytes.count - 20) >> 8)
        bytes[3] = UInt8(truncatingIfNeeded: bytes.count - 20)
      }
      guard let message = try? STUNMessage(bytes) else { continue }
      read += 1
      _ = message.username
      _ = message.mappedAddress
      _ = message.errorCode
      _ = message.unknownAttributes
      _ = message.notUnderstood
      _ = message.hasValidFingerprint
      _ = message.priority
      for attribute in message.attributes { #expect(attribute.range.upperBound <= bytes.count) }
      if round % 16 == 0 { _ = message.verifiesIntegrity(key: [1]) }
    }
    #expect(read > 5_000)
  }
}
