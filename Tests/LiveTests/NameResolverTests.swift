import Synchronization
import Testing
import Wire

@testable import Live

struct NameResolverTests {
  /// Answers from the local link do not free a slot for the system's look-ups.
  @Test func lookUpsStayWithinTheirLimitHoweverManyAnswersArrive() {
    let resolver = NameResolver()
    for _ in 0..<1000 { resolver.finished() }
    let isAsking = Atomic(true)
    let refused = Atomic(0)
    for _ in 0..<40 {
      resolver.resolve("127.0.0.1") { addresses in
        if addresses.isEmpty, isAsking.load(ordering: .relaxed) {
          refused.add(1, ordering: .relaxed)
        }
      }
    }
    isAsking.store(false, ordering: .relaxed)
    #expect(refused.load(ordering: .relaxed) == 24)
  }
}
