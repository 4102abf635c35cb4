import NIOCore

/// Who may call a server, besides those who may by themselves.
///
/// A page on the web must not reach a recorder on somebody's machine. So a server knows its own
/// names and refuses requests under any other (a page whose name was made to lead here, known as
/// DNS rebinding); it refuses what pages of other origins send; and beyond loopback it wants a
/// token. On loopback, too, there is one: what reads all calls, or ends one whose identifier is not
/// known, needs it.
public struct AccessRules: Sendable {
  /// Names besides loopback ones, the address that is listened on and the name that was given for
  /// it, under which the server may be called; without ports.
  public var hosts: [String] = []
  /// Origins whose pages may call, such as `https://app.example`; `null` is one of them.
  public var origins: [String] = []
  /// What requests must carry; nil makes a token, which all requests must carry where others than
  /// this machine can reach the server, and some of them on loopback.
  package var token: BearerToken?
  /// Whether all requests must carry the token on loopback, too, when it is one that was made.
  package var wantsToken = false
  /// What can be read without a token: a browser asks for the page before it can give one.
  public var openPaths: Set<String> = ["/"]

  /// Lets nobody in besides.
  public init() {}

  package init(hosts: [String] = [], origins: [String] = [], token: BearerToken? = nil) {
    self.hosts = hosts
    self.origins = origins
    self.token = token
  }
}

/// Decides on the requests of one connection before anything else looks at them.
struct AccessGate {
  /// What is the same for all connections of a server.
  struct Keeper {
    var rules: AccessRules
    /// The name that was given to listen on.
    var listenedName: String
    /// The token that holds where none was given.
    var spareToken: BearerToken
    var isSecure: Bool
    let guesses = GuessLimit()

    /// What lets requests do everything.
    var token: BearerToken { rules.token ?? spareToken }

    /// Whether all requests to a server that listens on an address must carry it.
    func wantsToken(listeningOn address: NIOCore.SocketAddress?) -> Bool {
      rules.token != nil || rules.wantsToken || address?.isLoopback != true
    }
  }

  /// What becomes of a request.
  struct Verdict {
    /// Nil when it may continue.
    var refusal: HTTPResponse?
    /// Whether it carries the token.
    var isAuthorized = false
    /// For how long the refusal is held back.
    var delay = Duration.zero
  }

  private let keeper: Keeper
  private let wantsToken: Bool
  private let names: Set<HostName>
  /// Cookies are shared by all ports of a host, so that their names tell servers apart.
  private let cookieName: String

  /// - Parameters:
  ///   - listening: what the server listens on, which may be every address.
  ///   - local: where the connection came to.
  init(
    _ keeper: Keeper, listening: NIOCore.SocketAddress?, local: NIOCore.SocketAddress?
  ) {
    self.keeper = keeper
    wantsToken = keeper.wantsToken(listeningOn: listening)
    cookieName = "retake-\(listening?.port ?? 0)"
    let own = [keeper.listenedName, listening?.ipAddress, local?.ipAddress].compactMap { $0 }
    names = Set((keeper.rules.hosts + own).map { HostName($0) })
  }

  /// Decides on a request.
  ///
  /// - Parameter client: whose wrong tokens are counted; nil counts none.
  func verdict(on request: HTTPRequest, from client: NIOCore.SocketAddress?) -> Verdict {
    let hosts = request.headers.filter { $0.name.lowercased() == "host" }
    // RFC 9112 section 3.2 asks for exactly one.
    guard hosts.count == 1, let host = hosts.first?.value, let authority = Authority(host) else {
      return Verdict(refusal: .refusal(400, "the request needs one Host field"))
    }
    guard authority.name.isLoopback || names.contains(authority.name) else {
      return Verdict(
        refusal: .refusal(
          421,
          "this server is not called \(authority.name.text.prefix(100)); it is started with "
            + "--allow-host to answer under that name"))
    }
    if let refusal = originRefusal(of: request, authority) { return Verdict(refusal: refusal) }
    let given = secret(of: request)
    let isRight = given.map { keeper.token.equals($0) } ?? false
    // A token that a person has chosen can be guessed: then not even the right one is looked at.
    if given != nil, keeper.rules.token != nil, keeper.guesses.isExhausted(by: client) {
      return Verdict(refusal: .tooManyGuesses)
    }
    // A browser asks with OPTIONS before it sends a token.
    if isRight || !wantsToken || request.method == "OPTIONS" || isOpen(request) {
      return Verdict(isAuthorized: isRight)
    }
    return missing(given, from: client)
  }

