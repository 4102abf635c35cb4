import RoomSignaling

/// What is received of others: within a number of receivers for video that grows up to a limit.
struct ReceiverPool {
  enum Phase: String, Sendable {
    /// The service was asked.
    case subscribing
    case subscribed
    case unsubscribing
  }

  struct Receiver: Sendable {
    var media: MediaID
    var isVideo: Bool
    var phase: Phase
    var profile: VideoProfile?
    var isPaused = false
    /// Where it comes: a section of a connection, and its transceiver once known.
    var connection: ConnectionID?
    var mid: String?
    var transceiver: UInt32?
    /// Whether its audio is heard: it holds a slot, or there are no slots.
    var isOccupant = false
    /// Whether it is heard without a slot, because its owner has it always on.
    var isExempt = false
    /// Whether this one alone is muted.
    var isMuted = false
    /// Whether the tape has been told that it is carried.
    var isCarried = false
  }

  private(set) var receivers: [Receiver] = []
  /// How many videos can be received at present.
  private(set) var size: Int
  private let maximum: Int
  private let growth: Int
  /// Whether everything that is received is muted.
  var isMuted = false

  init(initial: Int, maximum: Int, growth: Int) {
    self.maximum = min(max(1, maximum), 1_000)
    size = min(max(1, initial), self.maximum)
    self.growth = max(1, growth)
  }

  subscript(media: MediaID) -> Receiver? { receivers.first { $0.media == media } }

  func receiver(on connection: ConnectionID, mid: String) -> Receiver? {
    receivers.first { $0.connection == connection && $0.mid == mid }
  }

  func receiver(on connection: ConnectionID, transceiver: UInt32) -> Receiver? {
    receivers.first { $0.connection == connection && $0.transceiver == transceiver }
  }

  private var videos: Int { receivers.count { $0.isVideo } }

  /// Takes a receiver for media; tells when the pool has grown for it.
  ///
  /// - Throws: the number of why not.
  mutating func take(_ media: MediaID, isVideo: Bool) throws(SignalingFailure) -> Int? {
    var grown: Int?
    if let known = self[media] {
      guard known.phase == .unsubscribing else { throw failure(.alreadySubscribed, media) }
      throw failure(.noFreeReceiver, media)
    }
    if isVideo, videos >= size {
      guard size < maximum else {
        let isReleasing = receivers.contains { $0.isVideo && $0.phase == .unsubscribing }
        throw failure(isReleasing ? .noFreeReceiver : .receiversExhausted, media)
      }
      size = min(maximum, size + growth)
      grown = size
    }
    receivers.append(Receiver(media: media, isVideo: isVideo, phase: .subscribing))
    return grown
  }

  mutating func change(_ media: MediaID, _ change: (inout Receiver) -> Void) {
    guard let index = receivers.firstIndex(where: { $0.media == media }) else { return }
    change(&receivers[index])
  }

  mutating func remove(_ media: MediaID) -> Receiver? {
    guard let index = receivers.firstIndex(where: { $0.media == media }) else { return nil }
    return receivers.remove(at: index)
  }

  private func failure(_ code: RoomErrorCode, _ media: MediaID) -> SignalingFailure {
    SignalingFailure(code, code.meaning, media: media)
  }
}
