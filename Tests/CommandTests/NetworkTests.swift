import Foundation
import Testing

extension LiveConnectionTests {
  /// Calls over separate networks whose links can be added and removed (network namespaces, which
  /// need root).
  @Suite(.enabled(if: Networks.arePossible)) struct NetworkTests {
    /// Runs a server and a caller in a network, and checks that both takes replay and have decoded
    /// frames.
    ///
    /// `links` prepares the network; `server` and `call` are further options of the two commands;
    /// `meanwhile` is a command that runs during the call.
    private func call(
      in folder: Folder, links: String, server: String, call: String, meanwhile: String = ":"
    ) async throws {
      let script = """
        set -e; PATH=$PATH:/usr/sbin; cd \(folder.path)
        pause() { read -t $1 nothing <>pipe || true; }
        ip link set lo up; \(links)
        $RETAKE record serve --listen 127.0.0.1:0 --once --out serve.take \(server) 2>serve.err &
        serve=$!; trap 'kill $serve 2>/dev/null || true' EXIT
        n=0
        until grep -q /offer serve.err; do n=$((n+1)); test $n -lt 200; pause 0.05; done
        url=$(tr ' ' '\\n' <serve.err | grep '/offer$' | head -1)
        (\(meanwhile)) &
        $RETAKE record call $url --out call.take \(call)
        wait $serve
        """
      let outcome = try await Tool.shell(
        "mkfifo \(folder.path)/pipe; unshare -n /bin/bash -c '\(script.quoted)'")
      #expect(outcome.status == 0, "\(outcome.output) \(outcome.errors)")
      for name in ["serve.take", "call.take"] {
        let replayed = try await Tool.run("replay", folder.file(name))
        #expect(replayed.status == 0, "\(replayed.output) \(replayed.errors)")
        let decoded = "SELECT count(*) FROM frame WHERE direction = 'in' AND outcome = 'decoded'"
        #expect(try Takes.number(folder.file(name), decoded) > 20, "\(name)")
      }
    }

    /// The two ends of a cable, each with an address.
    private let cable = """
      ip link add wire0 type veth peer name wire1; ip addr add 10.9.0.1/24 dev wire0
      ip link set wire0 up; ip link set wire1 up
      """

    @Test func twoProcessesResolveEachOthersNames() async throws {
      let folder = try Folder()
      try await call(
        in: folder, links: cable, server: "--ice-names", call: "--ice-names --seconds 2")
      for name in ["serve.take", "call.take"] {
        let resolved =
          "SELECT count(*) FROM network WHERE kind = 'resolved' AND address = '10.9.0.1'"
        #expect(try Takes.number(folder.file(name), resolved) >= 1, "\(name)")
        let told =
          "SELECT count(*) FROM signaling WHERE message LIKE '%10.9.0.1%typ host%'"
        #expect(try Takes.number(folder.file(name), told) == 0, "\(name)")
      }
    }

    @Test func connectionsBetweenProcessesCarryACall() async throws {
      let folder = try Folder()
      try await call(
        in: folder, links: cable, server: "--ice-tcp only", call: "--ice-tcp also --seconds 2")
      let tcp = "SELECT count(*) FROM network WHERE kind IN ('accepted', 'connect-peer')"
      #expect(try Takes.number(folder.file("serve.take"), tcp) >= 1)
    }

    @Test func aCallSurvivesTheLossOfItsAddress() async throws {
      let folder = try Folder()
      // An address in the same subnet would be removed together with the first.
      try await call(
        in: folder, links: cable + "; ip addr add 10.9.0.2/32 dev wire0",
        server: "--bind 10.9.0.2", call: "--bind 10.9.0.1 --seconds 8",
        // Add the address again only after the caller has closed its socket. If the caller did not
        // notice the loss, the call would test nothing.
        meanwhile: "pause 2; ip addr del 10.9.0.1/24 dev wire0; n=0; "
          + "while ss -Huan src 10.9.0.1 | grep -q .; "
          + "do n=$((n+1)); test $n -lt 100; pause 0.05; done; "
          + "ip addr add 10.9.0.1/24 dev wire0")
      let changes = "SELECT count(*) FROM network WHERE kind = 'interfaces'"
      #expect(try Takes.number(folder.file("call.take"), changes) >= 2)
      let late =
        "SELECT count(*) FROM frame WHERE direction = 'in' AND outcome = 'decoded' "
        + "AND at_ns > 4000000000"
      #expect(try Takes.number(folder.file("call.take"), late) > 20)
    }

    @Test func linkLocalAddressesNeedNoZone() async throws {
      let folder = try Folder()
      try await call(
        in: folder,
        links: cable + "; ip addr add fe80::5/64 dev wire0 nodad",
        server: "--bind fe80::5", call: "--bind fe80::5 --seconds 2")
      let pairs = "SELECT count(*) FROM selected_pair WHERE local LIKE '[fe80::5]:%'"
      #expect(try Takes.number(folder.file("call.take"), pairs) >= 1)
    }
  }
}

/// Network namespaces, if this system allows them.
enum Networks {
  /// Whether this process may run a command in a network namespace.
  static let arePossible: Bool = {
    guard Tool.has("ip") || FileManager.default.isExecutableFile(atPath: "/usr/sbin/ip"),
      Tool.has("unshare")
    else { return false }
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/unshare")
    process.arguments = ["-n", "/bin/sh", "-c", "PATH=$PATH:/usr/sbin ip link set lo up"]
    process.standardError = FileHandle.nullDevice
    guard (try? process.run()) != nil else { return false }
    process.waitUntilExit()
    return process.terminationStatus == 0
  }()
}

extension String {
  /// The text with each single quote escaped, for use inside the shell's single quotes.
  fileprivate var quoted: String { replacingOccurrences(of: "'", with: "'\\''") }
}
