package import Wire

/// A call of the application programming interface.
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

/// The answer to a call.
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

/// A message of the application's signaling channel.
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

/// Audio or video that the application handed to a sender.
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
  /// When a video frame was taken, by the clock of its source.
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

/// Captured media, equal ones once.
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

/// What an object of getStats said.
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

/// Something else that a peer told its application.
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
