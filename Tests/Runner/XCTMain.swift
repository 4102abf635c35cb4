import Tape
import Testing
import XCTest

/// Runs the tests, as the runner that SwiftPM writes would.
///
/// SwiftPM finds XCTest's classes in an index of all sources, which takes its time to make. There
/// are none here; with a runner of its own, `make` builds with `--disable-index-store`. It is known
/// by the name of its file, above a test module that only such builds have: `swift test` by itself
/// would run XCTest's tests alone where it saw one.
@main enum Runner {
  static func main() async {
    SQLiteLibrary.countNoMemory()
    if CommandLine.arguments.contains("swift-testing") {
      await Testing.__swiftPMEntryPoint() as Never
    }
    XCTMain([])
  }
}
