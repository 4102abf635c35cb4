import Tape
import Testing

@testable import Replay

/// Steps are read ahead of the thread that replays them.
@Suite struct StepSourceTests {
  private func source(_ count: Int, fault: TapeFault? = nil) -> StepSource {
    var given = 0
    return StepSource { () throws(TapeFault) in
      guard given < count else {
        if let fault { throw fault }
        return nil
      }
      given += 1
      return TapeChunk()
    }
  }

  @Test func nothingIsSkippedOrRepeated() throws {
    let source = source(3)
    var seen = 0
    source.onlooker = { _ in seen += 1 }
    #expect(try source.next() != nil)
    #expect(source.lookAhead())
    #expect(source.lookAhead())
    #expect(!source.lookAhead())
    #expect(seen == 3)
    #expect(try source.next() != nil)
    #expect(try source.next() != nil)
    #expect(try source.next() == nil)
    #expect(try source.next() == nil)
    #expect(seen == 3)
  }

  @Test func aFaultFollowsTheStepsBeforeIt() throws {
    let source = source(
      1, fault: .unreadable(TapeError(path: "a.take", place: "", reason: "it ends here")))
    #expect(source.lookAhead())
    #expect(!source.lookAhead())
    #expect(try source.next() != nil)
    #expect(throws: TapeFault.self) { try source.next() }
    #expect(throws: TapeFault.self) { try source.next() }
  }
}
