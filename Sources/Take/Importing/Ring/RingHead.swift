import ICE
import Observer
package import Wire

/// The packets in one direction of a path that have left the ring but are needed to read later
/// packets: DTLS handshakes, and the last messages of ICE and of a TURN server.
struct RingHead: Sendable {
  /// The roles of retained packets, in the order in which an observer must receive them.
  ///
  /// The messages that set up a relay's channels come before the packets in these channels. The
  /// checks that assign a path to a call come before the handshakes.
  enum Role: Int, Sendable {
    case relay, check, handshake
  }

  private struct Retained: Sendable {
    var packet: RingPacket
    var role: Role
    /// The key by which a packet replaces an earlier one; nil if every packet is kept.
    var key: UInt32?
  }

  private var retained: [Retained] = []
  private var handshakeBytes = 0

  /// The maximum number of retained messages to or from a relay: allocation, channels, permissions.
  private static let relayMaximum = 64
  /// The maximum size of handshakes in bytes; a handshake with a certificate chain needs about
  /// 10,000.
  private static let handshakeMaximum = 48 << 10

  var byteCount: Int { retained.reduce(0) { $0 + $1.packet.bytes.count } }

  /// The retained packets, with their role.
  var packets: [(role: Role, packet: RingPacket)] { retained.map { ($0.role, $0.packet) } }

  /// Returns whether a datagram may be worth retaining, by its first bytes.
  static func isWanted(_ bytes: [UInt8], at offset: Int) -> Bool {
    guard offset + 1 < bytes.count else { return false }
    switch DatagramClass(first: bytes[offset], second: bytes[offset + 1]) {
    case .stun, .dtls, .channelData: return true
    case .rtp, .rtcp, .other: return false
    }
  }

  /// Retains a packet if it is needed.
  ///
  /// - Returns: the number of bytes to release: the packet's size if it was not needed, or else the
  ///   size of the packets that it replaced.
  mutating func retain(_ packet: RingPacket) -> Int {
    guard !packet.isTruncated, let (role, key) = Self.role(of: packet.bytes) else {
      return packet.bytes.count
    }
    var freed = 0
    if let key, let old = retained.firstIndex(where: { $0.key == key }) {
      freed += retained.remove(at: old).packet.bytes.count
    }
    switch role {
    case .check: break
    case .relay:
      let count = retained.count { $0.role == .relay }
      if count >= Self.relayMaximum { freed += removeFirst(.relay) }
    case .handshake:
      guard packet.bytes.count <= Self.handshakeMaximum else { return packet.bytes.count }
      while handshakeBytes + packet.bytes.count > Self.handshakeMaximum {
        let removed = removeFirst(.handshake)
        freed += removed
        handshakeBytes -= removed
      }
      handshakeBytes += packet.bytes.count
    }
    retained.append(Retained(packet: packet, role: role, key: key))
    return freed
  }

  private mutating func removeFirst(_ role: Role) -> Int {
    guard let index = retained.firstIndex(where: { $0.role == role }) else { return 0 }
    return retained.remove(at: index).packet.bytes.count
  }

  // MARK: Classification

  private static func role(of bytes: [UInt8]) -> (Role, key: UInt32?)? {
    let span = bytes.span.bytes
    switch DatagramClass(span) {
    case .stun: return stun(bytes)
    case .dtls: return isHandshake(bytes[...]) ? (.handshake, nil) : nil
    case .channelData:
      guard let inner = ChannelData.read(span)?.data else { return nil }
      return role(inside: bytes[inner], of: UInt32(span.uint16(at: 0)))
    case .rtp, .rtcp, .other: return nil
    }
  }

  private static func stun(_ bytes: [UInt8]) -> (Role, key: UInt32?)? {
    guard let message = try? STUNMessage(bytes) else { return nil }
    let type = UInt32(bytes.span.bytes.uint16(at: 0))
    if message.method == .binding { return (.check, type) }
    // Without a channel, data is relayed in Send and Data indications.
    if let inner = message.attribute(.data)?.range {
      return isHandshake(bytes[inner]) ? (.handshake, nil) : nil
    }
    // A repeated channel request replaces the earlier one. Permissions, and responses to channel
    // requests, do not state their channel or address, so several are kept.
    if let channel = message.channelNumber { return (.relay, type << 16 | UInt32(channel)) }
    let isOneOfMany = message.method == .channelBind || message.method == .createPermission
    return (.relay, isOneOfMany ? nil : type << 16)
  }

  private static func role(inside bytes: ArraySlice<UInt8>, of channel: UInt32)
    -> (Role, key: UInt32?)?
  {
    guard bytes.count >= 2 else { return nil }
    let (first, second) = (bytes[bytes.startIndex], bytes[bytes.startIndex + 1])
    switch DatagramClass(first: first, second: second) {
    case .dtls: return isHandshake(bytes) ? (.handshake, nil) : nil
    case .stun: return (.check, channel << 16 | UInt32(first) << 8 | UInt32(second))
    case .rtp, .rtcp, .channelData, .other: return nil
    }
  }