  /// The refusal of a request, of which nothing is counted; nil when it may continue.
  func refusal(of request: HTTPRequest) -> HTTPResponse? {
    verdict(on: request, from: nil).refusal
  }

  /// The refusal of a request without the token, or with another one.
  private func missing(_ given: Substring?, from client: NIOCore.SocketAddress?) -> Verdict {
    var verdict = Verdict(refusal: keeper.token.refusal(given: given))
    guard given != nil, let client else { return verdict }
    guard let delay = keeper.guesses.delay(ofWrongGuessBy: client) else {
      return Verdict(refusal: .tooManyGuesses)
    }
    verdict.delay = delay
    return verdict
  }

  // MARK: Cookies

  /// What a request gives as the token: a bearer token, or else the cookie of the server's page.
  private func secret(of request: HTTPRequest) -> Substring? {
    if let token = BearerToken.given(by: request) { return token }
    for pair in (request.header("Cookie") ?? "").split(separator: ";") {
      let sides = pair.trimmed.split(separator: "=", maxSplits: 1)
      if sides.count == 2, sides[0] == cookieName { return sides[1] }
    }
    return nil
  }

  /// The path to which a page posts its token to get a cookie in exchange.
  static let cookiePath = "/cookie"

  /// The answer to a page that asks for the cookie; nil for another request.
  ///
  /// Scripts cannot read the cookie, and no page of another site sends it along.
  func cookieResponse(to request: HTTPRequest) -> HTTPResponse? {
    guard request.path == AccessGate.cookiePath, request.method == "POST" else { return nil }
    guard request.isAuthorized else {
      return keeper.token.refusal(given: BearerToken.given(by: request))
    }
    var response = HTTPResponse(status: 204)
    let secure = keeper.isSecure ? "; Secure" : ""
    response.headers.append(
      (
        "Set-Cookie",
        "\(cookieName)=\(keeper.token.text); Path=/; HttpOnly; SameSite=Strict\(secure)"
      ))
    return response
  }

  /// For how long an answer of status 401 that a handler gave is held back.
  func delay(ofRefused request: HTTPRequest, from client: NIOCore.SocketAddress?) -> Duration {
    guard let client, secret(of: request) != nil else { return .zero }
    return keeper.guesses.delay(ofWrongGuessBy: client) ?? GuessLimit.longestDelay
  }

  private func isOpen(_ request: HTTPRequest) -> Bool {
    ["GET", "HEAD"].contains(request.method) && keeper.rules.openPaths.contains(request.path)
  }

  private func originRefusal(of request: HTTPRequest, _ authority: Authority) -> HTTPResponse? {
    if let origin = request.header("Origin") {
      guard !isOwn(origin, authority), !isAllowed(origin) else { return nil }
      return .refusal(
        403,
        "pages of \(origin.prefix(100)) may not call this server; it is started with "
          + "--allow-origin to let them")
    }
    // Simple requests of other pages carry no Origin, but today's browsers say where they are from
    // (Fetch Metadata); following a link to the page is all that such a request may do.
    guard let site = request.header("Sec-Fetch-Site"), site != "same-origin", site != "none",
      !(request.header("Sec-Fetch-Mode") == "navigate" && isOpen(request))
    else { return nil }
    return .refusal(403, "pages of other origins may not call this server")
  }

