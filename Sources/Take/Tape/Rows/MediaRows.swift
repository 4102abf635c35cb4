package import Wire

/// A negotiated track in one direction.
package struct TrackRow: StampedRow {
  package static var table: Table { .track }
  package static var name: String { "track" }

  package var peer = PeerNumber()
  package var at = Instant.zero
  package var track: UInt32 = 0
  package var mid = ""
  package var kind = ""
  package var direction = Direction.inbound
  package var ssrc: UInt32?
  package var codec = ""
  package var payloadType: UInt8 = 0
  package var clockRate: UInt32 = 0
  package var transportSequenceID: UInt8 = 0

  package static var blank: Self { Self() }

  package mutating func visit(_ columns: inout some ColumnVisitor) {
    columns.column("peer", &peer)
    columns.column("at_ns", &at)
    columns.column("track", &track)
    columns.column("mid", &mid)
    columns.column("kind", &kind)
    columns.column("direction", &direction)
    columns.column("ssrc", &ssrc)
    columns.column("codec", &codec)
    columns.column("payload_type", &payloadType)
    columns.column("clock_rate", &clockRate)
    columns.column("transport_sequence_id", &transportSequenceID)
  }
}

/// A block of a decrypted RTCP packet.
package struct RTCPRow: StampedRow {
  package static var table: Table { .rtcp }
  package static var name: String { "rtcp" }
  /// The names of packet types that conditions and filters accept; other types are named by two
  /// numbers, as `pt-fmt`.
  package static let types = [
    "sr", "rr", "sdes", "bye", "nack", "pli", "fir", "remb", "transport-cc", "xr",
  ]

  package var peer = PeerNumber()
  package var at = Instant.zero
  package var direction = Direction.inbound
  package var type = ""
  package var ssrc: UInt32 = 0
  package var fields = ""

  package static var blank: Self { Self() }

  package mutating func visit(_ columns: inout some ColumnVisitor) {
    columns.column("peer", &peer)
    columns.column("at_ns", &at)
    columns.column("direction", &direction)
    columns.column("type", &type)
    columns.column("ssrc", &ssrc)
    columns.column("fields", &fields)
  }
}

/// Properties that many frames have in common; frames refer to the row.
package struct FormatRow: TableRow, Hashable {
  package static var table: Table { .format }
  package static var name: String { "format" }
  package static var isNumbered: Bool { true }

  package var number: Int64 = 0
  package var peer = PeerNumber()
  package var track: UInt32 = 0
  package var kind = ""
  package var direction = Direction.inbound
  package var codec = ""
  package var ssrc: UInt32 = 0
  package var outcome = ""
  package var isKey = false
  package var isVoice = false
  package var width: Int?
  package var height: Int?
  package var channels: Int?
  package var samples: Int?

  package static var blank: Self { Self() }

  package mutating func visit(_ columns: inout some ColumnVisitor) {
    columns.column("format", &number)
    columns.column("peer", &peer)
    columns.column("track", &track)
    columns.column("kind", &kind)
    columns.column("direction", &direction)
    columns.column("codec", &codec)
    columns.column("ssrc", &ssrc)
    columns.column("outcome", &outcome)
    columns.column("key", &isKey)
    columns.column("voice", &isVoice)
    columns.column("width", &width)
    columns.column("height", &height)
    columns.column("channels", &channels)
    columns.column("samples", &samples)
  }

  /// Hashes only the peer, the SSRC and `isKey`: every frame looks up its format, and few formats
  /// agree in these three values.
  package func hash(into hasher: inout Hasher) {
    hasher.combine(UInt64(peer.number) << 32 | UInt64(ssrc))
    hasher.combine(isKey)
  }
}

