import RTP
import Wire

/// Assigns a recorded receiver's packets to streams, and the streams to sections.
struct PacketSorter {
  private var sections: [ReenactmentPlan.Section]
  private var streams: [ReenactmentPlan.Stream] = []
  private var places: [UInt32: Int] = [:]
  private var packets: [(at: Instant, packet: ReenactmentPlan.Packet)] = []
  private var unexplained = 0
  private let connected: Instant?
  /// Each stream's RTP timestamps, by which retransmissions are matched: they have the timestamps
  /// of the packets that they repeat.
  private var timestamps: [[UInt32: Int]] = []
  private let midIDs: Set<UInt8>
  private let layerIDs: Set<UInt8>

  /// The maximum number of timestamps per stream.
  private static let timestampsMaximum = 50_000

  init(_ facts: ReceiverFacts) {
    sections = facts.sections
    connected = facts.connected
    func identifiers(_ uri: HeaderExtensionURI) -> Set<UInt8> {
      Set(facts.sections.flatMap { $0.extensions.filter { $0.value == uri.rawValue }.map(\.key) })
    }
    midIDs = identifiers(.mid)
    layerIDs = identifiers(.streamID)
  }

  /// Adds a received packet.
  mutating func add(_ bytes: [UInt8], isRTCP: Bool, at: Instant) {
    if !isRTCP {
      guard let header = try? RTPHeader(parsing: bytes.span.bytes), sort(header, bytes) else {
        unexplained += 1
        return
      }
    }
    packets.append(
      (at, ReenactmentPlan.Packet(distance: .zero, isRTCP: isRTCP, bytes: bytes)))
  }

  /// Assigns a packet to its stream, creating it if necessary; returns false if the payload type is
  /// unknown.
  private mutating func sort(_ header: RTPHeader, _ bytes: [UInt8]) -> Bool {
    let type = header.payloadType
    let place: Int
    if let known = places[header.ssrc] {
      place = known
    } else {
      guard let section = section(of: header, bytes) else { return false }
      place = streams.count
      places[header.ssrc] = place
      streams.append(
        ReenactmentPlan.Stream(
          ssrc: header.ssrc, section: section,
          repairs: sections[section].repairs[header.ssrc],
          layer: value(layerIDs, header, bytes)))
      timestamps.append([:])
    }
    guard sections[streams[place].section].format(type) != nil else { return false }
    streams[place].packets += 1
    var types = [type]
    if sections[streams[place].section].format(type)?.isRedundancy == true {
      types += RedundantBlocks(bytes[header.payload]).types
    }
    for type in types where !streams[place].payloadTypes.contains(type) {
      streams[place].payloadTypes.append(type)
    }
    if timestamps[place].count < PacketSorter.timestampsMaximum {
      timestamps[place][header.timestamp, default: 0] += 1
    }
    return true
  }

  /// Returns a new stream's section: by announced SSRC, by MID, or by payload type.
  private func section(of header: RTPHeader, _ bytes: [UInt8]) -> Int? {
    let able = sections.indices.filter { sections[$0].format(header.payloadType) != nil }
    if let place = able.first(where: { sections[$0].announced.contains(header.ssrc) }) {
      return place
    }
    if let mid = value(midIDs, header, bytes),
      let place = able.first(where: { sections[$0].mid == mid })
    {
      return place
    }
    // A section that announces SSRCs would have announced this one.
    return able.first { sections[$0].announced.isEmpty } ?? able.first
  }

  /// Returns the text in the header extension with one of these ids; nil if there is none.
  private func value(_ ids: Set<UInt8>, _ header: RTPHeader, _ bytes: [UInt8]) -> String? {
    guard !ids.isEmpty else { return nil }
    var elements = HeaderExtensionElements(header)
    while let (id, range) = elements.next(in: bytes.span.bytes) {
      if ids.contains(id), !range.isEmpty { return String(decoding: bytes[range], as: UTF8.self) }
    }
    return nil
  }

  // MARK: The end

  /// Returns the sections with streams, the streams, the packets in order of arrival, and the
  /// number of packets with unknown payload types.
  func finished() -> (
    [ReenactmentPlan.Section], [ReenactmentPlan.Stream], [ReenactmentPlan.Packet], Int
  ) {
    var streams = streams
    for place in streams.indices where streams[place].repairs == nil && isRetransmission(place) {
      guard let repaired = repaired(by: place) else { continue }
      streams[place].repairs = streams[repaired].ssrc
      streams[place].section = streams[repaired].section
    }
    // Sections without received packets are dropped.
    let used = sections.indices.filter { index in streams.contains { $0.section == index } }
    for place in streams.indices {
      streams[place].section = used.firstIndex(of: streams[place].section) ?? 0
    }
    let origin = connected ?? packets.map(\.at).min() ?? .zero
    // Packets that waited for keys were added late, so they are sorted by their arrival.
    let ordered = packets.enumerated().map { place, entry in
      (distance: max(.zero, entry.at - origin), place: place)
    }.sorted { ($0.distance, $0.place) < ($1.distance, $1.place) }
    let sorted = ordered.map { entry in
      var packet = packets[entry.place].packet
      packet.distance = entry.distance
      return packet
    }
    return (used.map { sections[$0] }, streams, sorted, unexplained)
  }

  private func isRetransmission(_ place: Int) -> Bool {
    let section = sections[streams[place].section]
    return streams[place].payloadTypes.allSatisfy {
      section.format($0)?.isRetransmission == true
    }
  }

  /// Returns the media stream of the same kind that shares the most timestamps with a repair
  /// stream.
  private func repaired(by place: Int) -> Int? {
    let kind = sections[streams[place].section].kind
    let rated = streams.indices.filter {
      $0 != place && sections[streams[$0].section].kind == kind && !isRetransmission($0)
    }.map { other in
      (other, timestamps[place].keys.count { timestamps[other][$0] != nil })
    }
    let best = rated.max { ($0.1, -$0.0) < ($1.1, -$1.0) }
    return best?.0
  }
}
