package import Wire

/// A peer: the input of an endpoint's first step.
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

/// What was added to the times of a peer.
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

/// An actor that is no endpoint: the input of its first step.
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

/// What an actor could not see.
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
