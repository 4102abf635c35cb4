// swift-tools-version: 6.2
import PackageDescription

// An external package that keeps captured calls as regression tests.
let package = Package(
  name: "sample",
  dependencies: [.package(name: "retake", path: "../..")],
  targets: [
    .target(name: "Sample", dependencies: [.product(name: "Retake", package: "retake")]),
    .testTarget(
      name: "SampleTests",
      dependencies: ["Sample", .product(name: "RetakeTesting", package: "retake")]),
  ],
  swiftLanguageModes: [.v6]
)
