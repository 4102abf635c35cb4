import Foundation
import Testing

@testable import Queries
@testable import Tape

struct NetworkDumpTests {
  @Test func dump() throws {
    let folder = try TakeFolder()
    for scene in NetworkScene.allCases {
      let path = try scene.record(in: folder)
      say(scene.rawValue, path)
    }
  }

  @Test func captures() throws {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .deletingLastPathComponent().deletingLastPathComponent().appendingPathComponent("Captures")
    for folder in [root, root.appendingPathComponent("formats")] {
      for file in try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
      where file.hasSuffix(".take") {
        say(file, folder.appendingPathComponent(file).path)
      }
    }
  }

  private func say(_ name: String, _ path: String) {
    do {
      let clock = ContinuousClock()
      let begin = clock.now
      let found = try TakeFindings(path: path)
      print("== \(name) \(clock.now - begin)")
      for finding in found.findings { write(finding, found, 1) }
    } catch { print("== \(name) FAILED \(error)") }
  }

  private func write(_ finding: Finding, _ found: TakeFindings, _ depth: Int) {
    let one = finding.detections[0]
    print(
      String(repeating: "   ", count: depth)
        + "\(finding.severity) \(finding.id) \(one.fromNanoseconds / 1_000_000)-\(one.toNanoseconds / 1_000_000) x\(finding.detections.count) \(found.sentence(of: finding))")
    for symptom in finding.symptoms { write(symptom, found, depth + 1) }
  }
}
