package import Wire

/// A peer; for an endpoint, the row is the input of its first step.
package struct PeerRow: StampedRow {
  package static var table: Table { .peer }
  package static var name: String { "peer" }

  package var peer = PeerNumber()
  package var at = Instant.zero
  package var label = ""
  package var role = ""
  package var seed: [UInt8] = []
  package var wallClock: Int64 = 0
  package var configuration = ""
  package var actor: ActorNumber?

  package static var blank: Self { Self() }

  package mutating func visit(_ columns: inout some ColumnVisitor) {
    columns.column("peer", &peer)
    columns.column("at_ns", &at)
    columns.column("label", &label)
    columns.column("role", &role)
    columns.column("seed", &seed)
    columns.column("wall_clock_ns", &wallClock)
    columns.column("configuration", &configuration)
    columns.column("actor", &actor, since: 4)
  }
}

/// The offset from a peer's own times to the take's.
package struct ClockRow: StampedRow {
  package static var table: Table { .clock }
  package static var name: String { "clock" }
  package static var since: Int64 { 3 }

  package var peer = PeerNumber()
  package var at = Instant.zero
  package var added: Int64 = 0

  package static var blank: Self { Self() }

  package mutating func visit(_ columns: inout some ColumnVisitor) {
    columns.column("peer", &peer)
    columns.column("at_ns", &at)
    columns.column("added_ns", &added)
  }
}

/// An actor that is not an endpoint; the row is the input of its first step.
package struct ActorRow: TableRow {
  package static var table: Table { .actor }
  package static var name: String { "actor" }
  package static var storageName: String { "actor_store" }
  package static var since: Int64 { 4 }

  package var actor = ActorNumber()
  package var at = Instant.zero
  package var kind: UInt8 = 0
  package var label = ""
  package var configuration = ""
  package var seed: [UInt8] = []

  package static var blank: Self { Self() }

  package mutating func visit(_ columns: inout some ColumnVisitor) {
    columns.column("actor", &actor)
    columns.column("at_ns", &at)
    columns.column("kind", &kind)
    columns.column("label", &label)
    columns.column("configuration", &configuration)
    columns.column("seed", &seed)
  }
}

/// A period in which an actor could not see everything, with the reason.
package struct CoverageRow: TableRow {
  package static var table: Table { .coverage }
  package static var name: String { "coverage" }
  package static var since: Int64 { 4 }

  package var actor = ActorNumber()
  package var at = Instant.zero
  package var peer: PeerNumber?
  package var from = Instant.zero
  package var to = Instant.zero
  package var what = ""
  package var reason = ""

  package static var blank: Self { Self() }

  package mutating func visit(_ columns: inout some ColumnVisitor) {
    columns.column("actor", &actor)
    columns.column("at_ns", &at)
    columns.column("peer", &peer)
    columns.column("from_ns", &from)
    columns.column("to_ns", &to)
    columns.column("what", &what)
    columns.column("reason", &reason)
  }
}

// MARK: - CallRows

/// An API call with its arguments; `CallReplyRow` has the result.
package struct CallRequestRow: StampedRow {
  package static var table: Table { .callRequest }
  package static var name: String { "call_request" }

  package var peer = PeerNumber()
  package var at = Instant.zero
  package var call: UInt32 = 0
  package var name = ""
  package var arguments = ""

  package static var blank: Self { Self() }

  package mutating func visit(_ columns: inout some ColumnVisitor) {
    columns.column("peer", &peer)
    columns.column("at_ns", &at)
    columns.column("call", &call)
    columns.column("name", &name)
    columns.column("arguments", &arguments)
  }
}

/// The result of the call with the same number.
package struct CallReplyRow: StampedRow {
  package static var table: Table { .callReply }
  package static var name: String { "call_reply" }

  package var peer = PeerNumber()
  package var at = Instant.zero
  package var call: UInt32 = 0
  package var reply: String?
  package var error: String?

  package static var blank: Self { Self() }

  package mutating func visit(_ columns: inout some ColumnVisitor) {
    columns.column("peer", &peer)
    columns.column("at_ns", &at)
    columns.column("call", &call)
    columns.column("reply", &reply)
    columns.column("error", &error)
  }
}

/// A signaling message that the application sent or received.
package struct SignalingRow: StampedRow {
  package static var table: Table { .signaling }
  package static var name: String { "signaling" }

  package var peer = PeerNumber()
  package var at = Instant.zero
  package var direction = Direction.inbound
  package var transport = ""
  package var type = ""
  package var message = ""

  package static var blank: Self { Self() }

  package mutating func visit(_ columns: inout some ColumnVisitor) {
    columns.column("peer", &peer)
    columns.column("at_ns", &at)
    columns.column("direction", &direction)
    columns.column("transport", &transport)
    columns.column("type", &type)
    columns.column("message", &message)
  }
}

