package import Wire

/// A state machine's change of state.
package struct StateRow: StampedRow {
  package static var table: Table { .state }
  package static var name: String { "state" }

  package var peer = PeerNumber()
  package var at = Instant.zero
  package var machine = ""
  package var from = ""
  package var to = ""

  package static var blank: Self { Self() }

  package mutating func visit(_ columns: inout some ColumnVisitor) {
    columns.column("peer", &peer)
    columns.column("at_ns", &at)
    columns.column("machine", &machine)
    columns.column("from_state", &from)
    columns.column("to_state", &to)
  }
}

/// An ICE candidate that was gathered locally or received.
package struct CandidateRow: StampedRow {
  package static var table: Table { .candidate }
  package static var name: String { "candidate" }

  package var peer = PeerNumber()
  package var at = Instant.zero
  package var type = ""
  package var candidateType = ""
  package var foundation = ""
  package var component: UInt16 = 0
  package var `protocol` = ""
  package var priority: UInt32 = 0
  package var address = ""
  package var port: UInt16 = 0
  package var relatedAddress: String?
  package var relatedPort: UInt16?
  package var usernameFragment: String?
  package var extensions = ""

  package static var blank: Self { Self() }

  package mutating func visit(_ columns: inout some ColumnVisitor) {
    columns.column("peer", &peer)
    columns.column("at_ns", &at)
    columns.column("type", &type)
    columns.column("candidate_type", &candidateType)
    columns.column("foundation", &foundation)
    columns.column("component", &component)
    columns.column("protocol", &`protocol`)
    columns.column("priority", &priority)
    columns.column("address", &address)
    columns.column("port", &port)
    columns.column("related_address", &relatedAddress)
    columns.column("related_port", &relatedPort)
    columns.column("username_fragment", &usernameFragment)
    columns.column("extensions", &extensions)
  }
}

/// An ICE candidate pair, when it was formed or changed.
package struct CandidatePairRow: StampedRow {
  package static var table: Table { .candidatePair }
  package static var name: String { "candidate_pair" }

  package var peer = PeerNumber()
  package var at = Instant.zero
  package var pair: UInt32 = 0
  package var local = ""
  package var localType = ""
  package var remote = ""
  package var remoteType = ""
  package var base = ""
  package var state = ""
  package var nominated = false
  package var selected = false
  package var priority: UInt64 = 0
  package var requestsSent: UInt64 = 0
  package var requestsReceived: UInt64 = 0
  package var responsesSent: UInt64 = 0
  package var responsesReceived: UInt64 = 0
  package var consentRequestsSent: UInt64 = 0
  package var currentRoundTrip: Double?
  package var totalRoundTrip: Double = 0

  package static var blank: Self { Self() }

  package mutating func visit(_ columns: inout some ColumnVisitor) {
    columns.column("peer", &peer)
    columns.column("at_ns", &at)
    columns.column("pair", &pair)
    columns.column("local", &local)
    columns.column("local_type", &localType)
    columns.column("remote", &remote)
    columns.column("remote_type", &remoteType)
    columns.column("base", &base)
    columns.column("state", &state)
    columns.column("nominated", &nominated)
    columns.column("selected", &selected)
    columns.column("priority", &priority)
    columns.column("requests_sent", &requestsSent)
    columns.column("requests_received", &requestsReceived)
    columns.column("responses_sent", &responsesSent)
    columns.column("responses_received", &responsesReceived)
    columns.column("consent_requests_sent", &consentRequestsSent)
    columns.column("current_round_trip_time", &currentRoundTrip)
    columns.column("total_round_trip_time", &totalRoundTrip)
  }
}

/// A data channel, when it opened or changed state.
package struct ChannelRow: StampedRow {
  package static var table: Table { .channel }
  package static var name: String { "channel" }

  package var peer = PeerNumber()
  package var at = Instant.zero
  package var channel: UInt32 = 0
  package var state = ""
  package var isRemote = false
  package var label = ""
  package var `protocol` = ""
  package var id: UInt16?
  package var ordered = false
  package var maxPacketLifeTime: UInt16?
  package var maxRetransmits: UInt16?
  package var negotiated = false
  package var priority: UInt16 = 0
  package var messagesSent: UInt64 = 0
  package var bytesSent: UInt64 = 0
  package var messagesReceived: UInt64 = 0
  package var bytesReceived: UInt64 = 0

  package static var blank: Self { Self() }

  package mutating func visit(_ columns: inout some ColumnVisitor) {
    columns.column("peer", &peer)
    columns.column("at_ns", &at)
    columns.column("channel", &channel)
    columns.column("state", &state)
    columns.column("remote", &isRemote)
    columns.column("label", &label)
    columns.column("protocol", &`protocol`)
    columns.column("id", &id)
    columns.column("ordered", &ordered)
    columns.column("max_packet_life_time", &maxPacketLifeTime)
    columns.column("max_retransmits", &maxRetransmits)
    columns.column("negotiated", &negotiated)
    columns.column("priority", &priority)
    columns.column("messages_sent", &messagesSent)
    columns.column("bytes_sent", &bytesSent)
    columns.column("messages_received", &messagesReceived)
    columns.column("bytes_received", &bytesReceived)
  }
}

/// A message that was sent or received on a data channel.
package struct MessageRow: StampedRow {
  package static var table: Table { .message }
  package static var name: String { "message" }
  package static var storageName: String { "message_store" }

  package var peer = PeerNumber()
  package var at = Instant.zero
  package var direction = Direction.inbound
  package var channel: UInt32 = 0
  package var call: UInt32?
  package var isBinary = false
  package var size: Int = 0
  package var digest: [UInt8]?
  package var bytes: [UInt8]?

  package static var blank: Self { Self() }

  package mutating func visit(_ columns: inout some ColumnVisitor) {
    columns.column("peer", &peer)
    columns.column("at_ns", &at)
    columns.column("direction", &direction)
    columns.column("channel", &channel)
    columns.column("call", &call)
    columns.column("binary", &isBinary)
    columns.column("size", &size)
    columns.column("digest", &digest)
    columns.column("bytes", &bytes)
  }
}

// MARK: - NetworkRows

/// The two addresses of a peer's packets in one direction; packets refer to the row.
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

/// A datagram; for RTP, with the header fields that SRTP does not encrypt.
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
  /// The ECN field in the IP header of a received datagram; nil if unknown.
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

/// A packet that another leg of the relay received and decrypted.
package struct RelayedRow: StampedRow {
  package static var table: Table { .relayed }
  package static var name: String { "relayed" }
  package static var storageName: String { "relayed_store" }
  package static var since: Int64 { 8 }
  /// The prefix of `kind` in `capture` rows that contain relayed packets, as before format 8.
  package static let formerKindPrefix = "relayed "

  package var peer = PeerNumber()
  package var at = Instant.zero
  package var `protocol` = ""
  package var transport = 0
  package var bytes: [UInt8] = []

  package static var blank: Self { Self() }

  package mutating func visit(_ columns: inout some ColumnVisitor) {
    columns.column("peer", &peer)
    columns.column("at_ns", &at)
    columns.column("protocol", &`protocol`)
    columns.column("transport", &transport)
    columns.column("bytes", &bytes, in: .wire)
  }
}

/// A peer's request to the operating system, or its result.
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
  /// The network types (W3C networkType) of the addresses, in the same order; nil if unknown.
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
