import Foundation
import ICE
import Peer
import Synchronization
import Testing
import Wire

@testable import Live

@Suite(.timeLimit(.minutes(10))) struct StateStreamTests {
  @Test func aStreamThatBeginsWhileAStateChangesStillSeesTheChange() async {
    for _ in 0..<2_000 {
      let observers = PeerObservers()
      let change = Task.detached {
        observers.observe(
          .state(StateTransition(machine: "ice-gathering", from: "new", to: "complete")), at: .zero)
      }
      let waiting = Task.detached {
        for await states in observers.stateStream() where states.iceGathering == .complete {
          return true
        }
        return false
      }
      await change.value
      #expect(await waiting.value)
      observers.finish()
    }
  }

  @Test func readersMayBeCancelledWhileTheyAreReported() async {
    let observers = PeerObservers()
    let isOver = Mutex(false)
    // Separate threads, so that a deadlock stops only this test, not the thread pool of all tests.
    let (ends, end) = AsyncStream<Void>.makeStream()
    Thread {
      while !isOver.withLock({ $0 }) {
        for (from, to) in [("new", "gathering"), ("gathering", "new")] {
          observers.observe(
            .state(StateTransition(machine: "ice-gathering", from: from, to: to)), at: .zero)
        }
      }
      end.yield()
    }.start()
    var ended = ends.makeAsyncIterator()
    for _ in 0..<500 {
      let (begins, begin) = AsyncStream<Void>.makeStream()
      let readers = (0..<4).map { _ in
        Task.detached {
          for await _ in observers.stateStream() { begin.yield() }
        }
      }
      var begun = begins.makeAsyncIterator()
      for _ in readers { await begun.next() }
      Thread {
        for reader in readers { reader.cancel() }
        end.yield()
      }.start()
      await ended.next()
      for reader in readers { await reader.value }
      if Task.isCancelled { break }
    }
    isOver.withLock { $0 = true }
    await ended.next()
    // A reader that subscribes after all others is served as usual.
    let waiting = Task.detached {
      for await states in observers.stateStream() where states.iceGathering == .complete {
        return true
      }
      return false
    }
    observers.observe(
      .state(StateTransition(machine: "ice-gathering", from: "new", to: "complete")), at: .zero)
    #expect(await waiting.value)
    observers.finish()
  }

  @Test func readersThatLeftAreForgotten() async {
    var readers = Readers<Int>()
    for _ in 0..<100 {
      let (stream, continuation) = AsyncStream.makeStream(of: Int.self)
      readers.add(continuation)
      let reader = Task { for await _ in stream {} }
      reader.cancel()
      await reader.value
    }
    #expect(readers.count == 1)
    readers.yield(1)
    #expect(readers.count == 0)
  }

  @Test func aReaderOfMessagesMayBeCancelledAtAnyMoment() async {
    for round in 0..<20_000 {
      let inbox = MessageInbox()
      let isReading = Mutex(false)
      let reader = Task.detached {
        isReading.withLock { $0 = true }
        return await inbox.next()
      }
      // The cancellation comes at a different moment in each round.
      while !isReading.withLock({ $0 }) { await Task.yield() }
      for _ in 0..<(round % 200) { _ = reader.isCancelled }
      reader.cancel()
      #expect(await reader.value == nil)
    }
  }
}
