package import Wire

/// The room to join, the local participant, and the direction of media.
package struct RoomJoin: Hashable, Sendable, Codable {
  /// The room's name or number, or the channel on a Sora server.
  package var room: String
  /// Whether the local participant sends media, receives it, or both.
  package var role: ConnectionRole
  /// The local participant's displayed name; empty if there is none.
  package var displayName: String
  /// The requested identifier; nil lets the server choose.
  package var participant: String?
  /// The token from signing in, or a token for the room; nil if there is none.
  package var token: String?
  /// Metadata for the service or other participants, as JSON, if any.
  package var metadata: String?
  /// The number of voices that the service should send at the same time; nil for all.
  package var voices: UInt32?

  package init(
    room: String, role: ConnectionRole = .both, displayName: String = "",
    participant: String? = nil, token: String? = nil, metadata: String? = nil
  ) {
    self.room = room
    self.role = role
    self.displayName = displayName
    self.participant = participant
    self.token = token
    self.metadata = metadata
  }
}

/// How far signaling has progressed in joining a room.
package enum JoinStage: String, Hashable, Sendable, Codable {
  case opened
  /// The session exists on the server.
  case attached
  /// The request to join was sent.
  case joining
}

/// What the local participant learns on joining: its identifier, and who is present.
package struct JoinedRoom: Hashable, Sendable, Codable {
  /// The local participant's identifier.
  package var participant: String
  /// The server's name for the session, if it has one.
  package var session: String?
  /// The other participants, in the server's order.
  package var participants: [ParticipantInfo]

  package init(participant: String, session: String? = nil, participants: [ParticipantInfo] = []) {
    self.participant = participant
    self.session = session
    self.participants = participants
  }
}

/// A participant as the signaling protocol describes it.
package struct ParticipantInfo: Hashable, Sendable, Codable {
  /// The participant's identifier in the room.
  package var id: String
  package var displayName: String
  /// Metadata from the participant or the service, as JSON, if any.
  package var metadata: String?
  package var media: [PublishedMedia]

  package init(
    id: String, displayName: String = "", metadata: String? = nil, media: [PublishedMedia] = []
  ) {
    self.id = id
    self.displayName = displayName
    self.metadata = metadata
    self.media = media
  }
}

/// The reason that a participant left.
package enum LeaveCause: String, Hashable, Sendable, Codable {
  case left, kicked, timedOut
}

/// Identifies published media in its room; assigned by the signaling machine and not reused within
/// a session.
package struct MediaID: Hashable, Comparable, Sendable, Codable {
  package var number: UInt32
  package init(_ number: UInt32) { self.number = number }
  package static func < (left: MediaID, right: MediaID) -> Bool { left.number < right.number }
}

/// Identifies local media; assigned by the room's client.
package struct LocalMediaID: Hashable, Comparable, Sendable, Codable {
  package var number: UInt32
  package init(_ number: UInt32) { self.number = number }
  package static func < (left: LocalMediaID, right: LocalMediaID) -> Bool {
    left.number < right.number
  }
}

/// Audio or video of a remote participant, to which other participants can subscribe.
package struct PublishedMedia: Hashable, Sendable, Codable {
  package var id: MediaID
  package var owner: String
  package var kind: MediaKind
  /// Whether the owner has switched the media on.
  package var isActive: Bool
  /// Whether the media is played even if other voices are louder.
  package var isAlwaysOn: Bool
  /// The owner's label, such as `screen`.
  package var extraValue: String
  /// The layers to choose from; empty if there is no choice.
  package var profiles: [VideoProfile]

  package init(
    id: MediaID, owner: String, kind: MediaKind, isActive: Bool = true, isAlwaysOn: Bool = false,
    extraValue: String = "", profiles: [VideoProfile] = []
  ) {
    self.id = id
    self.owner = owner
    self.kind = kind
    self.isActive = isActive
    self.isAlwaysOn = isAlwaysOn
    self.extraValue = extraValue
    self.profiles = profiles
  }
}

