import Room
import Signaling
import Wire

/// A room on its server: participants, published media, subscriptions.
///
/// The room only makes decisions and creates notices; its owner holds the connections and sockets.
/// Requests from clients outside the room are refused.
struct HostedRoom {
  /// Media that a participant has published.
  struct Media {
    var media: RoomMedia
    var owner: String
    /// The owner's number for the media, and its section in the owner's offer.
    var local: UInt32
    var mid: String
  }

  struct Member {
    var id: String
    var name: String
    var metadata: String?
    /// The videos that the participant subscribes to, and the paused ones among them.
    var wanted: Set<UInt32> = []
    var paused: Set<UInt32> = []
    /// The selected profiles by the videos' numbers.
    var profiles: [UInt32: VideoProfile] = [:]
  }

  struct Notice {
    var to: String
    var notice: RoomNotice
  }

  private(set) var members: [Member] = []
  private(set) var media: [Media] = []

  static let membersMaximum = 100
  static let mediaMaximum = 64
  /// Limits in bytes on details (metadata and extra values), per participant and in total: a
  /// participant who joins receives all of them at once.
  static let memberDetailBytes = 64 << 10
  static let detailBytes = 1 << 20

  subscript(id: String) -> Member? { members.first { $0.id == id } }

  var isEmpty: Bool { members.isEmpty }

  private func others(than id: String) -> [String] { members.map(\.id).filter { $0 != id } }

  private func notify(_ notice: RoomNotice, allBut id: String) -> [Notice] {
    others(than: id).map { Notice(to: $0, notice: notice) }
  }

  // MARK: Details

  /// Returns how many bytes of details a participant has, or all participants together if `id` is
  /// nil.
  private func detailBytes(of id: String?) -> Int {
    let metadata = members.reduce(0) { sum, member in
      id == nil || member.id == id ? sum + (member.metadata?.utf8.count ?? 0) : sum
    }
    return media.reduce(metadata) { sum, entry in
      id == nil || entry.owner == id ? sum + entry.media.extraValue.utf8.count : sum
    }
  }

  /// Returns whether a participant may add this many bytes of details.
  private func hasRoom(for bytes: Int, of id: String) -> Bool {
    detailBytes(of: id) + bytes <= HostedRoom.memberDetailBytes
      && detailBytes(of: nil) + bytes <= HostedRoom.detailBytes
  }

  private static let tooMuch = "the metadata and values of media are too long together"

  /// Returns the list of other participants for a participant who joins.
  func list(without id: String) -> [RoomMember] {
    members.filter { $0.id != id }.map { member in
      RoomMember(
        id: member.id, displayName: member.name, metadata: member.metadata,
        media: media.filter { $0.owner == member.id }.map(\.media))
    }
  }

  // MARK: Joining and leaving

  /// Adds a participant; returns a fault if joining is refused.
  mutating func enter(_ id: String, _ join: RoomJoin) -> (notices: [Notice], fault: RoomFault?) {
    guard members.count < HostedRoom.membersMaximum else {
      return ([], RoomFault(.joinRefused, "the room is full"))
    }
    guard self[id] == nil else {
      return ([], RoomFault(.joinRefused, "a participant called \(id) is already in the room"))
    }
    guard hasRoom(for: join.metadata?.utf8.count ?? 0, of: id) else {
      return ([], RoomFault(.joinRefused, HostedRoom.tooMuch))
    }
    members.append(Member(id: id, name: join.displayName, metadata: join.metadata))
    let member = RoomMember(id: id, displayName: join.displayName, metadata: join.metadata)
    return (notify(.entered(member), allBut: id), nil)
  }

  mutating func leave(_ id: String, _ cause: LeaveCause) -> [Notice] {
    guard self[id] != nil else { return [] }
    let gone = media.filter { $0.owner == id }.map(\.media.number)
    media.removeAll { $0.owner == id }
    members.removeAll { $0.id == id }
    forget(gone)
    let unpublished = gone.isEmpty ? [] : notify(.unpublished(participant: id, gone), allBut: id)
    return unpublished + notify(.left(participant: id, cause), allBut: id)
  }

  /// Removes unpublished media from all subscriptions, pauses and profiles.
  private mutating func forget(_ gone: [UInt32]) {
    for index in members.indices {
      members[index].wanted.subtract(gone)
      members[index].paused.subtract(gone)
      for number in gone { members[index].profiles[number] = nil }
    }
  }

  // MARK: Media

