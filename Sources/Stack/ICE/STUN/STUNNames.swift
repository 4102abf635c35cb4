extension STUNMethod {
  /// The method as its RFC calls it; nil for one that is not known here.
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
  /// The attribute as the registry calls it; nil for one that is in no list of this module.
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
