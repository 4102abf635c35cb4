/// A STUN method: the twelve method bits of a message type (RFC 8489 section 5).
package struct STUNMethod: RawRepresentable, Hashable, Sendable {
  package var rawValue: UInt16

  package init(rawValue: UInt16) { self.rawValue = rawValue }

  /// Discovers an address, keeps a NAT binding alive, or checks a candidate pair.
  package static let binding = STUNMethod(rawValue: 0x001)
  /// Requests an allocation (RFC 8656 section 7).
  package static let allocate = STUNMethod(rawValue: 0x003)
  /// Prolongs or ends an allocation (RFC 8656 section 8).
  package static let refresh = STUNMethod(rawValue: 0x004)
  /// Sends data to a peer, as an indication (RFC 8656 section 11).
  package static let send = STUNMethod(rawValue: 0x006)
  /// Delivers data from a peer, as an indication (RFC 8656 section 11).
  package static let data = STUNMethod(rawValue: 0x007)
  /// Permits peers to send to an allocation (RFC 8656 section 10).
  package static let createPermission = STUNMethod(rawValue: 0x008)
  /// Binds a channel number to a peer (RFC 8656 section 12).
  package static let channelBind = STUNMethod(rawValue: 0x009)
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

/// The first two bytes of a message, made of method and class (RFC 8489 section 5, figure 3).
package struct STUNType: Hashable, Sendable {
  package var method: STUNMethod
  package var messageClass: STUNClass

  /// Splits a type; the class bits are between the method bits.
  package init(rawValue type: UInt16) {
    messageClass = STUNClass(rawValue: UInt8(type >> 7 & 2 | type >> 4 & 1))
    method = STUNMethod(rawValue: type & 0xf | type >> 1 & 0x70 | type >> 2 & 0xf80)
  }
}

/// A STUN attribute type (RFC 8489 section 18.3, RFC 8445 section 16.1, RFC 8656 section 18).
package struct STUNAttributeType: RawRepresentable, Hashable, Sendable {
  package var rawValue: UInt16

  package init(rawValue: UInt16) { self.rawValue = rawValue }

  package static let mappedAddress = STUNAttributeType(rawValue: 0x0001)
  package static let username = STUNAttributeType(rawValue: 0x0006)
  package static let messageIntegrity = STUNAttributeType(rawValue: 0x0008)
  package static let errorCode = STUNAttributeType(rawValue: 0x0009)
  package static let unknownAttributes = STUNAttributeType(rawValue: 0x000a)
  package static let channelNumber = STUNAttributeType(rawValue: 0x000c)
  package static let lifetime = STUNAttributeType(rawValue: 0x000d)
  package static let xorPeerAddress = STUNAttributeType(rawValue: 0x0012)
  package static let data = STUNAttributeType(rawValue: 0x0013)
  package static let xorRelayedAddress = STUNAttributeType(rawValue: 0x0016)
  package static let requestedAddressFamily = STUNAttributeType(rawValue: 0x0017)
  package static let requestedTransport = STUNAttributeType(rawValue: 0x0019)
  package static let dontFragment = STUNAttributeType(rawValue: 0x001a)
  package static let reservationToken = STUNAttributeType(rawValue: 0x0022)
  package static let realm = STUNAttributeType(rawValue: 0x0014)
  package static let nonce = STUNAttributeType(rawValue: 0x0015)
  package static let messageIntegritySHA256 = STUNAttributeType(rawValue: 0x001c)
  package static let passwordAlgorithm = STUNAttributeType(rawValue: 0x001d)
  package static let userHash = STUNAttributeType(rawValue: 0x001e)
  package static let xorMappedAddress = STUNAttributeType(rawValue: 0x0020)
  package static let priority = STUNAttributeType(rawValue: 0x0024)
  package static let useCandidate = STUNAttributeType(rawValue: 0x0025)
  package static let alternateServer = STUNAttributeType(rawValue: 0x8023)
  package static let software = STUNAttributeType(rawValue: 0x8022)
  package static let fingerprint = STUNAttributeType(rawValue: 0x8028)
  package static let iceControlled = STUNAttributeType(rawValue: 0x8029)
  package static let iceControlling = STUNAttributeType(rawValue: 0x802a)
  /// libwebrtc's description of the network it uses.
  package static let googNetworkInfo = STUNAttributeType(rawValue: 0xc057)

  /// Whether a receiver that does not know the type must reject the message.
  package var isComprehensionRequired: Bool { rawValue < 0x8000 }

  /// Whether this module supports the attribute.
  package var isKnown: Bool {
    switch self {
    case .mappedAddress, .username, .messageIntegrity, .errorCode, .unknownAttributes, .realm,
      .nonce, .messageIntegritySHA256, .passwordAlgorithm, .userHash, .xorMappedAddress, .priority,
      .useCandidate, .software, .fingerprint, .iceControlled, .iceControlling, .channelNumber,
      .lifetime, .xorPeerAddress, .data, .xorRelayedAddress, .requestedAddressFamily,
      .requestedTransport, .alternateServer:
      true
    default: false
    }
  }
}

/// A STUN error code with its reason phrase (RFC 8489 section 14.8).
package struct STUNErrorCode: Hashable, Sendable {
  /// The code, 300 to 699; its hundreds digit is the class.
  package var code: UInt16
  /// The reason phrase, for display.
  package var reason: String

  package init(code: UInt16, reason: String) {
    self.code = code
    self.reason = reason
  }

  package static let tryAlternate = STUNErrorCode(code: 300, reason: "Try Alternate")
  package static let badRequest = STUNErrorCode(code: 400, reason: "Bad Request")
  package static let unauthenticated = STUNErrorCode(code: 401, reason: "Unauthenticated")
  package static let unknownAttribute = STUNErrorCode(code: 420, reason: "Unknown Attribute")
  package static let forbidden = STUNErrorCode(code: 403, reason: "Forbidden")
  package static let allocationMismatch = STUNErrorCode(code: 437, reason: "Allocation Mismatch")
  package static let staleNonce = STUNErrorCode(code: 438, reason: "Stale Nonce")
  package static let unsupportedFamily = STUNErrorCode(
    code: 440, reason: "Address Family not Supported")
  package static let roleConflict = STUNErrorCode(code: 487, reason: "Role Conflict")
}

// MARK: - STUNNames

extension STUNMethod {
  /// The method's name in its RFC; nil if it is unknown here.
  package var name: String? {
    switch self {
    case .binding: "Binding"
    case .allocate: "Allocate"
    case .refresh: "Refresh"
    case .send: "Send"
    case .data: "Data"
    case .createPermission: "CreatePermission"
    case .channelBind: "ChannelBind"
    default: nil
    }
  }
}

extension STUNAttributeType {
  /// The attribute's name in the IANA registry; nil if this module does not know it.
  package var name: String? {
    switch self {
    case .mappedAddress: "MAPPED-ADDRESS"
    case .username: "USERNAME"
    case .messageIntegrity: "MESSAGE-INTEGRITY"
    case .errorCode: "ERROR-CODE"
    case .unknownAttributes: "UNKNOWN-ATTRIBUTES"
    case .channelNumber: "CHANNEL-NUMBER"
    case .lifetime: "LIFETIME"
    case .xorPeerAddress: "XOR-PEER-ADDRESS"
    case .data: "DATA"
    case .realm: "REALM"
    case .nonce: "NONCE"
    case .xorRelayedAddress: "XOR-RELAYED-ADDRESS"
    case .requestedAddressFamily: "REQUESTED-ADDRESS-FAMILY"
    case .requestedTransport: "REQUESTED-TRANSPORT"
    case .dontFragment: "DONT-FRAGMENT"
    case .messageIntegritySHA256: "MESSAGE-INTEGRITY-SHA256"
    case .passwordAlgorithm: "PASSWORD-ALGORITHM"
    case .userHash: "USERHASH"
    case .xorMappedAddress: "XOR-MAPPED-ADDRESS"
    case .reservationToken: "RESERVATION-TOKEN"
    case .priority: "PRIORITY"
    case .useCandidate: "USE-CANDIDATE"
    case .software: "SOFTWARE"
    case .alternateServer: "ALTERNATE-SERVER"
    case .fingerprint: "FINGERPRINT"
    case .iceControlled: "ICE-CONTROLLED"
    case .iceControlling: "ICE-CONTROLLING"
    case .googNetworkInfo: "GOOG-NETWORK-INFO"
    default: nil
    }
  }
}