/// Local media as described to other participants.
package struct LocalMediaInfo: Hashable, Sendable, Codable {
  package var id: LocalMediaID
  package var kind: MediaKind
  package var isActive: Bool
  package var isAlwaysOn: Bool
  package var extraValue: String
  /// The layers' rids, smallest first; empty for a single layer.
  package var layers: [String]

  package init(
    id: LocalMediaID, kind: MediaKind, isActive: Bool = true, isAlwaysOn: Bool = false,
    extraValue: String = "", layers: [String] = []
  ) {
    self.id = id
    self.kind = kind
    self.isActive = isActive
    self.isAlwaysOn = isAlwaysOn
    self.extraValue = extraValue
    self.layers = layers
  }
}

/// A request to publish local media.
package struct PublicationRequest: Hashable, Sendable, Codable {
  package var action: ActionID
  package var media: [LocalMediaInfo]

  package init(action: ActionID, media: [LocalMediaInfo]) {
    self.action = action
    self.media = media
  }
}

/// The section of a description that carries local media.
package struct LocalMediaPlace: Hashable, Sendable, Codable {
  package var media: LocalMediaID
  package var mid: String

  package init(media: LocalMediaID, mid: String) {
    self.media = media
    self.mid = mid
  }
}

/// The server's limits for a sent layer (RFC 8853); nil leaves a limit to the sender.
package struct SendLayer: Hashable, Sendable, Codable {
  package var rid: String
  package var isActive: Bool
  /// The maximum bit rate in bit/s.
  package var maximumBitrate: UInt64?
  package var maximumFrameRate: Double?
  package var scaleResolutionDownBy: Double?
  /// The scalability mode, such as `L1T3` (W3C scalabilityMode).
  package var scalabilityMode: String?

  package init(
    rid: String, isActive: Bool = true, maximumBitrate: UInt64? = nil,
    maximumFrameRate: Double? = nil, scaleResolutionDownBy: Double? = nil,
    scalabilityMode: String? = nil
  ) {
    self.rid = rid
    self.isActive = isActive
    self.maximumBitrate = maximumBitrate
    self.maximumFrameRate = maximumFrameRate
    self.scaleResolutionDownBy = scaleResolutionDownBy
    self.scalabilityMode = scalabilityMode
  }
}

/// A received video's layer.
public enum VideoProfile: String, Hashable, Sendable, Codable, CaseIterable {
  /// There is no choice of layers.
  case empty
  /// The smallest layer.
  case low
  /// The middle of three layers.
  case mid
  /// The largest layer.
  case high
}

/// A message from one participant to others.
package struct UserMessage: Hashable, Sendable, Codable {
  /// The sender; empty in a message to send.
  package var sender: String
  /// The addressees; empty for all.
  package var targets: [String]
  /// The message's type, defined by the application.
  package var type: String
  package var text: String

  package init(sender: String = "", targets: [String] = [], type: String = "normal", text: String) {
    self.sender = sender
    self.targets = targets
    self.type = type
    self.text = text
  }
}

/// The reason that an action or session failed, with an error code that all protocols share.
package struct SignalingFailure: Error, Hashable, Sendable, Codable {
  package var code: RoomErrorCode
  /// The explanation from the server or the machine.
  package var message: String
  /// Whether the room cannot continue.
  package var isCritical: Bool
  /// The server's own code, if any.
  package var serverCode: Int?
  package var media: MediaID?

  package init(
    _ code: RoomErrorCode, _ message: String, isCritical: Bool = false, serverCode: Int? = nil,
    media: MediaID? = nil
  ) {
    self.code = code
    self.message = message
    self.isCritical = isCritical
    self.serverCode = serverCode
    self.media = media
  }
}

/// Why a room ended, with the service's explanation.
package struct RoomEnding: Hashable, Sendable, Codable {
  /// Who or what ended the room.
  package enum Reason: String, Hashable, Sendable, Codable {
    /// The local participant left, or the transport was lost.
    case disconnected
    /// The room no longer exists.
    case destroyed
    /// The service or a moderator removed the local participant.
    case kicked
  }

  package var reason: Reason
  /// The WebSocket close code or the server's own code, if any.
  package var code: Int?
  package var message: String

  package init(_ reason: Reason, code: Int? = nil, message: String = "") {
    self.reason = reason
    self.code = code
    self.message = message
  }
}
