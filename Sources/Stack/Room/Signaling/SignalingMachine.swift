package import Wire

/// A signaling protocol of rooms without sockets, clock or randomness of its own.
///
/// It stands in a room: what comes over transports, what the connections of the room do and what
/// the room wants are its inputs; frames, requests, what the connections are to do and what is told
/// to the room are its outputs. Whatever a server sends, it yields events or is passed over.
///
/// Random values, as those of transactions, come from the stream `signaling` of the room's entropy;
/// the entropy is a class, so the machine keeps the stream and copies of the machine share it.
package protocol SignalingMachine: Machine
where Input == SignalingInput, Output == SignalingOutput {
  /// The word by which a configuration chooses the protocol: `janus`, `sora`, `room`, `whip`.
  static var name: String { get }
  /// What the protocol can do, so that a room refuses the rest by itself.
  var abilities: SignalingAbilities { get }
  /// The state in words, for whoever looks into a replay: names and values, in order.
  var status: [(name: String, value: String)] { get }

  /// Creates a machine that waits for its first intent, which is `join`.
  init(_ configuration: SignalingConfiguration, entropy: Entropy)
}

/// Which protocol a room speaks, and with whom; part of the room's genesis.
package struct SignalingConfiguration: Hashable, Sendable, Codable {
  /// The name of the protocol's machine.
  package var protocolName: String
  /// Where the server is: `wss://host/path`, `https://host/path`; several are tried in order.
  package var urls: [String]
  /// What only this protocol knows, by name, in the protocol's words (`plugin`, `spotlight`, ...).
  package var options: [String: String]

  package init(protocolName: String, urls: [String], options: [String: String] = [:]) {
    self.protocolName = protocolName
    self.urls = urls
    self.options = options
  }
}

/// What a signaling protocol can do.
package struct SignalingAbilities: OptionSet, Hashable, Sendable, Codable {
  package let rawValue: UInt32
  package init(rawValue: UInt32) { self.rawValue = rawValue }

  /// What is sent and what is received have connections of their own.
  package static let separateConnections = SignalingAbilities(rawValue: 1)
  /// Received media is chosen piece by piece; else everything comes.
  package static let subscriptions = SignalingAbilities(rawValue: 2)
  /// Messages of participants to one another.
  package static let messages = SignalingAbilities(rawValue: 4)
  /// The layer of a received video can be chosen.
  package static let profiles = SignalingAbilities(rawValue: 8)
  /// A received video can be paused.
  package static let pausing = SignalingAbilities(rawValue: 16)
  /// The server chooses whose audio is sent to whom.
  package static let audioSelection = SignalingAbilities(rawValue: 32)
  /// Extra values and whether a media is active reach the others.
  package static let mediaUpdates = SignalingAbilities(rawValue: 64)
  /// Only audio is published, never video.
  package static let audioOnly = SignalingAbilities(rawValue: 128)
  /// The server offers, and with that decides in which layers local video is sent.
  package static let serverOffers = SignalingAbilities(rawValue: 256)
  /// The server says whose audio it sends; else all that is received is heard.
  package static let reportedVoices = SignalingAbilities(rawValue: 512)
}

/// The protocols that a room can speak, by the names of their machines.
package struct SignalingProtocols: Sendable {
  private var makers:
    [String: @Sendable (SignalingConfiguration, Entropy) -> any SignalingMachine] = [:]

  package init() {}

  /// Makes a protocol known.
  package mutating func add<Protocol: SignalingMachine & SendableMetatype>(_ type: Protocol.Type) {
    makers[type.name] = { Protocol($0, entropy: $1) }
  }

  /// A machine of the protocol that a configuration names; nil for one that is not known.
  package func machine(_ configuration: SignalingConfiguration, entropy: Entropy)
    -> (any SignalingMachine)?
  {
    makers[configuration.protocolName]?(configuration, entropy)
  }
}