  /// Replaces a participant's published media.
  /// - Parameter number: returns a media number that is not yet used in this room.
  mutating func publish(
    _ offered: [RoomLocalMedia], of id: String, number: () -> UInt32
  ) -> (notices: [Notice], fault: RoomFault?) {
    guard self[id] != nil else { return ([], RoomFault(.invalidState, "the room was left")) }
    let offered = offered.prefix(HostedRoom.mediaMaximum)
    let known = Set(media.filter { $0.owner == id }.map(\.local))
    let added = offered.filter { !known.contains($0.local) }
    guard hasRoom(for: added.reduce(0) { $0 + $1.extraValue.utf8.count }, of: id) else {
      return ([], RoomFault(.publishFailed, HostedRoom.tooMuch))
    }
    var news: [RoomMedia] = []
    for entry in offered {
      if let index = media.firstIndex(where: { $0.owner == id && $0.local == entry.local }) {
        media[index].mid = entry.mid
        continue
      }
      let made = RoomMedia(
        number: number(), kind: entry.kind, isActive: entry.isActive,
        isAlwaysOn: entry.isAlwaysOn, extraValue: entry.extraValue,
        profiles: HostedRoom.profiles(of: entry))
      media.append(Media(media: made, owner: id, local: entry.local, mid: entry.mid))
      news.append(made)
    }
    let kept = Set(offered.map(\.local))
    let gone = media.filter { $0.owner == id && !kept.contains($0.local) }.map(\.media.number)
    media.removeAll { gone.contains($0.media.number) }
    forget(gone)
    let numbers = media.filter { $0.owner == id }.map {
      RoomLocalNumber(local: $0.local, number: $0.media.number)
    }
    var notices = [Notice(to: id, notice: .local(numbers))]
    if !gone.isEmpty { notices += notify(.unpublished(participant: id, gone), allBut: id) }
    if !news.isEmpty { notices += notify(.published(participant: id, news), allBut: id) }
    return (notices, nil)
  }

  mutating func change(_ changed: RoomMedia, of id: String) -> [Notice] {
    guard self[id] != nil,
      let index = media.firstIndex(where: {
        $0.owner == id && $0.media.number == changed.number
      })
    else { return [] }
    var next = changed
    next.kind = media[index].media.kind
    next.profiles = media[index].media.profiles
    let growth = next.extraValue.utf8.count - media[index].media.extraValue.utf8.count
    guard growth <= 0 || hasRoom(for: growth, of: id) else { return [] }
    media[index].media = next
    return notify(.changed(participant: id, next), allBut: id)
  }

  // MARK: Subscriptions

  /// Subscribes or unsubscribes; returns a fault if that is refused.
  mutating func want(_ numbers: [UInt32], _ isWanted: Bool, of id: String) -> RoomFault? {
    guard let index = members.firstIndex(where: { $0.id == id }) else {
      return RoomFault(.invalidState, "the room was left")
    }
    for number in numbers {
      guard let found = media.first(where: { $0.media.number == number }), found.owner != id else {
        return RoomFault(.noSuchMedia, "nobody publishes \(number)")
      }
    }
    for number in numbers {
      if isWanted {
        members[index].wanted.insert(number)
      } else {
        members[index].wanted.remove(number)
        members[index].paused.remove(number)
        members[index].profiles[number] = nil
      }
    }
    return nil
  }

  /// Returns a simulcast video's profiles: one per layer.
  private static func profiles(of entry: RoomLocalMedia) -> [VideoProfile] {
    guard entry.kind == .video else { return [] }
    return switch entry.layers.count {
    case 0, 1: []
    case 2: [.low, .high]
    default: [.low, .mid, .high]
    }
  }

  /// Selects a profile; returns a fault if that is refused.
  mutating func choose(_ profile: VideoProfile, _ number: UInt32, of id: String) -> RoomFault? {
    guard let index = members.firstIndex(where: { $0.id == id }),
      members[index].wanted.contains(number)
    else { return RoomFault(.notSubscribed, "\(number) is not subscribed to") }
    let offered = media.first { $0.media.number == number }?.media.profiles ?? []
    guard offered.contains(profile) else {
      return RoomFault(.noProfiles, "\(number) has no profile \(profile.rawValue)")
    }
    members[index].profiles[number] = profile
    return nil
  }

  /// Returns how many times larger the largest profile is than the selected profile, per side.
  func divisor(of number: UInt32, for id: String) -> Int {
    guard let profile = self[id]?.profiles[number],
      let offered = media.first(where: { $0.media.number == number })?.media.profiles,
      let place = offered.firstIndex(of: profile)
    else { return 1 }
    return 1 << (offered.count - 1 - place)
  }

  mutating func pause(_ number: UInt32, _ isPaused: Bool, of id: String) -> RoomFault? {
    guard let index = members.firstIndex(where: { $0.id == id }),
      members[index].wanted.contains(number)
    else { return RoomFault(.notSubscribed, "\(number) is not subscribed to") }
    if isPaused {
      members[index].paused.insert(number)
    } else {
      members[index].paused.remove(number)
    }
    return nil
  }

  /// Returns the media to send to a participant: all audio of other participants, and the videos
  /// that the participant subscribes to.
  func wanted(by id: String) -> [Media] {
    guard let member = self[id] else { return [] }
    return media.filter { entry in
      entry.owner != id
        && (entry.media.kind == .audio || member.wanted.contains(entry.media.number))
    }
  }

