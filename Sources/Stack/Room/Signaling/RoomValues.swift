package import Wire

/// How a room is entered.
package struct RoomJoin: Hashable, Sendable, Codable {
  /// The name or number of the room, the channel of a Sora server.
  package var room: String
  /// Which way media goes.
  package var role: ConnectionRole
  /// The name under which others see this participant; empty: none.
  package var displayName: String
  /// The wanted identifier; nil lets the server choose.
  package var participant: String?
  /// What the sign-in gave, or what the room asks for; nil: nothing.
  package var token: String?
  /// What the service or the others get, as JSON; nil: nothing.
  package var metadata: String?
  /// How many voices the service is to send at once; nil: all.
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

/// How far joining is, as far as the signaling knows.
package enum JoinStage: String, Hashable, Sendable, Codable {
  /// The transport is open.
  case opened
  /// The session at the server is there.
  case attached
  /// The server was asked for the room.
  case joining
}

/// The room as it is on arrival.
package struct JoinedRoom: Hashable, Sendable, Codable {
  /// The own identifier.
  package var participant: String
  /// What the server calls the session; nil when it gives no name.
  package var session: String?
  /// Who else is there, in the server's order.
  package var participants: [ParticipantInfo]

  package init(participant: String, session: String? = nil, participants: [ParticipantInfo] = []) {
    self.participant = participant
    self.session = session
    self.participants = participants
  }
}

/// A participant as the signaling knows it.
package struct ParticipantInfo: Hashable, Sendable, Codable {
  /// Names the participant in the room.
  package var id: String
  package var displayName: String
  /// What the participant or the service says of it, as JSON; nil: nothing.
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

/// Why a participant is no longer there.
package enum LeaveCause: String, Hashable, Sendable, Codable {
  case left, kicked, timedOut
}

/// Names published media in its room; the signaling machine gives the number and never uses it
/// twice in a session.
package struct MediaID: Hashable, Comparable, Sendable, Codable {
  package var number: UInt32
  package init(_ number: UInt32) { self.number = number }
  package static func < (left: MediaID, right: MediaID) -> Bool { left.number < right.number }
}

/// Names local media; the room gives the number.
package struct LocalMediaID: Hashable, Comparable, Sendable, Codable {
  package var number: UInt32
  package init(_ number: UInt32) { self.number = number }
  package static func < (left: LocalMediaID, right: LocalMediaID) -> Bool {
    left.number < right.number
  }
}

/// Media that a participant publishes.
package struct PublishedMedia: Hashable, Sendable, Codable {
  package var id: MediaID
  package var owner: String
  package var kind: MediaKind
  /// Whether its owner has it switched on.
  package var isActive: Bool
  /// Whether it is heard whoever speaks.
  package var isAlwaysOn: Bool
  /// What the owner says of it: `screen`, ...
  package var extraValue: String
  /// The layers that can be chosen; none when there is no choice.
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

/// Local media as it is told to the others.
package struct LocalMediaInfo: Hashable, Sendable, Codable {
  package var id: LocalMediaID
  package var kind: MediaKind
  package var isActive: Bool
  package var isAlwaysOn: Bool
  package var extraValue: String
  /// The rids of its layers, the smallest first; none: it has one.
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

/// Local media that is to be published.
package struct PublicationRequest: Hashable, Sendable, Codable {
  package var action: ActionID
  package var media: [LocalMediaInfo]

  package init(action: ActionID, media: [LocalMediaInfo]) {
    self.action = action
    self.media = media
  }
}

/// Which section of a description carries which local media.
package struct LocalMediaPlace: Hashable, Sendable, Codable {
  package var media: LocalMediaID
  package var mid: String

  package init(media: LocalMediaID, mid: String) {
    self.media = media
    self.mid = mid
  }
}

/// A layer of sent video as a server wants it (RFC 8853); nil leaves a limit to the sender.
package struct SendLayer: Hashable, Sendable, Codable {
  package var rid: String
  package var isActive: Bool
  /// In bits per second.
  package var maximumBitrate: UInt64?
  package var maximumFrameRate: Double?
  package var scaleResolutionDownBy: Double?
  /// As `L1T3` (W3C scalabilityMode).
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

/// The layer of a received video.
public enum VideoProfile: String, Hashable, Sendable, Codable, CaseIterable {
  /// There is no choice.
  case empty
  /// The smallest.
  case low
  /// One between.
  case mid
  /// The largest.
  case high
}

/// A message of a participant to others.
package struct UserMessage: Hashable, Sendable, Codable {
  /// Who sent it; empty when it is to be sent.
  package var sender: String
  /// To whom; none: to all.
  package var targets: [String]
  /// What kind of message the application says it is.
  package var type: String
  package var text: String

  package init(sender: String = "", targets: [String] = [], type: String = "normal", text: String) {
    self.sender = sender
    self.targets = targets
    self.type = type
    self.text = text
  }
}

/// Something that went wrong.
package struct SignalingFailure: Error, Hashable, Sendable, Codable {
  /// The number in the table of errors of rooms.
  package var code: RoomErrorCode
  /// What the server or the machine says, in words.
  package var message: String
  /// Whether the room cannot continue.
  package var isCritical: Bool
  /// The server's own number; nil when it gave none.
  package var serverCode: Int?
  /// The media that it is about; nil: none in particular.
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

/// Why a room is over.
package struct RoomEnding: Hashable, Sendable, Codable {
  /// What kind of end it is.
  package enum Reason: String, Hashable, Sendable, Codable {
    /// This side left, or the way to the server is lost.
    case disconnected
    /// The room is no longer there.
    case destroyed
    /// The service or a moderator ended it for this side.
    case kicked
  }

  package var reason: Reason
  /// The server's code: of a WebSocket close, or its own; nil when there is none.
  package var code: Int?
  package var message: String

  package init(_ reason: Reason, code: Int? = nil, message: String = "") {
    self.reason = reason
    self.code = code
    self.message = message
  }
}
