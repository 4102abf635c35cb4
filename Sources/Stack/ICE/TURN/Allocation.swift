package import Wire

/// The allocation's state: whether it exists, its address, and when it is refreshed (RFC 8656
/// sections 7 and 8).
struct Allocation {
  private enum State {
    case idle, allocating, allocated, over
  }

  /// The longest lifetime that is trusted, in seconds.
  private static let lifetimeMaximum: UInt32 = 3600
  /// The lifetime in seconds if the server states none.
  private static let lifetimeUsual: UInt32 = 600

  /// The relayed address; nil before the server assigns it and after the allocation ends.
  private(set) var relayed: SocketAddress?
  /// When to refresh the allocation; nil while a refresh is pending or there is no allocation.
  private(set) var refreshAt: Instant?
  /// Whether an IPv6 address is requested; if the server refuses, an IPv4 address is requested
  /// instead.
  private(set) var wantsIPv6: Bool
  private var state = State.idle

  init(wantsIPv6: Bool) { self.wantsIPv6 = wantsIPv6 }

  /// Whether the allocation exists; `isOpen` and `isOver` are true before and after that.
  var isThere: Bool { state == .allocated }
  var isOpen: Bool { state == .allocating || state == .idle }
  var isOver: Bool { state == .over }

  /// Starts the request; returns false if it was already started.
  mutating func begin() -> Bool {
    guard state == .idle else { return false }
    state = .allocating
    return true
  }

  /// Stops requesting IPv6; returns false if it was not requested.
  mutating func fallBackToIPv4() -> Bool {
    defer { wantsIPv6 = false }
    return wantsIPv6
  }

  /// Applies the address that the server assigned; returns false if it is unusable.
  mutating func apply(_ address: SocketAddress?, lifetime: UInt32?, at now: Instant) -> Bool {
    guard let address, address.port != 0, !address.ip.isUnspecified else { return false }
    state = .allocated
    relayed = address
    prolong(lifetime, at: now)
    return true
  }

  /// Schedules the next refresh for a remaining lifetime in seconds.
  mutating func prolong(_ lifetime: UInt32?, at now: Instant) {
    let seconds = Int64(min(lifetime ?? Self.lifetimeUsual, Self.lifetimeMaximum))
    refreshAt = now + .seconds(max(seconds - 60, seconds / 2, 1))
  }

  /// Returns whether the allocation must be refreshed now; if so, no other refresh is due until
  /// this one succeeds.
  mutating func consumeDue(at now: Instant) -> Bool {
    guard let due = refreshAt, due <= now else { return false }
    refreshAt = nil
    return true
  }

  /// Clears the refresh time because a refresh is being sent early.
  mutating func hasten() { refreshAt = nil }

  mutating func end() {
    state = .over
    relayed = nil
    refreshAt = nil
  }
}

// MARK: - Permissions

/// The addresses permitted to send to the allocation, and data that waits for permission (RFC 8656
/// sections 9 and 10).
struct Permissions {
  /// Whether data for an address can be sent.
  enum Passage {
    /// The server permits the address.
    case granted
    /// The data waits for permission, or was dropped because too much is waiting.
    case waiting
    case refused
  }

  private struct Permission {
    let ip: IPAddress
    var isGranted = false
    var isRefused = false
    /// When to refresh the permission if it is in use.
    var refreshAt: Instant?
    var usedAt: Instant
    /// Data waiting until the server permits the address.
    var waiting: [(bytes: [UInt8], peer: SocketAddress)] = []
  }

  static let maximum = 100
  private static let waitingMaximum = 8

  private var all: [Permission] = []

  /// When the next permission is refreshed.
  var deadline: Instant? {
    var deadline: Instant?
    for permission in all { deadline = earliest(deadline, permission.refreshAt) }
    return deadline
  }

  /// Returns whether permission was requested for an address, even if the server refused the
  /// request.
  func has(_ ip: IPAddress) -> Bool { all.contains { $0.ip == ip } }

  /// Adds a permission that is being requested; returns false if there is no room.
  mutating func add(_ ip: IPAddress, at now: Instant) -> Bool {
    guard all.count < Self.maximum else { return false }
    all.append(Permission(ip: ip, usedAt: now))
    return true
  }