  /// Whether an origin is that of the server's own pages, under the name that the request gives.
  private func isOwn(_ origin: String, _ authority: Authority) -> Bool {
    let scheme = keeper.isSecure ? "https" : "http"
    guard let (given, rest) = origin.split(at: "://"), given.lowercased() == scheme,
      let other = Authority(rest)
    else { return false }
    let usual = keeper.isSecure ? 443 : 80
    return other.name == authority.name && other.port ?? usual == authority.port ?? usual
  }

  private func isAllowed(_ origin: String) -> Bool {
    let origin = origin.lowercased()
    return keeper.rules.origins.contains { $0.lowercased() == origin }
  }

  /// The fields that let the page of an allowed origin read a response (Fetch, CORS protocol).
  func fields(for request: HTTPRequest) -> [(name: String, value: String)] {
    guard !keeper.rules.origins.isEmpty else { return [] }
    // What is answered depends on who asks.
    var fields = [(name: "Vary", value: "Origin")]
    guard let origin = request.header("Origin"), isAllowed(origin) else { return fields }
    fields.append(("Access-Control-Allow-Origin", origin))
    // What pages of other origins may read of WHIP and WHEP (RFC 9725 section 4.1).
    fields.append(
      (
        "Access-Control-Expose-Headers",
        "Location, ETag, Link, Accept-Post, Accept-Patch, WWW-Authenticate, Retry-After"
      ))
    guard request.method == "OPTIONS" else { return fields }
    fields.append(("Access-Control-Allow-Methods", "GET, POST, PATCH, DELETE, OPTIONS"))
    fields.append(("Access-Control-Allow-Headers", "Content-Type, Authorization, Accept, If-Match"))
    fields.append(("Access-Control-Max-Age", "600"))
    // Public pages ask this before they may reach a private address (Private Network Access).
    if request.header("Access-Control-Request-Private-Network") == "true" {
      fields.append(("Access-Control-Allow-Private-Network", "true"))
    }
    return fields
  }
}

/// A host as URLs and the Host field name it, in the one form that can be compared.
struct HostName: Hashable {
  /// In lower case, without brackets and the root's dot; an address as the system writes it.
  let text: String
  let isLoopback: Bool

  init(_ text: some StringProtocol) {
    var name = text.lowercased()
    if name.hasPrefix("["), name.hasSuffix("]") { name = String(name.dropFirst().dropLast()) }
    if name.hasSuffix(".") { name.removeLast() }
    let address = try? NIOCore.SocketAddress(ipAddress: name, port: 0)
    self.text = address?.ipAddress ?? name
    // Names below localhost lead to this machine (RFC 6761 section 6.3).
    isLoopback = address?.isLoopback ?? (name == "localhost" || name.hasSuffix(".localhost"))
  }
}

/// `HOST` or `HOST:PORT` (RFC 3986 section 3.2).
struct Authority {
  let name: HostName
  let port: Int?

  init?(_ text: some StringProtocol) {
    let end = text.lastIndex(of: "]") ?? text.startIndex
    let colon = text[end...].firstIndex(of: ":")
    let host = text[..<(colon ?? text.endIndex)]
    guard !host.isEmpty, host.utf8.allSatisfy({ (0x21..<0x7f).contains($0) && $0 != 0x2f }) else {
      return nil
    }
    name = HostName(host)
    guard let colon else {
      port = nil
      return
    }
    guard let number = UInt16(text[text.index(after: colon)...]) else { return nil }
    port = Int(number)
  }
}

extension String {
  /// What stands before and after a separator.
  fileprivate func split(at separator: String) -> (Substring, Substring)? {
    var index = startIndex
    while index < endIndex {
      if self[index...].hasPrefix(separator) {
        return (self[..<index], self[self.index(index, offsetBy: separator.count)...])
      }
      index = self.index(after: index)
    }
    return nil
  }
}
