import Tape
import Testing
import XCTest

/// Runs the tests in place of SwiftPM's generated runner.
///
/// To find XCTest classes, SwiftPM needs an index of all sources, which is slow to build. The
/// package has no XCTest classes, and with its own runner `make` can build with
/// `--disable-index-store`. SwiftPM recognizes the runner by its file name, in the folder above a
/// test module that only these builds include. If plain `swift test` included the module, it would
/// run only XCTest's tests.
@main enum Runner {
  static func main() async {
    SQLiteLibrary.countNoMemory()
    if CommandLine.arguments.contains("swift-testing") {
      await Testing.__swiftPMEntryPoint() as Never
    }
    XCTMain([])
  }
}
