package import Peer
package import SDP
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

// MARK: - SignalingProtocols: All

extension SignalingProtocols {
  /// All supported room protocols.
  package static var all: SignalingProtocols {
    var protocols = SignalingProtocols()
    protocols.add(JanusMachine.self)
    protocols.add(RetakeRoomMachine.self)
    protocols.add(SoraMachine.self)
    protocols.add(WHIPMachine.self)
    protocols.add(WHEPMachine.self)
    return protocols
  }
}

// MARK: - SignalingInput

/// An input of a signaling machine.
package enum SignalingInput: Hashable, Sendable, Codable {
  /// Its deadline was reached.
  case deadline
  /// An event of one of its transports.
  case transport(TransportID, TransportEvent)
  /// The result of an HTTP request.
  case response(RequestID, HTTPResult)
  /// An intent of the room.
  case intent(RoomIntent)
  /// A report of one of its connections.
  case connection(ConnectionID, ConnectionReport)
}

/// An event of a transport.
package enum TransportEvent: Hashable, Sendable, Codable {
  /// It is open; the subprotocol that the server chose.
  case opened(subprotocol: String?)
  /// A complete message arrived.
  case frame(SignalingFrame)
  /// The server closed it (RFC 6455 section 7.4), or confirmed a local close.
  case closed(code: UInt16, reason: String)
  /// It could not be opened, or broke, for the reason given.
  case failed(String)
}

/// An intent of the room.
package enum RoomIntent: Hashable, Sendable, Codable {
  /// Joins a room; the machine opens the transports it needs.
  case join(RoomJoin)
  /// Publishes local media; each is answered by `localPublished` or by `result`.
  case publish(PublicationRequest)
  /// Unpublishes local media; answered by `localUnpublished`.
  case unpublish(ActionID, [LocalMediaID])
  /// Local media has another extra value or was switched on or off.
  case updateLocal(LocalMediaInfo)
  /// Subscribes to media of others; answered by `result`, and by `assigned` once it is received.
  case subscribe(ActionID, [MediaID])
  /// Unsubscribes.
  case unsubscribe(ActionID, [MediaID])
  /// Selects another layer of a received video.
  case setProfile(ActionID, MediaID, VideoProfile)
  /// Pauses or resumes a received video.
  case setPaused(ActionID, MediaID, Bool)
  /// Sends a message to participants; to all if there are no targets.
  case sendMessage(ActionID, UserMessage)
  /// Restarts ICE on a connection, after a network change or a failure.
  case restartICE(ConnectionID)
  /// The local addresses changed, so transports are probably dead.
  ///
  /// The machine keeps them, or opens new ones and resumes.
  case networkChanged
  /// A new token that replaces the one of the join.
  case renewToken(String)
  /// Leaves; answered by `ended`, even if the server does not answer in time.
  case leave
}

/// A report of a connection to the signaling machine.
package enum ConnectionReport: Hashable, Sendable, Codable {
  /// The requested offer or answer, already set as local description; `media` has the sections of
  /// local media.
  case description(SessionDescription, media: [LocalMediaPlace])
  /// A description was refused or could not be created.
  case refused(PeerError)
  /// A local candidate; nil means there are no more (W3C end-of-candidates).
  case candidate(CandidateInit?)
  /// The overall state of the connection (W3C connectionState).
  case state(PeerState)
  /// A data channel opened.
  case channelOpened(label: String)
  /// A message arrived on a data channel.
  case channelMessage(label: String, SignalingFrame)
  /// A data channel closed.
  case channelClosed(label: String)
  /// The requested statistics, as a JSON list of W3C objects.
  case stats(ActionID, String)
}

/// The states of a connection (W3C RTCPeerConnectionState).
package enum PeerState: String, Hashable, Sendable, Codable {
  case new, connecting, connected, disconnected, failed, closed
}

// MARK: - SignalingOutput

