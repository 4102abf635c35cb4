package import Wire

/// A signaling protocol of rooms without sockets, clock or randomness of its own.
///
/// It is part of a room. Its inputs are transport events, connection reports and the room's
/// intents; its outputs are frames, requests, orders to connections and events for the room.
/// Whatever a server sends leads to events or is ignored.
///
/// Random values, such as transaction names, come from the stream `signaling` of the room's
/// entropy. The entropy is a class, so copies of the machine share the stream.
package protocol SignalingMachine: Machine
where Input == SignalingInput, Output == SignalingOutput {
  /// The name by which a configuration selects the protocol: `janus`, `sora`, `room`, `whip`.
  static var name: String { get }
  /// What the protocol supports, so that a room can refuse the rest by itself.
  var abilities: SignalingAbilities { get }
  /// The state for debugging: names and values in order.
  var status: [(name: String, value: String)] { get }

  /// Creates a machine that waits for its first intent, which is `join`.
  init(_ configuration: SignalingConfiguration, entropy: Entropy)
}

/// The protocol and server of a room; part of its genesis.
package struct SignalingConfiguration: Hashable, Sendable, Codable {
  /// The name of the protocol.
  package var protocolName: String
  /// The server's URLs: `wss://host/path`, `https://host/path`; several are tried in order.
  package var urls: [String]
  /// Options specific to the protocol, in its own terms (`plugin`, `spotlight`, ...).
  package var options: [String: String]

  package init(protocolName: String, urls: [String], options: [String: String] = [:]) {
    self.protocolName = protocolName
    self.urls = urls
    self.options = options
  }
}

/// What a signaling protocol supports.
package struct SignalingAbilities: OptionSet, Hashable, Sendable, Codable {
  package let rawValue: UInt32
  package init(rawValue: UInt32) { self.rawValue = rawValue }

  /// Sending and receiving use separate connections.
  package static let separateConnections = SignalingAbilities(rawValue: 1)
  /// Received media is selected individually; otherwise everything is received.
  package static let subscriptions = SignalingAbilities(rawValue: 2)
  /// Messages between participants.
  package static let messages = SignalingAbilities(rawValue: 4)
  /// Selecting the layer of a received video.
  package static let profiles = SignalingAbilities(rawValue: 8)
  /// Pausing a received video.
  package static let pausing = SignalingAbilities(rawValue: 16)
  /// The server selects whose audio is sent to whom.
  package static let audioSelection = SignalingAbilities(rawValue: 32)
  /// Extra values and active states reach the others.
  package static let mediaUpdates = SignalingAbilities(rawValue: 64)
  /// Only audio can be published.
  package static let audioOnly = SignalingAbilities(rawValue: 128)
  /// The server offers, and so decides on the layers of local video.
  package static let serverOffers = SignalingAbilities(rawValue: 256)
  /// The server reports whose audio it sends; otherwise all received audio is played.
  package static let reportedVoices = SignalingAbilities(rawValue: 512)
}

/// The supported room protocols, by name.
package struct SignalingProtocols: Sendable {
  private var makers:
    [String: @Sendable (SignalingConfiguration, Entropy) -> any SignalingMachine] = [:]

  package init() {}

  /// Adds a protocol.
  package mutating func add<Protocol: SignalingMachine & SendableMetatype>(_ type: Protocol.Type) {
    makers[type.name] = { Protocol($0, entropy: $1) }
  }

  /// Creates a machine of the configured protocol; nil if it is unknown.
  package func machine(_ configuration: SignalingConfiguration, entropy: Entropy)
    -> (any SignalingMachine)?
  {
    makers[configuration.protocolName]?(configuration, entropy)
  }
}
