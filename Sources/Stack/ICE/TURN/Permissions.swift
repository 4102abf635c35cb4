import Wire

/// Decides which addresses the server lets send to the allocation, and what waits for that (RFC
/// 8656 sections 9 and 10).
struct Permissions {
  /// What is done with data for an address.
  enum Passage {
    /// The server lets the address in.
    case granted
    /// The data waits, or was dropped because too much waits.
    case waiting
    case refused
  }

  /// An address whose traffic the server lets in.
  private struct Permission {
    let ip: IPAddress
    var isGranted = false
    var isRefused = false
    /// When it is asked for again, if it is in use.
    var refreshAt: Instant?
    var usedAt: Instant
    /// Data that waits until the server has agreed.
    var waiting: [(bytes: [UInt8], peer: SocketAddress)] = []
  }

  static let maximum = 100
  private static let waitingMaximum = 8

  private var all: [Permission] = []

  /// When one is asked for again.
  var deadline: Instant? {
    var deadline: Instant?
    for permission in all { deadline = earliest(deadline, permission.refreshAt) }
    return deadline
  }

  /// Whether there is one for an address, whatever the server says of it.
  func has(_ ip: IPAddress) -> Bool { all.contains { $0.ip == ip } }

  /// Adds one that is asked for now; false when there is no room.
  mutating func add(_ ip: IPAddress, at now: Instant) -> Bool {
    guard all.count < Self.maximum else { return false }
    all.append(Permission(ip: ip, usedAt: now))
    return true
  }

  /// Records that data goes to an address; it waits until the server has agreed.
  mutating func send(_ bytes: [UInt8], to peer: SocketAddress, at now: Instant) -> Passage {
    guard let index = index(of: peer.ip), !all[index].isRefused else { return .refused }
    all[index].usedAt = now
    if all[index].isGranted { return .granted }
    if all[index].waiting.count < Self.waitingMaximum {
      all[index].waiting.append((bytes, peer))
    }
    return .waiting
  }

  /// Records data from an address; false when it has no permission.
  mutating func receive(from ip: IPAddress, at now: Instant) -> Bool {
    guard let index = index(of: ip), !all[index].isRefused else { return false }
    all[index].usedAt = now
    return true
  }

  /// Records that an address is in use.
  mutating func use(_ ip: IPAddress, at now: Instant) {
    if let index = index(of: ip) { all[index].usedAt = now }
  }

  /// Records that the server permits an address; returns what waited for that.
  mutating func grant(_ ip: IPAddress, at now: Instant) -> [(bytes: [UInt8], peer: SocketAddress)] {
    guard let index = index(of: ip) else { return [] }
    all[index].isGranted = true
    all[index].refreshAt = now + TURNTiming.permissionRefresh
    defer { all[index].waiting = [] }
    return all[index].waiting
  }

  /// Records that the server refuses an address; false when nothing waits for it any more.
  mutating func refuse(_ ip: IPAddress) -> Bool {
    guard let index = index(of: ip) else { return false }
    all[index].isGranted = false
    all[index].isRefused = true
    all[index].refreshAt = nil
    all[index].waiting = []
    return true
  }

  /// Returns those that are to be prolonged now, which are those in use; the others lapse, and are
  /// asked for again when needed.
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
