import Testing
import Wire

@testable import Observer

/// Tests what an observer reports, and when.
struct ObserverReportTests {
  private func at(_ seconds: Int64) -> Instant { .zero + .seconds(seconds) }

  /// Removes the outputs and describes the coverage rows among them: kind, transport, count and
  /// detail.
  private func coverageReports(_ report: inout ObserverReport) -> [String] {
    var outbox = Outbox<Observer.Output>()
    report.exchange(&outbox)
    return outbox.drain().map { output in
      guard case .coverage(let row) = output else { return "another output" }
      return "\(row.kind.rawValue) \(row.transport ?? 0) \(row.count) \(row.detail)"
    }
  }

  // MARK: Reports

  @Test func outputsGoToTheExchangedOutbox() {
    var report = ObserverReport()
    var outbox = Outbox<Observer.Output>()
    report.exchange(&outbox)
    report.count(.truncated)
    report.exchange(&outbox)
    #expect(outbox.drain().count == 1)
    report.exchange(&outbox)
    #expect(outbox.drain().isEmpty)
  }

  @Test func coverageIsReportedWhenItBegins() {
    var report = ObserverReport()
    report.count(.noKeys, transport: 1, by: 3, detail: "of the first")
    report.count(.noKeys, transport: 1, by: 4, detail: "of the second")
    report.count(.noKeys, transport: 2)
    #expect(coverageReports(&report) == ["no-keys 1 3 of the first", "no-keys 2 1 "])
    #expect(report.count(of: .noKeys, transport: 1) == 7)
    #expect(report.count(of: .noKeys, transport: 3) == 0 && report.count(of: .noKeys) == 0)
  }

  @Test func increasedCountsAreReportedAgainAtTheEnd() {
    var report = ObserverReport()
    report.count(.truncated, by: 2)
    report.count(.lateStart, transport: 1)
    report.count(.truncated, by: 5)
    _ = coverageReports(&report)
    report.reportFinalCounts()
    #expect(coverageReports(&report) == ["truncated 0 7 "])
  }

  // MARK: Time

  @Test func waitingPacketsKeepTheirArrivalTimes() {
    var time = ObserverTime()
    time.move(to: at(100))
    time.moveBack(to: at(90))
    #expect(time.now == at(90))
    time.move(to: at(100))
    // Arrival times in the future, or too long ago, have no effect.
    time.moveBack(to: at(101))
    #expect(time.now == at(100))
    time.moveBack(to: at(1))
    #expect(time.now == at(40))
  }

  @Test func theEarliestDeadlineCounts() {
    var time = ObserverTime()
    #expect(time.deadline == nil)
    time.schedule(at(5))
    time.schedule(nil)
    time.schedule(at(7))
    #expect(time.deadline == at(5))
    time.schedule(at(3))
    #expect(time.deadline == at(3))
    time.forgetDeadline()
    #expect(time.deadline == nil)
  }
}
