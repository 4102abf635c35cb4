import FoundationEssentials

/// A complete request, with its body in memory.
public struct HTTPRequest: Sendable {
  /// The method, such as `GET`.
  public var method: String
  /// The decoded path without the query, such as `/offer`.
  public var path: String
  /// The decoded query items in order; an item without `=` has an empty value.
  public var query: [(name: String, value: String)]
  /// The header fields in order.
  public var headers: [(name: String, value: String)]
  /// The body, at most as long as the server's limit.
  public var body: [UInt8]
  /// Whether the request has the server's token, as a bearer token, in its page's cookie or, if the
  /// rules allow that, in the query.
  package var isAuthorized = false

  /// Creates a request, splitting its target into path and query items.
  public init(
    method: String, target: String, headers: [(name: String, value: String)] = [],
    body: [UInt8] = []
  ) {
    self.method = method
    self.headers = headers
    self.body = body
    let parts = target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    path = percentDecoded(parts[0])
    query = []
    guard parts.count == 2 else { return }
    for pair in parts[1].split(separator: "&") {
      let sides = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      let value = sides.count == 2 ? percentDecoded(sides[1], isQuery: true) : ""
      query.append((percentDecoded(sides[0], isQuery: true), value))
    }
  }

  /// Returns the value of the first query item with this name.
  public func query(_ name: String) -> String? { query.first { $0.name == name }?.value }
}

/// A response from a handler or server.
public struct HTTPResponse: Sendable {
  /// The status code.
  public var status: Int
  /// The header fields; the server sets length and connection fields.
  public var headers: [(name: String, value: String)]
  /// The body; empty if there is none.
  public var body: [UInt8]

  /// Creates a response with a body of a media type.
  public init(status: Int = 200, type: String? = nil, body: [UInt8] = []) {
    self.status = status
    headers = type.map { [("Content-Type", $0)] } ?? []
    self.body = body
  }

  /// Creates a response whose body is JSON text.
  public init(status: Int = 200, json: String) {
    self.init(status: status, type: "application/json", body: Array(json.utf8))
  }

  /// Creates a refusal: a JSON object whose `error` is one sentence.
  public static func refusal(_ status: Int, _ sentence: String) -> HTTPResponse {
    HTTPResponse(status: status, json: encodedJSON(["error": sentence]))
  }

  /// The body as UTF-8 text; invalid bytes are replaced.
  public var text: String { String(decoding: body, as: UTF8.self) }
}

/// Decodes escapes such as `%41`, and `+` in a query; a percent sign without two digits stays as it
/// is.
func percentDecoded(_ text: some StringProtocol, isQuery: Bool = false) -> String {
  let bytes = Array(text.utf8)
  var decoded: [UInt8] = []
  decoded.reserveCapacity(bytes.count)
  var index = 0
  while index < bytes.count {
    switch bytes[index] {
    case UInt8(ascii: "%"):
      if index + 2 < bytes.count, let high = hexadecimal(bytes[index + 1]),
        let low = hexadecimal(bytes[index + 2])
      {
        decoded.append(high << 4 | low)
        index += 2
      } else {
        decoded.append(bytes[index])
      }
    case UInt8(ascii: "+") where isQuery: decoded.append(UInt8(ascii: " "))
    default: decoded.append(bytes[index])
    }
    index += 1
  }
  return String(decoding: decoded, as: UTF8.self)
}

private func hexadecimal(_ digit: UInt8) -> UInt8? {
  switch digit {
  case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
  case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
  case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
  default: nil
  }
}

/// Encodes a value as JSON, with keys in alphabetical order.
func encodedJSON(_ value: some Encodable) -> String {
  let encoder = JSONEncoder()
  encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
  // Strings, numbers and structures made of them always have a JSON form.
  guard let data = try? encoder.encode(value) else { return "null" }
  return String(decoding: data, as: UTF8.self)
}

/// Decodes a value from JSON; nil if the text is invalid or has another shape.
func decodedJSON<Value: Decodable>(_ type: Value.Type, from body: [UInt8]) -> Value? {
  try? JSONDecoder().decode(type, from: Data(body))
}
