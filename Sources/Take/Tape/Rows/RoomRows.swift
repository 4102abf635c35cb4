package import Wire

/// A participant of a room who entered or left.
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

/// Media of a participant that began or ceased to be carried by a transceiver of a peer.
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
