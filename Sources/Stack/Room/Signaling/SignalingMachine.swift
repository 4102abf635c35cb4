package import Peer
package import SDP
package import Wire

/// A room's signaling protocol, as a state machine without sockets, clock or randomness.
///
/// It is part of a room. Its inputs are transport events, connection reports and the room's
/// intents; its outputs are frames, requests, orders to connections and events for the room.
/// Anything a server sends leads to events or is ignored.
///
/// Random values, such as transaction names, come from the stream `signaling` of the room's
/// entropy. The entropy is a class, so copies of the machine share the stream.
package protocol SignalingMachine: Machine
where Input == SignalingInput, Output == SignalingOutput {
  /// The name by which a configuration selects the protocol: `janus`, `sora`, `room`, `whip` or
  /// `whep`.
  static var name: String { get }
  /// The protocol's abilities; the room refuses calls that need other abilities.
  var abilities: SignalingAbilities { get }
  /// The state for debugging, as names and values in order.
  var status: [(name: String, value: String)] { get }

  /// Creates a machine that waits for its first intent, which is `join`.
  init(_ configuration: SignalingConfiguration, entropy: Entropy)
}

/// A room's protocol and server; part of its genesis.
package struct SignalingConfiguration: Hashable, Sendable, Codable {
  package var protocolName: String
  /// The server's URLs: `wss://host/path`, `https://host/path`; several are tried in order.
  package var urls: [String]
  /// Options of the protocol, in its own terms (`plugin`, `spotlight`, ...).
  package var options: [String: String]

  package init(protocolName: String, urls: [String], options: [String: String] = [:]) {
    self.protocolName = protocolName
    self.urls = urls
    self.options = options
  }
}

/// What a signaling protocol can do, beyond joining and publishing.
package struct SignalingAbilities: OptionSet, Hashable, Sendable, Codable {
  package let rawValue: UInt32
  package init(rawValue: UInt32) { self.rawValue = rawValue }

  /// Sending and receiving use separate connections.
  package static let separateConnections = SignalingAbilities(rawValue: 1)
  /// Received media is subscribed to individually; otherwise all media is received.
  package static let subscriptions = SignalingAbilities(rawValue: 2)
  /// Participants can send messages to each other.
  package static let messages = SignalingAbilities(rawValue: 4)
  /// A received video's layer can be selected.
  package static let profiles = SignalingAbilities(rawValue: 8)
  /// A received video can be paused.
  package static let pausing = SignalingAbilities(rawValue: 16)
  /// The server selects whose audio is sent to whom.
  package static let audioSelection = SignalingAbilities(rawValue: 32)
  /// Extra values and active states are sent to the other participants.
  package static let mediaUpdates = SignalingAbilities(rawValue: 64)
  /// Only audio can be published.
  package static let audioOnly = SignalingAbilities(rawValue: 128)
  /// The server makes the offers, which determine the layers of local video.
  package static let serverOffers = SignalingAbilities(rawValue: 256)
  /// The server reports whose audio it sends.
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

  /// Creates a machine for the configured protocol; returns nil if the protocol is unknown.
  package func machine(_ configuration: SignalingConfiguration, entropy: Entropy)
    -> (any SignalingMachine)?
  {
    makers[configuration.protocolName]?(configuration, entropy)
  }
}

// MARK: - All protocols

