import NIOCore
import Synchronization

/// Rules for who may call a server.
///
/// A web page must not reach a recorder on a user's machine. A server therefore refuses requests
/// for any host name but its own, because a page's host name may resolve to this machine (DNS
/// rebinding), and requests from pages of other origins. If other machines can reach the server, it
/// requires a token. Even on loopback, a client needs the token to read all calls, or to end a call
/// whose identifier it does not know.
public struct AccessRules: Sendable {
  /// Host names, without ports, that requests may use besides loopback names, the server's address
  /// and the name it listens on.
  public var hosts: [String] = []
  /// Origins whose pages may call the server, such as `https://app.example` or `null`.
  public var origins: [String] = []
  /// The token for requests; nil creates one.
  ///
  /// If a token is set here, every request needs it. If the token is created, every request needs
  /// it only if other machines can reach the server; on loopback, only some requests need it.
  package var token: BearerToken?
  /// Whether all requests on loopback need a created token as well.
  package var wantsToken = false
  /// Whether a request's query may contain the token, as `?token=`.
  ///
  /// A page cannot add header fields when it loads a script or opens a WebSocket.
  package var readsTokenFromQuery = false
  /// Paths from which other origins' pages may load scripts, if they have the token; those pages
  /// cannot read the responses (Fetch, mode no-cors).
  package var scriptPaths: Set<String> = []
  /// Paths readable without a token: a browser must load the page before it can send a token.
  public var openPaths: Set<String> = ["/"]

  /// Creates rules that allow loopback without a token.
  public init() {}

  package init(hosts: [String] = [], origins: [String] = [], token: BearerToken? = nil) {
    self.hosts = hosts
    self.origins = origins
    self.token = token
  }
}

/// Checks a connection's requests before they are handled.
struct AccessGate {
  /// The state that all of a server's connections share.
  struct Keeper {
    var rules: AccessRules
    /// The host name or address that was passed to `HTTPServer.listen`.
    var listenedName: String
    /// The token to use if the rules have none.
    var spareToken: BearerToken
    var isSecure: Bool
    let guesses = GuessLimit()

    /// The token that grants every right.
    var token: BearerToken { rules.token ?? spareToken }

    /// Returns whether every request to a server listening on `address` needs the token.
    func wantsToken(listeningOn address: NIOCore.SocketAddress?) -> Bool {
      rules.token != nil || rules.wantsToken || address?.isLoopback != true
    }
  }

  /// A decision about a request.
  struct Verdict {
    /// The response that refuses the request; nil if the request may continue.
    var refusal: HTTPResponse?
    /// Whether the request has the token.
    var isAuthorized = false
    /// How long to delay the refusal.
    var delay = Duration.zero
  }

  private let keeper: Keeper
  private let wantsToken: Bool
  private let names: Set<HostName>
  /// The cookie's name; it contains the port, because a host's servers on all ports share their
  /// cookies.
  private let cookieName: String

  /// - Parameters:
  ///   - listening: the address that the server listens on, possibly the unspecified one.
  ///   - local: the connection's local address.
  init(
    _ keeper: Keeper, listening: NIOCore.SocketAddress?, local: NIOCore.SocketAddress?
  ) {
    self.keeper = keeper
    wantsToken = keeper.wantsToken(listeningOn: listening)
    cookieName = "retake-\(listening?.port ?? 0)"
    let own = [keeper.listenedName, listening?.ipAddress, local?.ipAddress].compactMap { $0 }
    names = Set((keeper.rules.hosts + own).map { HostName($0) })
  }

  /// Decides whether a request may continue.
  /// - Parameter client: the address under which to count wrong tokens; nil to count none.
  func verdict(on request: HTTPRequest, from client: NIOCore.SocketAddress?) -> Verdict {
    let hosts = request.headers.filter { $0.name.lowercased() == "host" }
    // RFC 9112 section 3.2 requires exactly one Host field.
    guard hosts.count == 1, let host = hosts.first?.value, let authority = Authority(host) else {
      return Verdict(refusal: .refusal(400, "the request must have exactly one Host field"))
    }
    guard authority.name.isLoopback || names.contains(authority.name) else {
      return Verdict(
        refusal: .refusal(
          421,
          "this server does not answer to the name \(authority.name.text.prefix(100)); start it "
            + "with --allow-host to allow that name"))
    }
    if let refusal = originRefusal(of: request, authority) { return Verdict(refusal: refusal) }
    let given = secret(of: request)
    let isRight = given.map { keeper.token.equals($0) } ?? false
    // A token that the user chose can be guessed, so after too many attempts even the right token
    // is refused.
    if given != nil, keeper.rules.token != nil, keeper.guesses.isExhausted(by: client) {
      return Verdict(refusal: .tooManyGuesses)
    }
    // Browsers send OPTIONS requests without a token.
    if isRight || !wantsToken || request.method == "OPTIONS" || isOpen(request) {
      return Verdict(isAuthorized: isRight)
    }
    return missing(given, from: client)
  }

