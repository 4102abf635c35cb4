import Glibc
import Testing
import Wire

@testable import SCTP

/// Tests received chunks, their acknowledgements and stream reset requests without an association.
struct ReceiverTests {
  private func receiver(first: UInt32 = 1, window: Int = 65536) -> Receiver {
    var peer = Initiation()
    peer.firstNumber = first
    peer.outgoingStreams = 10
    let limits = SCTPParameters(isClient: true, receiveWindow: window)
    var receiver = Receiver()
    receiver.establish(limits, peer, interleaves: false)
    return receiver
  }

  private func receive(_ chunk: Crafted.Chunk, _ receiver: inout Receiver) -> ReceiverOutcome {
    receiver.beginPacket()
    return receiver.receive(
      chunk.body.span.bytes, DataFlags(rawValue: chunk.flags), interleaved: false)
  }

  @Test func aReportListsGapsAndDuplicates() {
    var receiver = receiver(first: .max)
    for number in [.max, 1, 2, 5, 2] as [UInt32] {
      _ = receive(Crafted.data(number, stream: 0, [7]), &receiver)
    }
    #expect(receiver.acknowledgement == .due)
    let report = receiver.makeAcknowledgement(capacity: 1000)
    #expect(report.type == .selectiveAcknowledgement)
    // Of two messages of a stream with the same number, only the first is delivered.
    let window = UInt32(receiver.freeWindow)
    let expected =
      Crafted.words(long: .max, window) + Crafted.words(2, 1) + Crafted.words(2, 3, 6, 6)
      + Crafted.words(long: 2)
    #expect(report.body == expected)
    #expect(receiver.acknowledgement == .none && receiver.isConsistent)
    // The duplicate is reported once.
    let next = receiver.makeAcknowledgement(capacity: 1000)
    #expect(next.body.count == 12 + 8)
  }

  @Test func aReportIsLimitedToItsPacket() {
    var receiver = receiver()
    for index in 1...50 as ClosedRange<UInt32> {
      _ = receive(Crafted.data(1 + 2 * index, stream: 0, [7]), &receiver)
    }
    #expect(receiver.numbers.ranges.count == 50)
    let report = receiver.makeAcknowledgement(capacity: 60)
    #expect(report.body.count + 4 <= 60 && report.body[8...9] == [0, 10])
  }

  @Test func everySecondPacketIsReportedAndTheVeryFirstImmediately() {
    var receiver = receiver()
    var due: [Receiver.Acknowledgement] = []
    var delays: [Bool] = []
    for number in 1...4 as ClosedRange<UInt32> {
      _ = receive(Crafted.data(number, stream: 0, sequence: UInt16(number - 1), [7]), &receiver)
      delays.append(receiver.settle())
      due.append(receiver.acknowledgement)
      if receiver.acknowledgement == .due { _ = receiver.makeAcknowledgement(capacity: 1000) }
    }
    #expect(due == [.due, .delayed, .due, .delayed])
    #expect(delays == [false, true, false, true])
    receiver.endDelay()
    #expect(receiver.acknowledgement == .due)
  }

  @Test func forwardTSNDeliversCompleteMessagesOnAllStreams() {
    var receiver = receiver()
    // Each stream's first number is missing.
    for (number, stream) in [(2, 0), (4, 1)] as [(UInt32, UInt16)] {
      let outcome = receive(Crafted.data(number, stream: stream, sequence: 1, [7]), &receiver)
      guard case .nothing = outcome else {
        Issue.record("\(outcome)")
        return
      }
    }
    let body = Crafted.words(long: 4) + Crafted.words(0, 0, 1, 0)
    guard
      case .messages(let messages) = receiver.receiveForward(body.span.bytes, interleaved: false)
    else {
      Issue.record("no messages")
      return
    }
    #expect(messages.map(\.stream) == [0, 1] && receiver.numbers.acknowledged == 4)
    #expect(receiver.streams.heldBytes == 0 && receiver.isConsistent)
  }