/// A frame that was encoded, received, decoded or concealed.
package struct FrameRow: TableRow {
  package static var table: Table { .frame }
  package static var name: String { "frame" }
  package static var storageName: String { "frame_store" }

  package var at = Instant.zero
  package var format = Reference<FormatRow>()
  package var rtpTime = WireNumber<UInt32>()
  package var size: Int = 0
  package var quantiser: Int = 0
  package var audioLevel: UInt8?
  package var peak: UInt16 = 0
  package var energy: UInt64 = 0
  package var digest: [UInt8]?
  package var bytes: [UInt8]?

  package static var blank: Self { Self() }

  package mutating func visit(_ columns: inout some ColumnVisitor) {
    columns.column("at_ns", &at)
    columns.column("format", &format)
    columns.column("rtp_time", &rtpTime)
    columns.column("size", &size)
    columns.column("quantiser", &quantiser)
    columns.column("audio_level", &audioLevel)
    columns.column("peak", &peak)
    columns.column("energy", &energy)
    columns.column(ofCodec: "digest", &digest)
    columns.column("bytes", &bytes, in: .media)
  }
}

extension FrameRow {
  /// Reads a row without its bytes, for loops over all frames of a take; nil if the row is invalid.
  package static func withoutBytes(_ rows: borrowing RowList, _ row: Int) -> FrameRow? {
    // The concrete type lets the compiler specialize the visit to its columns.
    FrameRow(withoutBlobsOf: rows, row)
  }
}

/// The level of a track over 100 ms, or between two reports of another stack.
package struct LevelRow: StampedRow {
  package static var table: Table { .level }
  package static var name: String { "level" }

  package var peer = PeerNumber()
  package var at = Instant.zero
  package var track: UInt32 = 0
  package var direction = Direction.inbound
  package var energy: UInt64 = 0
  package var samples: Int64 = 0
  package var peak: UInt16 = 0
  package var meter: UInt16 = 0
  package var senderLevel: UInt8?
  package var isVoice = false

  package static var blank: Self { Self() }

  package mutating func visit(_ columns: inout some ColumnVisitor) {
    columns.column("peer", &peer)
    columns.column("at_ns", &at)
    columns.column("track", &track)
    columns.column("direction", &direction)
    columns.column("energy", &energy)
    columns.column("samples", &samples)
    columns.column("peak", &peak)
    columns.column("meter", &meter)
    columns.column("sender_level", &senderLevel)
    columns.column("voice", &isVoice)
  }
}

/// The level over 100 ms of a source that contributes to a mixed track.
package struct ContributionRow: StampedRow {
  package static var table: Table { .contribution }
  package static var name: String { "contribution" }

  package var peer = PeerNumber()
  package var at = Instant.zero
  package var track: UInt32 = 0
  package var direction = Direction.inbound
  package var contributor: UInt32 = 0
  package var level: Int?

  package static var blank: Self { Self() }

  package mutating func visit(_ columns: inout some ColumnVisitor) {
    columns.column("peer", &peer)
    columns.column("at_ns", &at)
    columns.column("track", &track)
    columns.column("direction", &direction)
    columns.column("contributor", &contributor)
    columns.column("dbov", &level)
  }
}

/// A period in which a track or contributing source had speech.
package struct SpeechRow: StampedRow {
  package static var table: Table { .speech }
  package static var name: String { "speech" }

  package var peer = PeerNumber()
  package var at = Instant.zero
  package var track: UInt32 = 0
  package var direction = Direction.inbound
  package var contributor: UInt32?
  package var phase = ""
  package var from = Instant.zero
  package var to = Instant.zero
  package var blocks: Int = 0
  package var decibels: Int = 0

  package static var blank: Self { Self() }

  package mutating func visit(_ columns: inout some ColumnVisitor) {
    columns.column("peer", &peer)
    columns.column("at_ns", &at)
    columns.column("track", &track)
    columns.column("direction", &direction)
    columns.column("contributor", &contributor)
    columns.column("phase", &phase)
    columns.column("from_ns", &from)
    columns.column("to_ns", &to)
    columns.column("blocks", &blocks)
    columns.column("decibels", &decibels)
  }
}