/// An output of a signaling machine.
package enum SignalingOutput: Hashable, Sendable, Codable {
  /// Opens, uses or closes a transport.
  case transport(TransportID, TransportRequest)
  /// An HTTP request; answered by `response`.
  case request(RequestID, ServiceRequest)
  /// A request to a connection of the room.
  case connection(ConnectionID, ConnectionRequest)
  /// An event for the room.
  case event(SignalingEvent)
}

/// A request to a transport.
package enum TransportRequest: Hashable, Sendable, Codable {
  /// Opens a WebSocket (RFC 6455); answered by `opened` or `failed`.
  case open(url: String, subprotocols: [String], headers: [HTTPField])
  case send(SignalingFrame)
  /// Answered by `closed`.
  case close(code: UInt16, reason: String)
}

/// A request to a connection.
package enum ConnectionRequest: Hashable, Sendable, Codable {
  /// Opens the connection.
  ///
  /// If it sends, local media is added before the first offer.
  case open(ConnectionRole, ICEServers)
  /// Creates an offer with all local media of the connection, sets it, and returns it as
  /// `description`.
  case makeOffer(iceRestart: Bool)
  /// Sets the remote description.
  ///
  /// An offer is answered by `description` with the answer.
  case setRemote(SessionDescription)
  /// Adds a remote candidate; nil means there are no more.
  case addCandidate(CandidateInit?)
  /// The layers that the server wants of a sent section.
  case setLayers(mid: String, [SendLayer])
  /// Creates a data channel.
  case createChannel(label: String, isOrdered: Bool, maximumRetransmits: UInt16?, id: UInt16?)
  case sendOnChannel(label: String, SignalingFrame)
  /// Requests statistics.
  case getStats(ActionID)
  case close
}

/// The direction of a connection's media.
package enum ConnectionRole: String, Hashable, Sendable, Codable {
  /// Sending only.
  case up
  /// Receiving only.
  case down
  case both
}

/// The ICE servers of a connection, from the service.
package struct ICEServers: Hashable, Sendable, Codable {
  package var servers: [ICEServerConfiguration]
  package var policy: ICETransportPolicy

  package init(
    _ servers: [ICEServerConfiguration] = [], policy: ICETransportPolicy = .all
  ) {
    self.servers = servers
    self.policy = policy
  }
}

/// An event of a signaling machine for its room.
package enum SignalingEvent: Hashable, Sendable, Codable {
  /// The progress of joining.
  case progress(JoinStage)
  /// The room was joined: the participants present and their media.
  case joined(JoinedRoom)
  case participantEntered(ParticipantInfo)
  /// Follows `unpublished` for everything that the participant published.
  case participantLeft(String, LeaveCause)
  /// A participant published more media.
  case published(owner: String, [PublishedMedia])
  case unpublished(owner: String, [MediaID])
  /// Published media has another extra value or other profiles, or was switched on or off.
  case mediaChanged(PublishedMedia)
  /// A participant starts or stops speaking; with its level in dBov (0 to -127) if known.
  case talking(participant: String, Bool, level: Int?)
  /// The voices currently sent, if the service limits their number: all of them.
  case voices([MediaID])
  /// Media of another participant is received in a section of a connection from now on.
  case assigned(MediaID, ConnectionID, mid: String)
  /// It is no longer received.
  case unassigned(MediaID)
  /// Local media was published under a number that others see.
  case localPublished(LocalMediaID, MediaID)
  case localUnpublished(LocalMediaID)
  /// The server switched local media off or on (muted by a moderator).
  case localMuted(LocalMediaID, Bool)
  /// The result of an action.
  case result(ActionID, SignalingFailure?)
  case message(UserMessage)
  /// A notification of the service in its own terms, as JSON.
  case notification(type: String, String)
  /// The server redirects to another one; the machine follows by itself.
  case redirected(String)
  /// The transport was lost and the machine is reconnecting, or has rejoined the room.
  case reconnecting(attempt: Int, reason: String)
  case reconnected
  /// A failure; `ended` follows if it is critical.
  case failed(SignalingFailure)
  /// The room is over.
  ///
  /// This is the last event.
  case ended(RoomEnding)
}

// MARK: - SignalingValues

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

/// Identifies an action that is answered later; numbered by the side that requests it.
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
