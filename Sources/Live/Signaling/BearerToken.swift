/// A secret that requests carry as `Authorization: Bearer ...` (RFC 6750 section 2.1).
public struct BearerToken: Hashable, Sendable {
  /// The characters after `Bearer`.
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

  /// The value of the Authorization field.
  var field: String { "Bearer " + text }

  /// The bearer token in a request, if any.
  static func given(by request: HTTPRequest) -> Substring? {
    let words = (request.header("Authorization") ?? "").split(separator: " ")
    return words.count == 2 && words[0].lowercased() == "bearer" ? words[1] : nil
  }

  /// Compares in a time that does not depend on where they differ.
  func equals(_ given: Substring) -> Bool { given.utf8.equalsInConstantTime(text.utf8) }

  /// The response to a request with a wrong or no token.
  func refusal(given: Substring?) -> HTTPResponse {
    let sentence =
      given == nil
      ? "this server wants a bearer token; give it as --token or as Authorization: Bearer TOKEN"
      : "the bearer token is not the one of this server"
    var response = HTTPResponse.problem(401, sentence)
    let code = given == nil ? "" : ", error=\"invalid_token\""
    response.headers.append(("WWW-Authenticate", "Bearer realm=\"retake\"" + code))
    return response
  }
}

extension Collection<UInt8> {
  /// Compares in a time that does not depend on the first difference.
  fileprivate func equalsInConstantTime(_ other: some Collection<UInt8>) -> Bool {
    guard count == other.count else { return false }
    return zip(self, other).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
  }
}
