import Tape
import Testing
import XCTest

/// Runs the tests in place of SwiftPM's generated runner.
///
/// To find XCTest classes, SwiftPM needs an index of all sources, which is slow to build. The
/// package has none; with its own runner, `make` builds with `--disable-index-store`. SwiftPM
/// recognizes the runner by its file name; it is in a folder above a test module that only such
/// builds include, because plain `swift test` would otherwise run only XCTest's tests.
@main enum Runner {
  static func main() async {
    SQLiteLibrary.countNoMemory()
    if CommandLine.arguments.contains("swift-testing") {
      await Testing.__swiftPMEntryPoint() as Never
    }
    XCTMain([])
  }
}
