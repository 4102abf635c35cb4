import Foundation
import Testing

@testable import CallRecording
@testable import RetakeCommand

/// Tests a recorder's list of the takes that it made.
struct RecordingReportTests {
  @Test func ofManyTakesTheLastAreListedAndTheRestCounted() throws {
    var report = RecordingReport()
    let count = 2 * RecordingReport.takesMaximum + 500
    for number in 0..<count {
      report.add(
        RecordingReport.Take(path: "\(number).take", steps: 1, packets: 2, bytes: 3, peers: []),
        media: "")
    }
    #expect(report.takes.count + report.earlierTakes == count)
    #expect(report.takes.count < 2 * RecordingReport.takesMaximum)
    #expect(report.takes.last?.path == "\(count - 1).take")
    #expect(report.lines.first == "\(report.earlierTakes) takes before these")
    let json = try JSONSerialization.jsonObject(with: JSONEncoder().encode(report))
    #expect((json as? [String: Any])?["earlierTakes"] as? Int == report.earlierTakes)
  }
}
