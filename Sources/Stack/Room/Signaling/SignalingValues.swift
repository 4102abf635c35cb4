/// Identifies a transport of a signaling machine; never reused.
package struct TransportID: Hashable, Sendable, Codable {
  package var number: UInt32
  package init(_ number: UInt32) { self.number = number }
}

/// Identifies an HTTP request; never reused.
package struct RequestID: Hashable, Sendable, Codable {
  package var number: UInt32
  package init(_ number: UInt32) { self.number = number }
}

/// Identifies a connection of a signaling machine; never reused.
package struct ConnectionID: Hashable, Sendable, Codable {
  package var number: UInt32
  package init(_ number: UInt32) { self.number = number }
}

/// Identifies an action that is answered later; numbered by whoever requests it.
package struct ActionID: Hashable, Sendable, Codable {
  package var number: UInt32
  package init(_ number: UInt32) { self.number = number }
}

/// One complete message of a transport or data channel.
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

/// An HTTP request to the service.
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

/// The result of an HTTP request.
package enum HTTPResult: Hashable, Sendable, Codable {
  /// The response, with its header fields in order.
  case answered(status: Int, fields: [HTTPField], body: [UInt8])
  /// There was no response, for the reason given.
  case failed(String)
}
