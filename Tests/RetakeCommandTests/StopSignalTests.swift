import Foundation
import Testing

@testable import RetakeCommand

/// Tests Ctrl-C during recordings, in this process.
struct StopSignalTests {
  /// A signal before its handler is installed would end the test process.
  @Test func aStopIsNoticedFromTheFirstMomentOn() async {
    let stop = StopSignal([SIGUSR2])
    kill(getpid(), SIGUSR2)
    await stop.wait(seconds: nil) {
      let (never, continuation) = AsyncStream<Never>.makeStream()
      for await _ in never {}
      continuation.finish()
    }
  }
}