  /// Abandoned messages on a stream that was not negotiated create no stream (RFC 9260 section
  /// 6.5).
  @Test func forwardTSNCreatesNoStreams() {
    var receiver = receiver()
    for round in 0..<100 as Range<UInt32> {
      var body = Crafted.words(long: 1 + round)
      for stream in 0..<200 as Range<UInt16> { body += Crafted.words(stream &* 331 &+ 7, 3) }
      _ = receiver.receiveForward(body.span.bytes, interleaved: false)
    }
    #expect(receiver.streams.streams.allSatisfy { $0.identifier < 10 })
    #expect(receiver.streams.streams.count <= 10 && receiver.numbers.acknowledged == 100)
  }

  private func unordered(_ number: UInt32, _ flags: UInt8, _ count: Int = 20) -> Crafted.Chunk {
    var chunk = Crafted.data(
      number, stream: 0, [UInt8](repeating: UInt8(number & 255), count: count))
    chunk.flags = 4 | flags
    return chunk
  }

  /// For each fragment, the receiver checks only the neighbouring fragments, not the complete
  /// message.
  @Test(arguments: [false, true])
  func theCostOfAnUnorderedFragmentIsConstant(_ isReversed: Bool) {
    var receiver = receiver(first: 0, window: 1 << 20)
    let count: UInt32 = 15_000
    // The first fragment arrives last, or the last one does.
    let numbers = isReversed ? Array((0..<count).reversed()) : Array(0..<count)
    let began = computedSeconds()
    var bytes: [UInt8] = []
    for number in numbers {
      let flags: UInt8 = number == 0 ? 2 : number == count - 1 ? 1 : 0
      if case .messages(let messages) = receive(unordered(number, flags), &receiver) {
        bytes = messages.flatMap(\.bytes)
      }
    }
    #expect(computedSeconds() - began < 2)
    #expect(bytes.count == Int(count) * 20)
    #expect(bytes.enumerated().allSatisfy { $0.element == UInt8($0.offset / 20 & 255) })
    #expect(receiver.streams.heldBytes == 0 && receiver.streams.heldFragments == 0)
  }

  /// Chunks arrive in random order, so fragments of several messages are interleaved.
  @Test(arguments: 0..<40 as Range<UInt8>)
  func unorderedMessagesAreReassembledInAnyOrder(_ seed: UInt8) {
    let random = Entropy(seed: [seed]).stream("order")
    var receiver = receiver(first: 0, window: 1 << 20)
    var chunks: [Crafted.Chunk] = []
    var expected: [[UInt8]] = []
    while chunks.count < 60 {
      let parts = 1 + Int(random.integer(below: 6))
      expected.append([])
      for part in 0..<parts {
        let flags: UInt8 = (part == 0 ? 2 : 0) | (part == parts - 1 ? 1 : 0)
        let number = UInt32(chunks.count)
        chunks.append(unordered(number, flags, 3))
        expected[expected.count - 1] += [UInt8](repeating: UInt8(number), count: 3)
      }
    }
    for index in chunks.indices.dropFirst().reversed() {
      chunks.swapAt(index, Int(random.integer(below: UInt64(index + 1))))
    }
    var received: [[UInt8]] = []
    for chunk in chunks {
      if case .messages(let messages) = receive(chunk, &receiver) {
        received += messages.map(\.bytes)
      }
      #expect(receiver.isConsistent)
    }
    #expect(Set(received) == Set(expected) && received.count == expected.count)
    #expect(receiver.streams.heldBytes == 0 && receiver.streams.heldFragments == 0)
  }

  /// Parts of abandoned messages are dropped, and later messages are still assembled.
  @Test func forwardTSNDropsPartsOfUnorderedMessages() {
    var receiver = receiver(first: 0)
    for number in [1, 2, 3, 5] as [UInt32] {
      _ = receive(unordered(number, number == 5 ? 2 : 0), &receiver)
    }
    _ = receiver.receiveForward(Crafted.words(long: 2).span.bytes, interleaved: false)
    #expect(receiver.streams.heldBytes == 40 && receiver.isConsistent)
    guard case .messages(let messages) = receive(unordered(6, 1), &receiver) else {
      Issue.record("the message is whole")
      return
    }
    #expect(messages.map(\.bytes.count) == [40])
    _ = receiver.receiveForward(Crafted.words(long: 9).span.bytes, interleaved: false)
    #expect(receiver.streams.heldFragments == 0 && receiver.streams.unorderedPlaces.isEmpty)
  }

