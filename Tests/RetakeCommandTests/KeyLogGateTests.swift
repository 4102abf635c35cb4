import Testing

@testable import Importing

/// Tests which lines of a key log are stored in a take.
@Suite struct KeyLogGateTests {
  private let one = String(repeating: "a1", count: 32)
  private let other = String(repeating: "b2", count: 32)

  @Test func linesWaitForTheirAssociation() {
    var gate = KeyLogGate()
    #expect(gate.receive("# a comment\nCLIENT_RANDOM \(one.uppercased()) 01\nnonsense\n") == nil)
    #expect(gate.open(other) == nil)
    #expect(gate.open(one) == "CLIENT_RANDOM \(one.uppercased()) 01\n")
    #expect(gate.open(one) == nil)
    #expect(
      gate.receive(
        "EXPORTER_SECRET \(one) 02\nCLIENT_RANDOM \(String(repeating: "c", count: 64)) 3\n")
        == "EXPORTER_SECRET \(one) 02\n")
    #expect(gate.receive("CLIENT_RANDOM \(other) 04\r\n") == "CLIENT_RANDOM \(other) 04\n")
  }
}
