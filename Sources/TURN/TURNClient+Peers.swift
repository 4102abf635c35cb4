import STUN
import Wire

// Permissions and channels: who may send to the allocation, and how data is framed.
extension TURNClient {
  /// The permission of a peer's address, asked for when there is none; nil when there is no room.
  mutating func permission(for ip: IPAddress) -> Int? {
    if let index = permissions.firstIndex(where: { $0.ip == ip }) { return index }
    guard state == .allocated, permissions.count < TURNClient.permissionsMaximum else { return nil }
    permissions.append(Permission(ip: ip, usedAt: now))
    request(.permission(ip))
    return permissions.count - 1
  }

  /// Asks for a channel, which lets the peer in as well (RFC 8656 section 12).
  mutating func bind(_ peer: SocketAddress) {
    guard state == .allocated, !channels.contains(where: { $0.peer == peer }),
      channels.count < TURNClient.channelsMaximum, permission(for: peer.ip) != nil
    else { return }
    // A number is used for one peer only, for as long as the allocation lasts.
    let number = (channels.map(\.number).max() ?? ChannelData.numbers.lowerBound - 1) + 1
    channels.append(Channel(number: number, peer: peer))
    request(.channel(number))
  }

  mutating func grant(_ ip: IPAddress) {
    guard let index = permissions.firstIndex(where: { $0.ip == ip }) else { return }
    permissions[index].isGranted = true
    permissions[index].refreshAt = now + TURNTiming.permissionRefresh
    let waiting = permissions[index].waiting
    permissions[index].waiting = []
    for entry in waiting { indicate(entry.bytes, to: entry.peer) }
  }

  mutating func refuse(_ ip: IPAddress) {
    guard let index = permissions.firstIndex(where: { $0.ip == ip }) else { return }
    permissions[index].isGranted = false
    permissions[index].isRefused = true
    permissions[index].refreshAt = nil
    permissions[index].waiting = []
    outbox.append(.refused(ip))
  }

  mutating func bound(_ number: UInt16) {
    guard let index = channels.firstIndex(where: { $0.number == number }) else { return }
    channels[index].isBound = true
    channels[index].refreshAt = now + TURNTiming.permissionRefresh
    if let place = permissions.firstIndex(where: { $0.ip == channels[index].peer.ip }) {
      permissions[place].usedAt = now
    }
  }

  /// Does all that is due.
  mutating func runTimers() {
    runTransactions()
    updateDeadline()
    guard state == .allocated else { return }
    if let due = refreshAt, due <= now {
      refreshAt = nil
      request(.refresh)
    }
    refreshPermissions()
    for index in channels.indices {
      guard let due = channels[index].refreshAt, due <= now else { continue }
      channels[index].refreshAt = nil
      request(.channel(channels[index].number))
    }
    keepAlive()
    updateDeadline()
  }

  /// Prolongs the permissions in use; the others lapse, and are asked for again when needed.
  private mutating func refreshPermissions() {
    let limit = now - TURNTiming.permissionRefresh
    permissions.removeAll { permission in
      guard let due = permission.refreshAt, due <= now else { return false }
      let hasChannel = channels.contains { $0.peer.ip == permission.ip }
      return permission.usedAt <= limit && !hasChannel
    }
    for index in permissions.indices {
      guard let due = permissions[index].refreshAt, due <= now else { continue }
      permissions[index].refreshAt = nil
      request(.permission(permissions[index].ip))
    }
  }

  /// Keeps the mapping of a NAT before the server while nothing else is sent.
  private mutating func keepAlive() {
    guard let due = keepAliveAt, due <= now else { return }
    if sentAt + TURNTiming.keepAlive <= now {
      let id = STUNTransactionID(from: entropy)
      transmit(STUNWriter(.indication, transactionID: id).finish())
    }
    keepAliveAt = sentAt + TURNTiming.keepAlive
  }
}