extension SignalingProtocols {
  /// The protocols that Retake includes.
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

/// An input that every protocol's machine accepts, so that a room can drive any of them.
package enum SignalingInput: Hashable, Sendable, Codable {
  /// The machine's deadline was reached.
  case deadline
  case transport(TransportID, TransportEvent)
  case response(RequestID, HTTPResult)
  case intent(RoomIntent)
  /// A report from one of the machine's peer connections.
  case connection(ConnectionID, ConnectionReport)
}

/// An event of a WebSocket to the server.
package enum TransportEvent: Hashable, Sendable, Codable {
  /// The transport opened, with the subprotocol that the server chose.
  case opened(subprotocol: String?)
  /// A complete message arrived.
  case frame(SignalingFrame)
  /// The server closed the transport (RFC 6455 section 7.4), or confirmed that the client closed
  /// it.
  case closed(code: UInt16, reason: String)
  /// The transport could not be opened or failed, for this reason.
  case failed(String)
}

/// A request from the room, in terms that every protocol can translate.
package enum RoomIntent: Hashable, Sendable, Codable {
  /// Joins a room; the machine opens the transports it needs.
  case join(RoomJoin)
  /// Publishes local media; answered by `localPublished` for each, and by `result`.
  case publish(PublicationRequest)
  /// Unpublishes local media; answered by `localUnpublished` for each, and by `result`.
  case unpublish(ActionID, [LocalMediaID])
  /// Changes local media's extra value, or switches the media on or off.
  case updateLocal(LocalMediaInfo)
  /// Subscribes to remote media; answered by `result`, and by `assigned` once it is received.
  case subscribe(ActionID, [MediaID])
  /// Unsubscribes from remote media; answered by `result`.
  case unsubscribe(ActionID, [MediaID])
  /// Selects another layer of a received video.
  case setProfile(ActionID, MediaID, VideoProfile)
  /// Pauses or resumes a received video.
  case setPaused(ActionID, MediaID, Bool)
  /// Sends a message to participants, or to all if there are no targets.
  case sendMessage(ActionID, UserMessage)
  /// Restarts ICE on a connection after a network change or a failure.
  case restartICE(ConnectionID)
  /// Reports that the local addresses changed, so that the transports may no longer work.
  ///
  /// The machine keeps the transports, or opens new ones and resumes.
  case networkChanged
  /// Replaces the token that was used to join.
  case renewToken(String)
  /// Leaves the room; answered by `ended`, even if the server does not reply in time.
  case leave
}

/// A report from a peer connection to the machine that signals for it.
package enum ConnectionReport: Hashable, Sendable, Codable {
  /// The requested offer or answer, already set as the local description; `media` lists the
  /// sections of local media.
  case description(SessionDescription, media: [LocalMediaPlace])
  /// A description was refused or could not be created.
  case refused(PeerError)
  /// A local candidate, or nil after the last one (W3C end-of-candidates).
  case candidate(CandidateInit?)
  /// The connection's overall state (W3C connectionState).
  case state(PeerState)
  case channelOpened(label: String)
  /// A message arrived on a data channel.
  case channelMessage(label: String, SignalingFrame)
  case channelClosed(label: String)
  /// The requested statistics, as a JSON list of W3C objects.
  case stats(ActionID, String)
}

/// A connection's states (W3C RTCPeerConnectionState).
package enum PeerState: String, Hashable, Sendable, Codable {
  case new, connecting, connected, disconnected, failed, closed
}

// MARK: - SignalingOutput

/// A request or a report from a protocol's machine to the room.
package enum SignalingOutput: Hashable, Sendable, Codable {
  /// Opens, uses or closes a transport.
  case transport(TransportID, TransportRequest)
  /// Sends an HTTP request; answered by `response`.
  case request(RequestID, ServiceRequest)
  /// Makes a request to one of the room's connections.
  case connection(ConnectionID, ConnectionRequest)
  case event(SignalingEvent)
}

/// A request from a machine to a WebSocket.
package enum TransportRequest: Hashable, Sendable, Codable {
  /// Opens a WebSocket (RFC 6455); answered by `opened` or `failed`.
  case open(url: String, subprotocols: [String], headers: [HTTPField])
  case send(SignalingFrame)
  /// Closes the transport; answered by `closed`.
  case close(code: UInt16, reason: String)
}

/// A request from a machine to a peer connection, which returns descriptions and candidates as
/// reports.
package enum ConnectionRequest: Hashable, Sendable, Codable {
  /// Opens the connection.
  ///
  /// If it sends, local media is added before the first offer.
  case open(ConnectionRole, ICEServers)
  /// Creates an offer with all of the connection's local media, sets it, and returns it as
  /// `description`.
  case makeOffer(iceRestart: Bool)
  /// Sets the remote description.
  ///
  /// An offer is answered by `description` with the answer.
  case setRemote(SessionDescription)
  /// Adds a remote candidate, or nil after the last one.
  case addCandidate(CandidateInit?)
  /// Sets the layers that the server requests for a sent section.
  case setLayers(mid: String, [SendLayer])
  case createChannel(label: String, isOrdered: Bool, maximumRetransmits: UInt16?, id: UInt16?)
  case sendOnChannel(label: String, SignalingFrame)
  case getStats(ActionID)
  case close
}

/// The direction of a connection's media.
package enum ConnectionRole: String, Hashable, Sendable, Codable {
  /// Send only.
  case up
  /// Receive only.
  case down
  case both
}

/// A connection's ICE servers, as the service provides them.
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

/// An event that the server caused, in terms common to all protocols.
package enum SignalingEvent: Hashable, Sendable, Codable {
  case progress(JoinStage)
  /// The room was joined; lists the participants present and their media.
  case joined(JoinedRoom)
  case participantEntered(ParticipantInfo)
  /// A participant left; follows `unpublished` for everything that it published.
  case participantLeft(String, LeaveCause)
  /// A participant published more media.
  case published(owner: String, [PublishedMedia])
  case unpublished(owner: String, [MediaID])
  /// Published media changed its extra value or its profiles, or was switched on or off.
  case mediaChanged(PublishedMedia)
  /// A participant started or stopped speaking, with the level in dBov (0 to -127) if known.
  case talking(participant: String, Bool, level: Int?)
  /// All voices that are currently sent, if the service limits their number.
  case voices([MediaID])
  /// A connection's section now receives a remote participant's media.
  case assigned(MediaID, ConnectionID, mid: String)
  /// The media is no longer received.
  case unassigned(MediaID)
  /// Local media was published, with the id that the machine assigned to it.
  case localPublished(LocalMediaID, MediaID)
  case localUnpublished(LocalMediaID)
  /// The server switched local media off or on, as when a moderator mutes it.
  case localMuted(LocalMediaID, Bool)
  case result(ActionID, SignalingFailure?)
  case message(UserMessage)
  /// A notification from the service in its own terms, as JSON.
  case notification(type: String, String)
  /// The server redirected the client to another server; the machine follows the redirect by
  /// itself.
  case redirected(String)
  /// The transport was lost, and the machine is reconnecting or has rejoined the room.
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

/// Identifies one of a signaling machine's transports; never reused.
package struct TransportID: Hashable, Sendable, Codable {
  package var number: UInt32
  package init(_ number: UInt32) { self.number = number }
}

/// Identifies an HTTP request; never reused.
package struct RequestID: Hashable, Sendable, Codable {
  package var number: UInt32
  package init(_ number: UInt32) { self.number = number }
}

/// Identifies one of a signaling machine's connections; never reused.
package struct ConnectionID: Hashable, Sendable, Codable {
  package var number: UInt32
  package init(_ number: UInt32) { self.number = number }
}

/// Identifies an action that is answered later; the part that requests the action numbers it.
package struct ActionID: Hashable, Sendable, Codable {
  package var number: UInt32
  package init(_ number: UInt32) { self.number = number }
}

/// One complete message on a transport or data channel.
package enum SignalingFrame: Hashable, Sendable, Codable {
  case text(String)
  case binary([UInt8])
}

/// A header line of a request, a response or a WebSocket handshake (RFC 9110 section 5).
package struct HTTPField: Hashable, Sendable, Codable {
  package var name: String
  package var value: String

  package init(_ name: String, _ value: String) {
    self.name = name
    self.value = value
  }
}

/// An HTTP request of WHIP or WHEP, to open, update or end a session.
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

/// The response to a `ServiceRequest`, or the reason that there is none.
package enum HTTPResult: Hashable, Sendable, Codable {
  /// The response, with its header fields in order.
  case answered(status: Int, fields: [HTTPField], body: [UInt8])
  /// No response arrived, for this reason.
  case failed(String)
}
