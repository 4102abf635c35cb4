/// Names a transport that a signaling machine asked for; never used twice.
package struct TransportID: Hashable, Sendable, Codable {
  package var number: UInt32
  package init(_ number: UInt32) { self.number = number }
}

/// Names a request over HTTP; never used twice.
package struct RequestID: Hashable, Sendable, Codable {
  package var number: UInt32
  package init(_ number: UInt32) { self.number = number }
}

/// Names a connection that a signaling machine asked for; never used twice.
package struct ConnectionID: Hashable, Sendable, Codable {
  package var number: UInt32
  package init(_ number: UInt32) { self.number = number }
}

/// Names something that is answered later: given by whoever asks, in its own count.
package struct ActionID: Hashable, Sendable, Codable {
  package var number: UInt32
  package init(_ number: UInt32) { self.number = number }
}

/// One whole message of a transport or a data channel.
package enum SignalingFrame: Hashable, Sendable, Codable {
  case text(String)
  case binary([UInt8])
}

/// A header field of HTTP.
package struct HTTPField: Hashable, Sendable, Codable {
  package var name: String
  package var value: String

  package init(_ name: String, _ value: String) {
    self.name = name
    self.value = value
  }
}

/// A request to the service over HTTP.
package struct ServiceRequest: Hashable, Sendable, Codable {
  package var method: String
  package var url: String
  package var fields: [HTTPField]
  package var body: [UInt8]

  package init(method: String, url: String, fields: [HTTPField] = [], body: [UInt8] = []) {
    self.method = method
    self.url = url
    self.fields = fields
    self.body = body
  }
}

/// What came of a request over HTTP.
package enum HTTPResult: Hashable, Sendable, Codable {
  /// The answer, with its header fields in their order.
  case answered(status: Int, fields: [HTTPField], body: [UInt8])
  /// There was none; why, in words.
  case failed(String)
}
