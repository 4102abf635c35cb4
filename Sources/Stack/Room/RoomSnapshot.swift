package import Wire

/// The state of a room as plain data.
package struct RoomSnapshot: Sendable {
  /// A present or former participant.
  package struct Participant: Sendable {
    package var number: Int
    package var id: String
    package var name: String
    package var isLocal: Bool
    package var isPresent: Bool
    package var media: [PublishedMedia]
  }

  /// Local media.
  package struct OwnMedia: Sendable {
    package var info: LocalMediaInfo
    package var phase: String
    package var media: UInt32?
    package var transceiver: UInt32?
  }

  /// Received media.
  package struct Receiver: Sendable {
    package var media: UInt32
    package var isVideo: Bool
    package var phase: String
    package var profile: VideoProfile?
    package var isPaused: Bool
    package var isMuted: Bool
    package var isOccupant: Bool
    package var connection: UInt32?
    package var mid: String?
    package var transceiver: UInt32?
  }

  /// A connection.
  package struct Link: Sendable {
    package var number: UInt32
    package var role: ConnectionRole
    package var state: PeerState
    package var peer: UInt32
    package var restarts: Int
  }

  /// A name and value of the protocol's state.
  package struct Word: Sendable {
    package var name: String
    package var value: String
  }

  package var state: RoomState
  package var progress: Int
  package var participants: [Participant]
  package var ownMedia: [OwnMedia]
  package var receivers: [Receiver]
  package var receiverCount: Int
  package var isMuted: Bool
  package var connections: [Link]
  package var awaitedAnswers: Int
  package var screenShare: ExtensionStatus
  /// The protocol's state as names and values.
  package var signaling: [Word]
  /// The deadlines of all parts, earliest first.
  package var wakes: [(layer: String, at: Instant)]
}

extension RoomMachine {
  /// The state of all parts.
  package var snapshot: RoomSnapshot {
    let wakes: [(layer: String, at: Instant?)] = [
      ("signaling", signalingDeadline), ("life", life.deadline), ("token", token.deadline),
      ("connections", links.deadline), ("actions", actions.deadline),
      ("screen share", share.deadline),
    ]
    return RoomSnapshot(
      state: life.state, progress: life.progress,
      participants: people.people.map { person in
        RoomSnapshot.Participant(
          number: person.number, id: person.id, name: person.name, isLocal: person.isLocal,
          isPresent: person.isPresent, media: people.media(of: person.id))
      },
      ownMedia: localMedia.entries.map { entry in
        RoomSnapshot.OwnMedia(
          info: entry.info, phase: entry.phase.rawValue, media: entry.media?.number,
          transceiver: entry.transceiver)
      },
      receivers: pool.receivers.map { receiver in
        RoomSnapshot.Receiver(
          media: receiver.media.number, isVideo: receiver.isVideo,
          phase: receiver.phase.rawValue, profile: receiver.profile,
          isPaused: receiver.isPaused, isMuted: receiver.isMuted,
          isOccupant: receiver.isOccupant, connection: receiver.connection?.number,
          mid: receiver.mid, transceiver: receiver.transceiver)
      },
      receiverCount: pool.size, isMuted: pool.isMuted,
      connections: links.connections.map { link in
        RoomSnapshot.Link(
          number: link.id.number, role: link.role, state: link.state, peer: link.peer,
          restarts: link.restarts)
      },
      awaitedAnswers: actions.actions.count, screenShare: share.status,
      signaling: signalingStatus,
      wakes: wakes.compactMap { layer, at in at.map { (layer, $0) } }.sorted { $0.at < $1.at })
  }
}