  /// Returns whether data for an address can be sent now; until the server permits the address, the
  /// data is kept waiting.
  mutating func send(_ bytes: [UInt8], to peer: SocketAddress, at now: Instant) -> Passage {
    guard let index = index(of: peer.ip), !all[index].isRefused else { return .refused }
    all[index].usedAt = now
    if all[index].isGranted { return .granted }
    if all[index].waiting.count < Self.waitingMaximum {
      all[index].waiting.append((bytes, peer))
    }
    return .waiting
  }

  /// Records data from an address; returns false if it has no permission.
  mutating func receive(from ip: IPAddress, at now: Instant) -> Bool {
    guard let index = index(of: ip), !all[index].isRefused else { return false }
    all[index].usedAt = now
    return true
  }

  mutating func use(_ ip: IPAddress, at now: Instant) {
    if let index = index(of: ip) { all[index].usedAt = now }
  }

  /// Records that the server permits an address; returns the data waiting for it.
  mutating func grant(_ ip: IPAddress, at now: Instant) -> [(bytes: [UInt8], peer: SocketAddress)] {
    guard let index = index(of: ip) else { return [] }
    all[index].isGranted = true
    all[index].refreshAt = now + TURNTiming.permissionRefresh
    defer { all[index].waiting = [] }
    return all[index].waiting
  }

  /// Records that the server refuses an address; returns false if it is unknown.
  mutating func refuse(_ ip: IPAddress) -> Bool {
    guard let index = index(of: ip) else { return false }
    all[index].isGranted = false
    all[index].isRefused = true
    all[index].refreshAt = nil
    all[index].waiting = []
    return true
  }

  /// Returns the addresses whose permissions must be refreshed now, because they are in use.
  ///
  /// Other permissions lapse and are requested again when needed.
  mutating func refreshDue(at now: Instant, hasChannel: (IPAddress) -> Bool) -> [IPAddress] {
    let limit = now - TURNTiming.permissionRefresh
    all.removeAll { permission in
      guard let due = permission.refreshAt, due <= now else { return false }
      return permission.usedAt <= limit && !hasChannel(permission.ip)
    }
    var due: [IPAddress] = []
    for index in all.indices {
      guard let at = all[index].refreshAt, at <= now else { continue }
      all[index].refreshAt = nil
      due.append(all[index].ip)
    }
    return due
  }

  mutating func removeAll() { all = [] }

  private func index(of ip: IPAddress) -> Int? { all.firstIndex { $0.ip == ip } }
}

// MARK: - Channels

/// The channels to peers: their numbers and when they are refreshed (RFC 8656 section 12).
struct Channels {
  private struct Channel {
    let number: UInt16
    let peer: SocketAddress
    var isBound = false
    var refreshAt: Instant?
  }

  static let maximum = 64

  private var all: [Channel] = []

  /// When the next channel must be refreshed; nil if none must be.
  var deadline: Instant? {
    var deadline: Instant?
    for channel in all { deadline = earliest(deadline, channel.refreshAt) }
    return deadline
  }

  /// Returns whether a channel to a peer may be added, that is, the peer has none and there is
  /// room.
  func mayAdd(_ peer: SocketAddress) -> Bool {
    all.count < Self.maximum && !all.contains { $0.peer == peer }
  }

  /// Returns the number of the channel to a peer once data can use it; nil until then.
  func bound(to peer: SocketAddress) -> UInt16? {
    for channel in all where channel.isBound && channel.peer == peer { return channel.number }
    return nil
  }

  func peer(of number: UInt16) -> SocketAddress? {
    for channel in all where channel.number == number { return channel.peer }
    return nil
  }

  /// Returns whether there is a channel to any port of a host.
  func reach(_ ip: IPAddress) -> Bool { all.contains { $0.peer.ip == ip } }

  /// Adds a channel that is being requested and returns its number.
  mutating func add(_ peer: SocketAddress) -> UInt16 {
    // While the allocation lasts, a number must not be reused for another peer.
    let number = (all.map(\.number).max() ?? ChannelData.numbers.lowerBound - 1) + 1
    all.append(Channel(number: number, peer: peer))
    return number
  }

  /// Records that the server has bound a channel; returns its peer, or nil if the channel is
  /// unknown.
  mutating func bind(_ number: UInt16, at now: Instant) -> SocketAddress? {
    guard let index = all.firstIndex(where: { $0.number == number }) else { return nil }
    all[index].isBound = true
    all[index].refreshAt = now + TURNTiming.permissionRefresh
    return all[index].peer
  }

