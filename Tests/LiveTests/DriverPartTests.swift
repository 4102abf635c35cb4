import Peer
import Testing
import Wire

@testable import Live

/// Tests each part of a driver separately.
struct DriverPartTests {
  private func failure(_ remote: UInt16, packets: Int = 1, bytes: Int = 100) -> SendFailure {
    let ip = IPAddress(ipv4: 0x7f00_0001)
    return SendFailure(
      local: SocketAddress(ip, port: 1000), remote: SocketAddress(ip, port: remote), code: 111,
      packets: packets, bytes: bytes)
  }

  private func words(_ queue: inout InputQueue) -> [String] {
    var words: [String] = []
    while let input = queue.popFirst() { words.append(input.word) }
    return words
  }

  // MARK: Queued inputs

  @Test func inputsLeaveInTheOrderOfArrival() {
    var queue = InputQueue()
    #expect(queue.isEmpty && queue.popFirst() == nil)
    queue.append(.answer(.socketFailed(id: 1, code: 5)))
    queue.append(.answer(.socketFailed(id: 2, code: 5)))
    #expect(queue.popFirst()?.word == "failed 1 5" && !queue.isEmpty)
    queue.append(.answer(.socketFailed(id: 3, code: 5)))
    #expect(words(&queue) == ["failed 2 5", "failed 3 5"] && queue.isEmpty)
    queue.append(.deadline)
    #expect(words(&queue) == ["deadline"])
  }

  @Test func aPathThatRefusesIsReportedOnceUntilThatWasHandled() {
    var queue = InputQueue()
    queue.append(failure(1))
    queue.append(failure(2))
    queue.append(failure(1, packets: 2, bytes: 50))
    guard case .sendFailed(let told)? = queue.popFirst() else {
      Issue.record("another input came first")
      return
    }
    #expect(told.remote.port == 1 && told.packets == 3 && told.bytes == 150)
    // After the report, another failure on the same path is reported again.
    queue.append(failure(1))
    #expect(
      words(&queue) == ["refused 127.0.0.1:2 111", "refused 127.0.0.1:1 111"])
  }

  // MARK: Calls

  @Test func aReplyReachesTheCallThatItNames() {
    var calls = PendingCalls()
    let heard = Collector<String>()
    let first = calls.begin { _ in heard.append("first") }
    let second = calls.begin { _ in heard.append("second") }
    #expect(first == 1 && second == 2)
    calls.complete(.failure(.ended), to: second)
    calls.complete(.failure(.ended), to: second)
    calls.complete(.failure(.ended), to: 7)
    #expect(heard.all.isEmpty && calls.completed.count == 1)
    for entry in calls.completed { entry.complete(entry.reply) }
    calls.forgetGiven()
    #expect(heard.all == ["second"] && calls.completed.isEmpty)
  }

  @Test func abandonedCallsAreThoseWithoutAReply() {
    var calls = PendingCalls()
    let heard = Collector<Int>()
    for number in 1...3 { _ = calls.begin { _ in heard.append(number) } }
    calls.complete(.failure(.ended), to: 2)
    for complete in calls.abandon() { complete(.failure(.ended)) }
    #expect(heard.all == [1, 3])
    #expect(calls.abandon().isEmpty && calls.begin { _ in } == 4)
  }

  // MARK: Bursts

  @Test func datagramsWaitForTheEndOfABurstButNotForLong() {
    var burst = DatagramBurst()
    #expect(!burst.isOpen && !burst.consumeDue(at: .zero + .seconds(9)))
    burst.begin(at: .zero)
    #expect(burst.isOpen && !burst.consumeDue(at: .zero + .microseconds(300)))
    #expect(burst.consumeDue(at: .zero + .microseconds(301)) == true)
    // The next interval starts at the time of the last send.
    #expect(!burst.consumeDue(at: .zero + .microseconds(601)) && burst.isOpen)
    burst.end()
    #expect(!burst.isOpen)
  }
}
