import Foundation
import Live
import Testing
import Wire

struct LocalInterfaceTests {
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

  @Test func aSessionThatLosesItsNetworkDoesNotTurnToLoopback() throws {
    let network = try LocalInterfaceTests.interfaces([
      ("lo", 1, "127.0.0.1"), ("eth0", 2, "192.0.2.1"), ("eth0", 2, "fe80::1"),
    ])
    let none = network.filter { $0.address.isLoopback || $0.address.isLinkLocal }
    let all = BindPolicy.automatic.addresses(among: network)
    #expect(BindPolicy.automatic.present(among: none, after: all).isEmpty)
    #expect(BindPolicy.automatic.present(among: network, after: []) == all)
    // A connection that started on loopback stays there.
    let loopback = BindPolicy.automatic.addresses(among: none)
    #expect(BindPolicy.automatic.present(among: none, after: loopback) == loopback)
  }

  @Test func namedAddressesAreUsedWhileTheyExist() throws {
    let named = try ["192.0.2.1", "127.0.0.9"].map { try #require(IPAddress($0)) }
    let policy = BindPolicy.addresses(named)
    let network = try LocalInterfaceTests.interfaces([("eth0", 2, "192.0.2.1")])
    #expect(policy.present(among: network, after: named) == named)
    #expect(policy.present(among: [], after: named).map(\.description) == ["127.0.0.9"])
  }

  @Test func theSystemHasALoopbackInterface() {
    #expect(LocalInterface.all().contains { $0.address == IPAddress(ipv4: 0x7f00_0001) })
  }

  /// Files as the kernel provides them for each kind of interface.
  @Test(arguments: [
    ("1", "", false, NetworkType.ethernet), ("1", "", true, .wifi),
    ("1", "DEVTYPE=wlan\nINTERFACE=x\n", false, .wifi), ("519", "DEVTYPE=wwan\n", false, .cellular),
    ("65534", "DEVTYPE=wireguard\n", false, .vpn), ("65534", "", false, .vpn),
    ("1", "DEVTYPE=bluetooth\n", false, .bluetooth), ("772", "", false, .unknown),
    ("", "", false, .unknown),
  ])
  func theKernelReportsTheTypeOfANetwork(
    type: String, events: String, hasRadio: Bool, kind: NetworkType
  ) throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
    let interface = folder.appending(path: "x0")
    try FileManager.default.createDirectory(at: interface, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    if !type.isEmpty { try Data((type + "\n").utf8).write(to: interface.appending(path: "type")) }
    try Data(events.utf8).write(to: interface.appending(path: "uevent"))
    if hasRadio {
      try FileManager.default.createDirectory(
        at: interface.appending(path: "wireless"), withIntermediateDirectories: true)
    }
    #expect(NetworkType(ofInterface: "x0", in: folder.path) == kind)
    #expect(NetworkType(ofInterface: "y0", in: folder.path) == .unknown)
  }
}