  /// Returns a request's refusal without counting wrong tokens; nil if the request may continue.
  func refusal(of request: HTTPRequest) -> HTTPResponse? {
    verdict(on: request, from: nil).refusal
  }

  /// Refuses a request with a wrong token or without a token.
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

  /// Returns the token in a request: a bearer token, or else the query's token if that is allowed,
  /// or else the cookie of the server's page.
  private func secret(of request: HTTPRequest) -> Substring? {
    if let token = BearerToken.given(by: request) { return token }
    if keeper.rules.readsTokenFromQuery,
      let token = request.query("token") ?? request.query("rtcstats-token")
    {
      return token[...]
    }
    for pair in (request.header("Cookie") ?? "").split(separator: ";") {
      let sides = pair.trimmed.split(separator: "=", maxSplits: 1)
      if sides.count == 2, sides[0] == cookieName { return sides[1] }
    }
    return nil
  }

  /// The path to which a page posts its token in exchange for a cookie.
  static let cookiePath = "/cookie"

  /// Returns the response to a page that requests the cookie; nil for other requests.
  ///
  /// Scripts cannot read the cookie, and browsers do not send it with other sites' requests.
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

  /// Returns how long to delay a handler's response with status 401.
  func delay(ofRefused request: HTTPRequest, from client: NIOCore.SocketAddress?) -> Duration {
    guard let client, secret(of: request) != nil else { return .zero }
    return keeper.guesses.delay(ofWrongGuessBy: client) ?? GuessLimit.longestDelay
  }

  private func isOpen(_ request: HTTPRequest) -> Bool {
    ["GET", "HEAD"].contains(request.method) && keeper.rules.openPaths.contains(request.path)
  }

  private func isScript(_ request: HTTPRequest) -> Bool {
    ["GET", "HEAD"].contains(request.method) && keeper.rules.scriptPaths.contains(request.path)
  }

  private func originRefusal(of request: HTTPRequest, _ authority: Authority) -> HTTPResponse? {
    if let origin = request.header("Origin") {
      guard !isOwn(origin, authority), !isAllowed(origin) else { return nil }
      return .refusal(
        403,
        "pages of \(origin.prefix(100)) may not call this server; start it with --allow-origin to "
          + "allow them")
    }
    // A simple request from another site's page has no Origin, but current browsers send
    // Sec-Fetch-Site (Fetch Metadata). Such a request may only follow a link to the page, or load a
    // script from one of `scriptPaths`.
    guard let site = request.header("Sec-Fetch-Site"), site != "same-origin", site != "none",
      !(request.header("Sec-Fetch-Mode") == "navigate" && isOpen(request)),
      !(request.header("Sec-Fetch-Dest") == "script" && isScript(request))
    else { return nil }
    return .refusal(403, "pages of other origins may not call this server")
  }

  /// Returns whether an origin is the server's own, with the host name that the request uses.
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

  /// Returns the fields that let pages from an allowed origin read a response (Fetch, CORS
  /// protocol).
  func fields(for request: HTTPRequest) -> [(name: String, value: String)] {
    guard !keeper.rules.origins.isEmpty else { return [] }
    // The response depends on the Origin field.
    var fields = [(name: "Vary", value: "Origin")]
    guard let origin = request.header("Origin"), isAllowed(origin) else { return fields }
    fields.append(("Access-Control-Allow-Origin", origin))
    // WHIP and WHEP headers that pages from other origins may read (RFC 9725 section 4.1).
    fields.append(
      (
        "Access-Control-Expose-Headers",
        "Location, ETag, Link, Accept-Post, Accept-Patch, WWW-Authenticate, Retry-After"
      ))
    guard request.method == "OPTIONS" else { return fields }
    fields.append(("Access-Control-Allow-Methods", "GET, POST, PATCH, DELETE, OPTIONS"))
    fields.append(("Access-Control-Allow-Headers", "Content-Type, Authorization, Accept, If-Match"))
    fields.append(("Access-Control-Max-Age", "600"))
    // Browsers send this field before a public page may reach a private address (Private Network
    // Access).
    if request.header("Access-Control-Request-Private-Network") == "true" {
      fields.append(("Access-Control-Allow-Private-Network", "true"))
    }
    return fields
  }
}

/// A host in a URL or Host field, normalised for comparison.
struct HostName: Hashable {
  /// The host in lower case, without brackets or a final dot; an address is in canonical form.
  let text: String
  let isLoopback: Bool