  @Test func thePeerGetsMoreStreamsUpToTheMaximum() {
    var receiver = receiver()
    let answers = ([5, 65530, 65520] as [UInt16]).map { receiver.addStreams($0) }
    #expect(answers == [true, false, true] && receiver.streamCount == 65535)
  }

  // MARK: Resets

  private func request(_ number: UInt32, last: UInt32, _ streams: UInt16...) -> [UInt8] {
    Crafted.words(long: number, 0, last) + streams.flatMap { Crafted.words($0) }
  }

  private func answer(_ outcome: ResetOutcome) -> [UInt8]? {
    switch outcome {
    case .respond(let chunk), .perform(_, let chunk): chunk.body
    case .nothing, .useless, .addStreams, .askLater, .done: nil
    }
  }

  private func response(_ number: UInt32, _ result: UInt32) -> [UInt8] {
    Crafted.words(16, 12) + Crafted.words(long: number, result)
  }

  @Test func repeatedPeerRequestsGetTheSameAnswer() {
    var resets = StreamResets()
    resets.establish(firstNumber: .max)
    var numbers = ReceivedNumbers(first: 1)
    func ask(_ body: [UInt8]) -> [UInt8]? {
      answer(resets.receive(.outgoingResetRequest, body.span.bytes, numbers))
    }
    // The peer's data has not arrived yet; once it has, the final answer is sent without a further
    // request.
    #expect(ask(request(.max, last: 1, 4)) == response(.max, 6))
    #expect(ask(request(.max, last: 1, 4)) == response(.max, 6))
    #expect(ask(request(5, last: 1, 4)) == response(5, 5))
    _ = numbers.insert(numbers.extend(1))
    guard case .perform(let streams, let chunk) = resets.removeDeferred(numbers) else {
      Issue.record("nothing was deferred")
      return
    }
    #expect(streams == [4] && chunk.body == response(.max, 1))
    let again = resets.removeDeferred(numbers)
    #expect(again == nil)
    #expect(ask(request(.max, last: 1, 4)) == response(.max, 1))
    #expect(resets.expectedRequest == 0)
    #expect(ask(request(0, last: 1, 6)) == response(0, 1))
  }

  @Test func localRequestsAreNumberedAndSentOneByOne() {
    var resets = StreamResets()
    resets.start(firstNumber: .max)
    resets.establish(firstNumber: 9)
    resets.want(3)
    resets.refuse(12)
    #expect(resets.mayAsk)
    resets.forget(3)
    let isAsked = resets.ask(for: [7], most: 10, lastNumber: 40)
    #expect(isAsked && !resets.mayAsk && resets.isPending)
    let body = Crafted.words(long: .max, 8, 40) + Crafted.words(7, 12)
    #expect(resets.request?.body == Crafted.words(13, 20) + body)
    func answer(_ number: UInt32, _ result: UInt32) -> ResetOutcome {
      let body = Crafted.words(long: number, result)
      return resets.receive(
        .reconfigurationResponse, body.span.bytes, ReceivedNumbers(first: 0))
    }
    // The answer is "in progress", so the request is repeated with the next number, and answers
    // with the old number are ignored.
    guard case .askLater = answer(.max, 6), case .nothing = answer(.max, 1) else {
      Issue.record("the request is over")
      return
    }
    #expect(resets.request?.body[4..<8] == [0, 0, 0, 0])
    guard case .done(let streams) = answer(0, 1) else {
      Issue.record("the request is not over")
      return
    }
    #expect(streams == [7, 12] && !resets.isPending && resets.request == nil)
  }
}

/// Returns the thread's processor time in seconds, which a busy machine does not change.
private func computedSeconds() -> Double {
  var time = timespec()
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
  return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}
