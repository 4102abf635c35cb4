import Foundation
import Synchronization
import Testing

@testable import Replay

struct BoundedQueueTests {
  @Test func elementsAreInOrderAndTheEndFollows() {
    let queue = BoundedQueue<Int>(depth: 3)
    for number in 1...3 { #expect(queue.put(number)) }
    queue.finish()
    #expect((1...3).map { _ in queue.dequeue() } == [1, 2, 3])
    #expect(queue.dequeue() == nil)
    #expect(queue.dequeue() == nil, "the end stays the end")
  }

  @Test func noMoreWaitThanTheDepth() {
    let queue = BoundedQueue<Int>(depth: 4)
    let given = Mutex(0)
    let thread = Thread {
      for number in 0..<1_000 {
        guard queue.waitForRoom() else { return }
        given.withLock { $0 += 1 }
        queue.add(number)
      }
      queue.finish()
    }
    thread.start()
    var taken = 0
    while let number = queue.dequeue() {
      #expect(number == taken)
      taken += 1
      // Besides the queued elements, the producer holds the one that it is making.
      let ahead = given.withLock { $0 } - taken
      if ahead > 5 { Issue.record("\(ahead) elements are ahead") }
    }
    #expect(taken == 1_000)
  }

  @Test func aWaitingProducerIsInformedThatTheConsumerStopped() {
    let queue = BoundedQueue<Int>(depth: 1)
    #expect(queue.put(1))
    let isOver = DispatchSemaphore(value: 0)
    let isTaken = Mutex(true)
    let thread = Thread {
      let taken = queue.put(2)
      isTaken.withLock { $0 = taken }
      isOver.signal()
    }
    thread.start()
    queue.cancel()
    isOver.wait()
    #expect(!isTaken.withLock { $0 })
  }
}
