package import Wire

/// The two ends that datagrams of a peer went between, written down once.
package struct PathRow: TableRow {
  package static var table: Table { .path }
  package static var name: String { "path" }
  package static var isNumbered: Bool { true }

  package var number: Int64 = 0
  package var peer = PeerNumber()
  package var direction = Direction.inbound
  package var local = ""
  package var remote = ""

  package static var blank: Self { Self() }

  package mutating func visit(_ columns: inout some ColumnVisitor) {
    columns.column("path", &number)
    columns.column("peer", &peer)
    columns.column("direction", &direction)
    columns.column("local", &local)
    columns.column("remote", &remote)
  }
}

/// A datagram, with what its RTP header says in the clear.
package struct PacketRow: TableRow {
  package static var table: Table { .packet }
  package static var name: String { "packet" }
  package static var storageName: String { "packet_store" }

  package var at = Instant.zero
  package var path = Reference<PathRow>()
  package var ssrc: WireNumber<UInt32>?
  package var markerAndType: MarkerAndPayloadType?
  package var sequence: WireNumber<UInt16>?
  package var rtpTime: WireNumber<UInt32>?
  package var transportSequence: WireNumber<UInt16>?
  package var bytes: [UInt8] = []
  /// The ECN field of the IP header of what came; nil where that is not known.
  package var ecn: UInt8?

  package static var blank: Self { Self() }

  package mutating func visit(_ columns: inout some ColumnVisitor) {
    columns.column("at_ns", &at)
    columns.column("path", &path)
    columns.column("ssrc", &ssrc)
    columns.column("marker_type", &markerAndType)
    columns.column("sequence", &sequence)
    columns.column("rtp_time", &rtpTime)
    columns.column("transport_sequence", &transportSequence)
    columns.column("bytes", &bytes, in: .wire)
    columns.column("ecn", &ecn, since: 7)
  }
}

/// What a peer asked of the operating system, and what it was told.
package struct NetworkRow: StampedRow {
  package static var table: Table { .network }
  package static var name: String { "network" }

  package var peer = PeerNumber()
  package var at = Instant.zero
  package var direction = Direction.inbound
  package var kind = ""
  package var request: UInt32?
  package var address: String?
  package var remote: String?
  package var code: Int32?
  package var packets: Int?
  package var bytes: Int?
  /// What kinds of networks the addresses are of (W3C networkType), in their order.
  package var networkTypes: String?

  package static var blank: Self { Self() }

  package mutating func visit(_ columns: inout some ColumnVisitor) {
    columns.column("peer", &peer)
    columns.column("at_ns", &at)
    columns.column("direction", &direction)
    columns.column("kind", &kind)
    columns.column("request", &request)
    columns.column("address", &address)
    columns.column("remote", &remote)
    columns.column("code", &code)
    columns.column("packets", &packets, since: 3)
    columns.column("bytes", &bytes, since: 3)
    columns.column("network_types", &networkTypes, since: 7)
  }
}
