import Foundation
import Testing

@testable import RetakeCommand

/// Ctrl-C of recordings, without a process of their own.
struct StopSignalTests {
  /// One that came before its handler did would end the process of the tests here.
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
