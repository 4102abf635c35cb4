import Testing
import XCTest

/// Runs the tests, as the runner that SwiftPM writes would.
///
/// That one needs an index of all sources, which takes its time to make, to find XCTest's classes.
/// There are none here; with a runner of its own, `make` builds with `--disable-index-store`.
@main enum Runner {
  static func main() async {
    if CommandLine.arguments.contains("swift-testing") {
      await Testing.__swiftPMEntryPoint() as Never
    }
    XCTMain([])
  }
}
