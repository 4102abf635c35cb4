import Testing

struct RoomErrorTests {
  /// A documented error number that is never raised would be misleading.
  @Test func everyNumberThatHasAMeaningIsRaised() throws {
    let declaring = "RoomErrorCode.swift"
    let declaration = try #require(
      SourceTree.sources.first { $0.path.hasSuffix("/" + declaring) })
    let names = declaration.code.matches(of: /static let (\w+) = RoomErrorCode/).map {
      String($0.output.1)
    }
    #expect(names.count == 50)
    let others = SourceTree.sources.filter {
      $0.ending == "swift" && $0.path.contains("Room") && !$0.path.hasSuffix("/" + declaring)
    }
    // Signing in reports no error on success.
    for name in names where name != "none" {
      let isRaised = try others.contains {
        try Regex("\\.\(name)\\b").firstMatch(in: $0.code) != nil
      }
      #expect(isRaised, "nothing raises RoomErrorCode.\(name)")
    }
  }
}