  /// Returns whether a datagram begins with a handshake record.
  ///
  /// ChangeCipherSpec records and alerts are included (RFC 6347 section 4.1), and so are encrypted
  /// records of DTLS 1.3, because their headers do not show whether they carry data (RFC 9147
  /// section 4).
  private static func isHandshake(_ bytes: ArraySlice<UInt8>) -> Bool {
    guard let first = bytes.first else { return false }
    return (20...22).contains(first) || (0x20...0x3f).contains(first)
  }
}

// MARK: - RingContent

/// A ring's content at an instant.
package struct RingContent: Sendable {
  private let ring: RingSnapshot
  /// The Unix time of the first packet in nanoseconds; the ring's end if it is empty.
  package let begin: Int64
  /// The packets' positions, in order of time.
  private let order: [Place]

  private struct Place {
    var at: Int64
    var segment: Int32
    var offset: Int32
  }

  /// - Parameter hasPictures: whether the content includes packets from before the ring's period
  ///   that are needed to decode its pictures.
  init(_ ring: RingSnapshot, hasPictures: Bool = false) {
    self.ring = ring
    let earliest = hasPictures ? ring.retainedFrom : ring.earliest
    var places: [Place] = []
    for (index, segment) in ring.segments.enumerated() {
      var offset = index == 0 ? ring.start : 0
      while let record = RingRecord(segment, at: offset) {
        if record.at >= earliest {
          places.append(Place(at: record.at, segment: Int32(index), offset: Int32(offset)))
        }
        offset += RingRecord.headLength + record.length
      }
    }
    // Sent and received packets may be appended slightly out of order.
    places.sort { ($0.at, $0.segment, $0.offset) < ($1.at, $1.segment, $1.offset) }
    order = places
    begin = places.first?.at ?? ring.end
  }

  /// The number of seconds between the first packet and the ring's period, if earlier packets are
  /// needed to decode the period's first pictures; 0 otherwise.
  package var secondsBefore: Double { max(0, Double(ring.earliest &- begin) / 1e9) }

  /// The number of video streams without a key frame, which therefore cannot be decoded.
  package var picturelessCount: Int { ring.pictures.withoutKeyFrame(from: begin, to: end) }

  /// The Unix time of the snapshot, in nanoseconds.
  package var end: Int64 { ring.end }
  /// The number of packets that had left the ring.
  package var passed: UInt64 { ring.passed }
  /// The number of packets evicted early for lack of memory.
  package var crowdedOut: UInt64 { ring.crowdedOut }
  /// The number of frames that the capturing system lost within the ring's time.
  package var dropped: UInt64 { ring.dropped }
  package var isEmpty: Bool { order.isEmpty }
  package var count: Int { order.count }

  /// Calls a closure with each packet retained after it left the ring, in the order that an
  /// observer needs.
  package func visitHead(_ body: (RingPacket) -> Void) {
    let twins = localEnds
    let known = ring.paths.values.filter { !isSeenByReceiver($0, twins) }
      .flatMap { $0.head.packets }
    let sorted = known.sorted {
      ($0.role.rawValue, $0.packet.at, $0.packet.tuple.description)
        < ($1.role.rawValue, $1.packet.at, $1.packet.tuple.description)
    }
    for (_, packet) in sorted { body(packet) }
  }

  /// Calls a closure with each of the ring's packets in order of time.
  package func visit(_ body: (RingPacket) -> Void) {
    let twins = localEnds
    let left = Set(ring.paths.filter { isSeenByReceiver($0.value, twins) }.keys)
    for place in order {
      let segment = ring.segments[Int(place.segment)]
      guard let record = RingRecord(segment, at: Int(place.offset)), !left.contains(record.path),
        let path = ring.paths[record.path]
      else { continue }
      let content = Int(place.offset) + RingRecord.headLength
      body(record.packet(path.tuple, segment[content..<content + record.length]))
    }
  }

  /// The owners by their local addresses.
  private var localEnds: [SocketAddress: UInt32] {
    var ends: [SocketAddress: UInt32] = [:]
    for path in ring.paths.values where path.owner > 0 {
      ends[path.isOutbound ? path.tuple.source : path.tuple.destination] = path.owner
    }
    return ends
  }

  /// Returns whether another owner in the ring receives what is sent on a path; if so, only the
  /// received copy of each packet is used.
  private func isSeenByReceiver(_ path: PacketRing.Path, _ ends: [SocketAddress: UInt32]) -> Bool {
    guard path.isOutbound, let receiver = ends[path.tuple.destination] else { return false }
    return receiver != path.owner
  }

  /// The names of the owners and of their remote ends, by address.
  package var names: [(address: SocketAddress, label: String)] {
    var names: [SocketAddress: String] = [:]
    for path in ring.paths.values {
      guard let label = ring.facts[path.owner]?.remoteLabel, !label.isEmpty else { continue }
      names[path.isOutbound ? path.tuple.destination : path.tuple.source] = label
    }
    for (address, owner) in localEnds {
      if let label = ring.facts[owner]?.label, !label.isEmpty { names[address] = label }
    }
    return names.sorted { $0.key.description < $1.key.description }.map { ($0.key, $0.value) }
  }

  package var keyLogs: [String] { sortedFacts.flatMap(\.keyLogs.all) }
  package var descriptions: [String] { sortedFacts.flatMap(\.descriptions.all) }

  private var sortedFacts: [RingFacts] {
    ring.facts.sorted { $0.key < $1.key }.map(\.value)
  }
}