  init(_ text: some StringProtocol) {
    var name = text.lowercased()
    if name.hasPrefix("["), name.hasSuffix("]") { name = String(name.dropFirst().dropLast()) }
    if name.hasSuffix(".") { name.removeLast() }
    let address = try? NIOCore.SocketAddress(ipAddress: name, port: 0)
    self.text = address?.ipAddress ?? name
    // Names below localhost refer to this machine (RFC 6761 section 6.3).
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

// MARK: - BearerToken

/// A secret that requests carry as `Authorization: Bearer ...` (RFC 6750 section 2.1).
public struct BearerToken: Hashable, Sendable {
  /// The characters that follow `Bearer`.
  public let text: String

  /// Creates a token; nil if it has characters that RFC 6750 does not allow.
  public init?(_ text: String) {
    let isAllowed = text.utf8.allSatisfy { byte in
      switch byte {
      case 0x30...0x39, 0x41...0x5a, 0x61...0x7a: true
      case 0x2d, 0x2e, 0x5f, 0x7e, 0x2b, 0x2f, 0x3d: true  // - . _ ~ + / =
      default: false
      }
    }
    guard isAllowed, !text.isEmpty else { return nil }
    self.text = text
  }

  /// Creates a token of 128 random bits.
  public static func random() -> BearerToken {
    var generator = SystemRandomNumberGenerator()
    let words = (0..<2).map { _ in
      let digits = String(generator.next() as UInt64, radix: 16)
      return String(repeating: "0", count: 16 - digits.count) + digits
    }
    return BearerToken(unchecked: words.joined())
  }

  private init(unchecked text: String) { self.text = text }

  /// The Authorization field's value.
  var field: String { "Bearer " + text }

  /// Returns a request's bearer token, if any.
  static func given(by request: HTTPRequest) -> Substring? {
    let words = (request.header("Authorization") ?? "").split(separator: " ")
    return words.count == 2 && words[0].lowercased() == "bearer" ? words[1] : nil
  }

  /// Compares the token with another in a time that does not depend on where they differ.
  func equals(_ given: Substring) -> Bool { given.utf8.equalsInConstantTime(text.utf8) }

  /// Returns the refusal of a request whose token is wrong or missing.
  func refusal(given: Substring?) -> HTTPResponse {
    let sentence =
      given == nil
      ? "this server requires a bearer token; give it as --token or as Authorization: Bearer TOKEN"
      : "the bearer token is not this server's"
    var response = HTTPResponse.problem(401, sentence)
    let code = given == nil ? "" : ", error=\"invalid_token\""
    response.headers.append(("WWW-Authenticate", "Bearer realm=\"retake\"" + code))
    return response
  }
}

extension Collection<UInt8> {
  /// Compares in a time that does not depend on where the bytes differ.
  package func equalsInConstantTime(_ other: some Collection<UInt8>) -> Bool {
    guard count == other.count else { return false }
    return zip(self, other).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
  }
}

// MARK: - GuessLimit

/// Limits how fast each client can guess a token: ten times a second, after a burst of twenty.
///
/// Further guesses are delayed. If too many are delayed, more guesses are refused.
final class GuessLimit: Sendable {
  private static let interval = Duration.milliseconds(100)
  private static let burst = interval * 20
  /// The longest delay of a response.
  static let longestDelay = Duration.seconds(1)
  /// The maximum number of clients whose guesses are counted separately.
  private static let clientsMaximum = 1_000

  /// For each client, the time when its guesses so far would end if it made one guess per
  /// `interval`.
  private let turns = Mutex<[String: ContinuousClock.Instant]>([:])

  /// Returns whether a client has too many delayed guesses; false for nil.
  func isExhausted(by client: NIOCore.SocketAddress?) -> Bool {
    guard let client else { return false }
    return turns.withLock { turns in
      guard let turn = turns[GuessLimit.name(of: client)] else { return false }
      return GuessLimit.delay(until: turn, from: .now) > GuessLimit.longestDelay
    }
  }

  /// Counts a wrong guess; returns how long to delay its response, or nil if too many are delayed.
  func delay(ofWrongGuessBy client: NIOCore.SocketAddress) -> Duration? {
    let now = ContinuousClock.now
    return turns.withLock { turns in
      var name = GuessLimit.name(of: client)
      if turns[name] == nil, turns.count >= GuessLimit.clientsMaximum {
        turns = turns.filter { $0.value > now }
        if turns.count >= GuessLimit.clientsMaximum { name = "" }
      }
      let turn = max(turns[name] ?? now, now) + GuessLimit.interval
      let delay = GuessLimit.delay(until: turn, from: now)
      // Guesses beyond the limit do not move the turn, so that the client does not wait even
      // longer.
      if delay > GuessLimit.longestDelay + GuessLimit.interval { return nil }
      turns[name] = turn
      return delay > GuessLimit.longestDelay ? nil : max(.zero, delay)
    }
  }

  private static func delay(
    until turn: ContinuousClock.Instant, from now: ContinuousClock.Instant
  ) -> Duration {
    now.duration(to: turn) - burst
  }

  /// Returns a client's name for counting; all loopback addresses are one client.
  private static func name(of client: NIOCore.SocketAddress) -> String {
    client.isLoopback ? "loopback" : client.ipAddress ?? ""
  }
}

extension HTTPResponse {
  static var tooManyGuesses: HTTPResponse {
    var response = HTTPResponse.problem(
      429, "too many wrong tokens from this address; try again in a few seconds")
    response.headers.append(("Retry-After", "5"))
    return response
  }
}
