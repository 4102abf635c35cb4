import Live
import Testing
import Wire

@Suite struct LocalInterfaceTests {
  /// Builds interfaces from `name index address` words.
  static func interfaces(_ words: [(String, UInt32, String)]) throws -> [LocalInterface] {
    try words.map {
      LocalInterface(name: $0.0, index: $0.1, address: try #require(IPAddress($0.2)))
    }
  }

  struct Case: Sendable, CustomTestStringConvertible {
    var name: String
    var bind: [String] = []
    var interfaces: [(String, UInt32, String)]
    var gathered: [String]
    var testDescription: String { name }
  }

  static let cases = [
    Case(
      name: "all but loopback and link-local, IPv4 first on each interface",
      interfaces: [
        ("eth1", 3, "2001:db8::2"), ("lo", 1, "127.0.0.1"), ("eth0", 2, "fe80::1"),
        ("eth1", 3, "192.0.2.9"), ("eth0", 2, "198.51.100.4"), ("eth0", 2, "169.254.3.4"),
      ],
      gathered: ["198.51.100.4", "192.0.2.9", "2001:db8::2"]),
    Case(
      name: "loopback and link-local when there is nothing else",
      interfaces: [("lo", 1, "::1"), ("lo", 1, "127.0.0.1"), ("eth0", 2, "fe80::1")],
      gathered: ["127.0.0.1", "::1", "fe80::1"]),
    Case(
      name: "named addresses in their order, each once", bind: ["::1", "127.0.0.1", "::1"],
      interfaces: [("eth0", 2, "192.0.2.1")], gathered: ["::1", "127.0.0.1"]),
    Case(
      name: "an unspecified address means the automatic choice", bind: ["0.0.0.0"],
      interfaces: [("lo", 1, "127.0.0.1"), ("eth0", 2, "192.0.2.1")], gathered: ["192.0.2.1"]),
    Case(
      name: "the same address on two interfaces counts once",
      interfaces: [("a", 2, "192.0.2.1"), ("b", 3, "192.0.2.1")], gathered: ["192.0.2.1"]),
    Case(name: "no interfaces at all", interfaces: [], gathered: []),
  ]

  @Test(arguments: cases) func gathers(_ row: Case) throws {
    let named = try row.bind.map { try #require(IPAddress($0)) }
    let policy = named.isEmpty ? BindPolicy.automatic : .addresses(named)
    let interfaces = try LocalInterfaceTests.interfaces(row.interfaces)
    #expect(policy.addresses(among: interfaces).map(\.description) == row.gathered)
    // The order in which the system lists its interfaces does not matter.
    #expect(policy.addresses(among: interfaces.reversed()).map(\.description) == row.gathered)
  }

  @Test func theSystemHasALoopbackInterface() {
    #expect(LocalInterface.all().contains { $0.address == IPAddress(ipv4: 0x7f00_0001) })
  }
}
