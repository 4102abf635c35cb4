/// A STUN method: the twelve method bits of a message type (RFC 8489 section 5).
package struct STUNMethod: RawRepresentable, Hashable, Sendable {
  package var rawValue: UInt16

  package init(rawValue: UInt16) { self.rawValue = rawValue }

  /// Asks for, tells or checks a binding.
  package static let binding = STUNMethod(rawValue: 0x001)
}

/// A STUN class: the two class bits of a message type (RFC 8489 section 5).
package struct STUNClass: RawRepresentable, Hashable, Sendable {
  package var rawValue: UInt8

  package init(rawValue: UInt8) { self.rawValue = rawValue }

  package static let request = STUNClass(rawValue: 0)
  package static let indication = STUNClass(rawValue: 1)
  package static let success = STUNClass(rawValue: 2)
  package static let error = STUNClass(rawValue: 3)
}

/// The type of a STUN attribute (RFC 8489 section 18.3, RFC 8445 section 16.1).
package struct STUNAttributeType: RawRepresentable, Hashable, Sendable {
  package var rawValue: UInt16

  package init(rawValue: UInt16) { self.rawValue = rawValue }

  package static let mappedAddress = STUNAttributeType(rawValue: 0x0001)
  package static let username = STUNAttributeType(rawValue: 0x0006)
  package static let messageIntegrity = STUNAttributeType(rawValue: 0x0008)
  package static let errorCode = STUNAttributeType(rawValue: 0x0009)
  package static let unknownAttributes = STUNAttributeType(rawValue: 0x000a)
  package static let realm = STUNAttributeType(rawValue: 0x0014)
  package static let nonce = STUNAttributeType(rawValue: 0x0015)
  package static let messageIntegritySHA256 = STUNAttributeType(rawValue: 0x001c)
  package static let passwordAlgorithm = STUNAttributeType(rawValue: 0x001d)
  package static let userHash = STUNAttributeType(rawValue: 0x001e)
  package static let xorMappedAddress = STUNAttributeType(rawValue: 0x0020)
  package static let priority = STUNAttributeType(rawValue: 0x0024)
  package static let useCandidate = STUNAttributeType(rawValue: 0x0025)
  package static let software = STUNAttributeType(rawValue: 0x8022)
  package static let fingerprint = STUNAttributeType(rawValue: 0x8028)
  package static let iceControlled = STUNAttributeType(rawValue: 0x8029)
  package static let iceControlling = STUNAttributeType(rawValue: 0x802a)

  /// Whether a receiver that does not know the type must refuse the message.
  package var isComprehensionRequired: Bool { rawValue < 0x8000 }

  /// Whether this module knows what the attribute means.
  package var isKnown: Bool {
    switch self {
    case .mappedAddress, .username, .messageIntegrity, .errorCode, .unknownAttributes, .realm,
      .nonce, .messageIntegritySHA256, .passwordAlgorithm, .userHash, .xorMappedAddress, .priority,
      .useCandidate, .software, .fingerprint, .iceControlled, .iceControlling:
      true
    default: false
    }
  }
}

/// A STUN error code with its reason phrase (RFC 8489 section 14.8).
package struct STUNErrorCode: Hashable, Sendable {
  /// 300 to 699.
  package var code: UInt16
  /// Words for people.
  package var reason: String

  package init(code: UInt16, reason: String) {
    self.code = code
    self.reason = reason
  }

  package static let badRequest = STUNErrorCode(code: 400, reason: "Bad Request")
  package static let unauthenticated = STUNErrorCode(code: 401, reason: "Unauthenticated")
  package static let unknownAttribute = STUNErrorCode(code: 420, reason: "Unknown Attribute")
  package static let roleConflict = STUNErrorCode(code: 487, reason: "Role Conflict")
}
