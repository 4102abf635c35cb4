import ArgumentParser
import Signaling
import TLS

/// Where a command listens and whom it lets in: every command that listens does it through this.
struct ListenOptions: ParsableArguments {
  @Option(
    help: """
      The address and port to listen on; port 0 finds a free one. Default: \(Self.usualAddress).
      """,
    transform: Taking.value(ListenAddress.wanted))
  var listen = Self.usualAddress

  private static let usualAddress = ListenAddress(host: "127.0.0.1", port: 8080)

  @Option(
    help: """
      A bearer token that callers must give; the page has it in its address. Default: one that is \
      made and printed; on loopback it is needed for what is about all calls alone, such as \
      GET /stats. \(Taking.secretForm)
      """,
    transform: Taking.secret(Taking.value(BearerToken.wanted)))
  var token: BearerToken?

  @Option(
    name: .customLong("allow-host"),
    help: """
      A further name under which callers may address the recorder, without a port; may be given \
      several times. Loopback names, the address listened on and the name given to --listen need \
      no mention.
      """,
    transform: Taking.value(HostChoice.wanted))
  var allowedHosts: [HostChoice] = []

  @Option(
    name: .customLong("allow-origin"),
    help: """
      An origin whose pages may call, like https://app.example; may be given several times. \
      Default: only the recorder's own page.
      """,
    transform: Taking.value(OriginChoice.wanted))
  var allowedOrigins: [OriginChoice] = []

  @Option(
    help: "A certificate in PEM: pages and signaling then go over HTTPS; needs --key.",
    completion: .file(), transform: Taking.path)
  var certificate: String?

  @Option(
    help: "The private key of --certificate in PEM.", completion: .file(), transform: Taking.path)
  var key: String?

  func validate() throws {
    if (certificate == nil) != (key == nil) {
      throw ValidationError("--certificate and --key belong together: give both or none.")
    }
  }

  private var identity: TLSIdentity? {
    guard let certificate, let key else { return nil }
    return TLSIdentity(certificate: certificate, key: key)
  }

  /// Listens, or fails with one sentence.
  ///
  /// - Parameter sockets: where WebSockets are taken, too.
  func server(sockets: [WebSocketRoute] = [], _ handler: @escaping HTTPServer.Handler)
    async throws -> HTTPServer
  {
    do throws(HTTPError) {
      return try await HTTPServer.listen(
        host: listen.host, port: listen.port,
        access: AccessRules(
          hosts: allowedHosts.map(\.name), origins: allowedOrigins.map(\.text), token: token),
        identity: identity, sockets: sockets, notice: { printError($0) }, handler: handler)
    } catch {
      throw CommandFailure(.inputOutput, error.reason)
    }
  }
}

/// `HOST:PORT`, with brackets around an IPv6 address.
struct ListenAddress: ExpressibleByArgument, CustomStringConvertible {
  var host: String
  var port: Int

  init(host: String, port: Int) {
    self.host = host
    self.port = port
  }

  /// What is wanted, for who gave something else.
  static let wanted =
    "an address is HOST:PORT with a port from 0 to 65535, as in 127.0.0.1:8080 or [::1]:8080"

  init?(argument: String) {
    guard let colon = argument.lastIndex(of: ":"),
      let port = UInt16(argument[argument.index(after: colon)...])
    else { return nil }
    var host = String(argument[..<colon])
    if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
    guard !host.isEmpty else { return nil }
    self.init(host: host, port: Int(port))
  }

  var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}

/// The name of a host, without scheme, port and path.
struct HostChoice: ExpressibleByArgument {
  var name: String

  /// What is wanted, for who gave something else.
  static let wanted = "a host is a name or address without scheme and port, as in recorder.example"

  init?(argument: String) {
    let isAddress = argument.contains(":")
    let allowed = argument.utf8.allSatisfy { byte in
      switch byte {
      case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, 0x2d, 0x2e, 0x5f: true  // letters, digits, - . _
      case 0x3a, 0x5b, 0x5d: isAddress && argument.filter { $0 == ":" }.count > 1  // : [ ]
      default: false
      }
    }
    guard allowed, !argument.isEmpty else { return nil }
    name = argument
  }
}

/// An origin as browsers write it: `SCHEME://HOST`, with the port where it is not the usual one.
struct OriginChoice: ExpressibleByArgument {
  var text: String

  /// What is wanted, for who gave something else.
  static let wanted = "an origin is SCHEME://HOST[:PORT], as in https://app.example, or null"

  init?(argument: String) {
    let parts = argument.split(separator: "/", omittingEmptySubsequences: false)
    let isWritten =
      parts.count == 3 && parts[0].hasSuffix(":") && parts[0].count > 1 && parts[1].isEmpty
      && !parts[2].isEmpty && argument.utf8.allSatisfy { (0x21..<0x7f).contains($0) }
    guard isWritten || argument == "null" else { return nil }
    text = argument
  }
}
