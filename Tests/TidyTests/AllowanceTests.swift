import Testing

struct AllowanceTests {
  private let findings = [
    Finding(path: "a", line: 1, what: "x"), Finding(path: "a", line: 2, what: "x"),
    Finding(path: "b", line: 3, what: "x"),
  ]

  @Test func violationsAreReportedInOrder() {
    #expect(findings.reversed().complaints().first == "a:2: x")
    #expect(findings.complaints() == ["a:1: x", "a:2: x", "b:3: x"])
  }

  @Test(arguments: [(1, 2), (2, 0), (3, 1)])
  func anAllowanceFitsExactly(allowed: Int, complaints: Int) {
    let allowances = [
      Allowance(path: "a", count: allowed, reason: "a test"),
      Allowance(path: "b", count: 1, reason: "a test"),
    ]
    #expect(findings.complaints(allowing: allowances).count == complaints)
  }

  @Test func anAllowanceForNothingIsReported() {
    let allowances = [Allowance(path: "c", count: 1, reason: "a test")]
    #expect([Finding]().complaints(allowing: allowances).count == 1)
  }
}
