import Foundation
import RetakeTesting
import XCTest

/// The same test with XCTest, for packages that have not moved to Swift Testing.
final class CapturedCallXCTests: XCTestCase {
  func testTheCallWithAiortcReplays() async throws {
    let captures = URL(fileURLWithPath: #filePath).pathComponents.dropLast(5)
    let path = NSString.path(withComponents: Array(captures)) + "/Captures/aiortc-peer-offers.take"
    try await expectReplay(path)
    do {
      try await expectReplay(path + ".none")
      XCTFail("a take that is not there replayed")
    } catch let failure as ReplayFailure {
      XCTAssertEqual(failure.kind, "unreadable")
    }
  }
}
