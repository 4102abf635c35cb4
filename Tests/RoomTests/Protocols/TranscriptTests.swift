import Testing
import Wire

@testable import Room

struct TranscriptTests {
  /// Compares the bytes of every frame, and every connection request, event and deadline.
  @Test func recordedServersGiveTheSameOutputs() throws {
    for transcript in try Transcript.all.get() {
      var machine = transcript.machine
      var outbox = Outbox<SignalingOutput>()
      for (number, step) in transcript.steps.enumerated() {
        machine.step(step.input, at: Instant(nanoseconds: step.at), into: &outbox)
        let outputs = outbox.drain()
        guard outputs == step.outputs else {
          let first = zip(outputs, step.outputs).first { $0 != $1 }
          Issue.record(
            """
            \(transcript.testDescription), step \(number): \(outputs.count) outputs for \
            \(step.outputs.count), first: \(first.map { "\($0) for \($1)" } ?? "none")
            """)
          break
        }
        #expect(machine.deadline?.nanoseconds == step.deadline, "\(transcript), step \(number)")
      }
    }
  }

  /// After every step of a transcript, breaks the connection to the server for good, and then
  /// leaves the room.
  @Test func theTransportMayFailInEveryState() throws {
    for transcript in try Transcript.all.get() {
      var whole = SignalingBench(transcript.machine)
      for (number, step) in transcript.steps.enumerated() {
        whole.move(to: Instant(nanoseconds: step.at))
        whole.step(step.input)
        _ = whole.drain()
        var bench = whole
        bench.transport(.failed("broken"))
        for _ in 0..<2 {
          bench.wait(9)
          bench.transport(.failed("still broken"))
        }
        bench.want(.leave)
        bench.wait(10)
        let ends = bench.events().count { if case .ended = $0 { true } else { false } }
        let isOver = if case .intent(.leave) = step.input { true } else { false }
        #expect(ends == 1 || isOver, "\(transcript), after step \(number)")
        if isOver { break }
        #expect(bench.machine.deadline == nil)
      }
    }
  }
}