  /// Records that the server refused a channel or its refresh; data is then sent in indications.
  mutating func refuse(_ number: UInt16) {
    all.removeAll { $0.number == number && !$0.isBound }
    for index in all.indices where all[index].number == number {
      all[index].isBound = false
      all[index].refreshAt = nil
    }
  }

  mutating func refreshDue(at now: Instant) -> [UInt16] {
    var due: [UInt16] = []
    for index in all.indices {
      guard let at = all[index].refreshAt, at <= now else { continue }
      all[index].refreshAt = nil
      due.append(all[index].number)
    }
    return due
  }

  mutating func removeAll() { all = [] }
}

// MARK: - ChannelData

/// The framing of TURN channel data: channel number and length, then the data (RFC 8656
/// section 12.4).
package enum ChannelData {
  /// Bytes before the data.
  package static let headerLength = 4
  /// The numbers that a client may bind (RFC 8656 section 12).
  package static let numbers: ClosedRange<UInt16> = 0x4000...0x4fff

  /// Returns whether bytes look like channel data rather than another protocol (RFC 7983
  /// section 7).
  package static func matches(_ bytes: RawSpan) -> Bool {
    bytes.byteCount >= headerLength && (0x40...0x4f).contains(bytes.byte(at: 0))
  }

  /// Parses the channel number and the range of the data; nil if bytes are missing.
  ///
  /// Padding may follow the data.
  package static func read(_ bytes: RawSpan) -> (channel: UInt16, data: Range<Int>)? {
    guard matches(bytes) else { return nil }
    let end = headerLength + Int(bytes.uint16(at: 2))
    guard end <= bytes.byteCount else { return nil }
    return (bytes.uint16(at: 0), headerLength..<end)
  }

  /// Like `read`, but also accepts the channels of RFC 5766 section 11, up to 0x7FFF.
  ///
  /// The bytes must end with the frame, or with the padding that fills it up to a multiple of four.
  ///
  /// - Parameter isTruncated: whether only the start of the frame may be present.
  package static func readAny(_ bytes: RawSpan, isTruncated: Bool = false)
    -> (channel: UInt16, data: Range<Int>)?
  {
    guard bytes.byteCount >= headerLength, (0x40...0x7f).contains(bytes.byte(at: 0)) else {
      return nil
    }
    let end = headerLength + Int(bytes.uint16(at: 2))
    guard end <= bytes.byteCount ? bytes.byteCount - end < 4 : isTruncated else { return nil }
    return (bytes.uint16(at: 0), headerLength..<min(end, bytes.byteCount))
  }

  /// Returns data with the header of channel data before it, and without padding.
  package static func frame(_ data: [UInt8], channel: UInt16) -> [UInt8] {
    var frame: [UInt8] = []
    frame.reserveCapacity(headerLength + data.count)
    let count = UInt16(truncatingIfNeeded: data.count)
    frame.append(UInt8(channel >> 8))
    frame.append(UInt8(truncatingIfNeeded: channel))
    frame.append(UInt8(count >> 8))
    frame.append(UInt8(truncatingIfNeeded: count))
    frame.append(contentsOf: data)
    return frame
  }
}

/// The framing of messages on a TCP or TLS connection to a TURN server: STUN, and channel data with
/// padding (RFC 8656 section 12.5).
package enum TURNFraming: MessageFraming {
  package static func first(in bytes: RawSpan) throws(FramingError)
    -> (message: Range<Int>, next: Int)?
  {
    guard bytes.byteCount >= 4 else { return nil }
    let length = Int(bytes.uint16(at: 2))
    let count: Int
    switch bytes.byte(at: 0) {
    case 0...3:
      // STUN's length excludes its 20-byte header and is a multiple of four.
      guard length % 4 == 0 else { throw FramingError() }
      count = STUNMessage.headerLength + length
    case 0x40...0x4f: count = ChannelData.headerLength + length
    default: throw FramingError()
    }
    let padded = STUNMessage.padded(count)
    return padded <= bytes.byteCount ? (0..<count, padded) : nil
  }

  package static func framed(_ message: [UInt8]) -> [UInt8] {
    let missing = STUNMessage.padded(message.count) - message.count
    return missing == 0 ? message : message + [UInt8](repeating: 0, count: missing)
  }
}