/// Audio or video that the application passed to a sender, encoded or raw, or that an audio session
/// exchanged with its device.
package struct CaptureRow: StampedRow {
  package static var table: Table { .capture }
  package static var name: String { "capture" }

  package var peer = PeerNumber()
  package var at = Instant.zero
  package var track: UInt32 = 0
  package var kind = ""
  package var width: Int?
  package var height: Int?
  package var channels: Int?
  package var samples: Int?
  package var content: Reference<ContentRow>?
  /// The time at which a video frame was captured, on its source's clock; nil if it is the row's
  /// time.
  package var timestamp: Int64?

  package static var blank: Self { Self() }

  package mutating func visit(_ columns: inout some ColumnVisitor) {
    columns.column("peer", &peer)
    columns.column("at_ns", &at)
    columns.column("track", &track)
    columns.column("kind", &kind)
    columns.column("width", &width)
    columns.column("height", &height)
    columns.column("channels", &channels)
    columns.column("samples", &samples)
    columns.column("content", &content)
    columns.column("timestamp_ns", &timestamp, since: 5)
  }
}

extension CaptureRow {
  /// Whether the row is a relayed packet, as before format 8; newer takes have a table for them.
  package var isRelayed: Bool { kind.hasPrefix(RelayedRow.formerKindPrefix) }
}

/// Captured media, stored once even if it is used several times.
package struct ContentRow: TableRow {
  package static var table: Table { .content }
  package static var name: String { "content" }
  package static var isNumbered: Bool { true }
  package static var codedSince: Int64? { 5 }

  package var number: Int64 = 0
  package var digest: [UInt8] = []
  package var bytes: [UInt8] = []

  package static var blank: Self { Self() }

  package mutating func visit(_ columns: inout some ColumnVisitor) {
    columns.column("content", &number)
    columns.column("digest", &digest)
    columns.column("bytes", &bytes)
  }
}

/// A stats object, which is written again whenever one of its members changes.
package struct StatRow: StampedRow {
  package static var table: Table { .stat }
  package static var name: String { "stat" }

  package var peer = PeerNumber()
  package var at = Instant.zero
  package var call: UInt32 = 0
  package var id = ""
  package var type = ""
  package var timestamp: Double = 0
  package var members = ""

  package static var blank: Self { Self() }

  package mutating func visit(_ columns: inout some ColumnVisitor) {
    columns.column("peer", &peer)
    columns.column("at_ns", &at)
    columns.column("call", &call)
    columns.column("id", &id)
    columns.column("type", &type)
    columns.column("timestamp_ms", &timestamp)
    columns.column("members", &members)
  }
}

/// An event that has no table of its own.
package struct EventRow: StampedRow {
  package static var table: Table { .event }
  package static var name: String { "event" }

  package var peer = PeerNumber()
  package var at = Instant.zero
  package var type = ""
  package var detail = ""

  package static var blank: Self { Self() }

  package mutating func visit(_ columns: inout some ColumnVisitor) {
    columns.column("peer", &peer)
    columns.column("at_ns", &at)
    columns.column("type", &type)
    columns.column("detail", &detail)
  }
}

// MARK: - RoomRows

/// A participant's arrival in a room, or departure from it.
package struct PresenceRow: TableRow {
  package static var table: Table { .presence }
  package static var name: String { "presence" }
  package static var since: Int64 { 6 }

  package var actor = ActorNumber()
  package var at = Instant.zero
  package var participant = 0
  package var id: String?
  package var name: String?
  package var isLocal = false
  package var isPresent = false

  package static var blank: Self { Self() }

  package mutating func visit(_ columns: inout some ColumnVisitor) {
    columns.column("actor", &actor)
    columns.column("at_ns", &at)
    columns.column("participant", &participant)
    columns.column("id", &id)
    columns.column("name", &name)
    columns.column("local", &isLocal)
    columns.column("present", &isPresent)
  }
}

/// The beginning or end of a period in which a transceiver carried a participant's media.
package struct CarriageRow: StampedRow {
  package static var table: Table { .carriage }
  package static var name: String { "carriage" }
  package static var since: Int64 { 6 }

  package var peer = PeerNumber()
  package var at = Instant.zero
  package var actor = ActorNumber()
  package var participant = 0
  package var media: UInt32?
  package var kind = ""
  package var direction = Direction.inbound
  package var track: UInt32 = 0
  package var extraValue = ""
  package var isCarried = false

  package static var blank: Self { Self() }

  package mutating func visit(_ columns: inout some ColumnVisitor) {
    columns.column("peer", &peer)
    columns.column("at_ns", &at)
    columns.column("actor", &actor)
    columns.column("participant", &participant)
    columns.column("media", &media)
    columns.column("kind", &kind)
    columns.column("direction", &direction)
    columns.column("track", &track)
    columns.column("extra_value", &extraValue)
    columns.column("carried", &isCarried)
  }
}