  /// Returns the voices available to a participant, sorted by number.
  func voices(for id: String) -> [(media: UInt32, isAlwaysOn: Bool)] {
    media.filter { $0.owner != id && $0.media.kind == .audio }
      .map { (media: $0.media.number, isAlwaysOn: $0.media.isAlwaysOn) }
      .sorted { $0.media < $1.media }
  }

  /// Returns whether a participant is in the room and has not paused the media.
  func flows(_ number: UInt32, to id: String) -> Bool {
    self[id].map { !$0.paused.contains(number) } ?? false
  }

  // MARK: Messages

  func message(_ message: UserMessage, from id: String) -> (notices: [Notice], fault: RoomFault?) {
    guard self[id] != nil else { return ([], RoomFault(.invalidState, "the room was left")) }
    var message = message
    message.sender = id
    // A participant who is named more than once receives the message only once.
    var named: Set<String> = []
    message.targets = message.targets.filter { named.insert($0).inserted }
    let targets = message.targets.isEmpty ? others(than: id) : message.targets
    if let stranger = targets.first(where: { self[$0] == nil }) {
      return ([], RoomFault(.userMessageInvalid, "\(stranger) is not in the room"))
    }
    return (targets.map { Notice(to: $0, notice: .message(message)) }, nil)
  }

  func talking(_ id: String, _ isTalking: Bool) -> [Notice] {
    self[id] == nil ? [] : notify(.talking(participant: id, isTalking, level: nil), allBut: id)
  }
}

// MARK: - GuestOutbox

/// A participant's send queue, with a size limit.
///
/// A client that keeps reading does not reach the limit. User messages to a slow reader are
/// dropped, and their sender is informed. The room's own messages cannot be dropped, so a
/// participant that reads nothing is disconnected.
struct GuestOutbox {
  /// The result of queueing a message.
  enum Outcome {
    /// Queued; another task is already sending.
    case waits
    /// Queued; the caller has to start sending.
    case begins
    /// Dropped: too much is queued for the participant, or it is not connected.
    case leftOut
    /// The participant reads nothing; close this socket.
    case isOver(WebSocket)
  }

  /// The queue's size in bytes beyond which user messages are dropped.
  static let messageBytes = 512 << 10
  /// The queue's size limit in bytes.
  static let bytes = 3 << 20

  private(set) var socket: WebSocket?
  private var texts: [String] = []
  private var sentCount = 0
  private(set) var waitingBytes = 0
  private var isSending = false

  init(_ socket: WebSocket) { self.socket = socket }

  var isEmpty: Bool { texts.isEmpty && !isSending }

  /// Replaces the socket; messages queued for the former socket are dropped.
  /// - Returns: the former socket; nil if it is the same socket.
  mutating func exchange(_ socket: WebSocket?) -> WebSocket? {
    let former = self.socket
    guard former !== socket else { return nil }
    self.socket = socket
    (texts, sentCount, waitingBytes) = ([], 0, 0)
    return former
  }

  mutating func append(_ text: String, isMessage: Bool) -> Outcome {
    guard let socket else { return .leftOut }
    let size = text.utf8.count
    if isMessage, waitingBytes + size > GuestOutbox.messageBytes { return .leftOut }
    guard waitingBytes + size <= GuestOutbox.bytes else {
      _ = exchange(nil)
      return .isOver(socket)
    }
    texts.append(text)
    waitingBytes += size
    guard !isSending else { return .waits }
    isSending = true
    return .begins
  }

  /// Returns the next message and its socket; if the queue is empty, returns nil and ends sending.
  mutating func next() -> (socket: WebSocket, text: String)? {
    guard let socket, sentCount < texts.count else {
      (texts, sentCount, isSending) = ([], 0, false)
      return nil
    }
    defer { sentCount += 1 }
    return (socket, texts[sentCount])
  }

  /// Records that a message was sent on a socket.
  mutating func didSend(_ text: String, over socket: WebSocket) {
    if self.socket === socket { waitingBytes -= text.utf8.count }
  }
}

/// Limits how fast a participant can make the room send to others.
///
/// A message that exceeds the allowance is still sent, but the participant's next messages wait.
struct SpeechAllowance {
  /// The default limit, in bytes per second to each recipient.
  static let usualBytesPerSecond = 256 << 10
  /// The burst limit in bytes.
  static let burstBytes = 1 << 20

  private let bytesPerSecond: Double
  private var bytes = burstBytes
  private var at = ContinuousClock.now

  init(bytesPerSecond: Int = usualBytesPerSecond) { self.bytesPerSecond = Double(bytesPerSecond) }

  /// Counts sent bytes; returns how long to wait before the next message.
  mutating func spend(_ count: Int, now: ContinuousClock.Instant = .now) -> Duration {
    let passed = (now - at) / .seconds(1)
    let gained = min(Double(Self.burstBytes), max(0, passed) * bytesPerSecond)
    bytes = min(Self.burstBytes, bytes + Int(gained)) - count
    at = now
    return bytes >= 0 ? .zero : .seconds(Double(-bytes) / bytesPerSecond)
  }
}
