import Wire

/// Received media: audio, and a pool of video receivers that grows up to a limit.
///
/// Methods that change the pool return the outputs for the room to emit.
struct ReceiverPool {
  /// How the voices to play are selected.
  enum Voices: Sendable {
    /// All received voices are played.
    case all
    /// Voices are played if they hold one of the connection's audio slots; `silences` states
    /// whether the other voices are silenced.
    case slots(silences: Bool)
    /// The service selects voices and reports whose audio it sends.
    case reported
  }

  enum Phase: String, Sendable {
    /// The subscription was requested.
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
    /// The connection and section, and the transceiver once it is known.
    var connection: ConnectionID?
    var mid: String?
    var transceiver: UInt32?
    /// Whether the audio is played: it has a slot or needs none (`isExempt`), the service selected
    /// it, or all voices are played.
    var isOccupant = false
    /// Whether the audio is played without a slot, because its owner marked it as always on.
    var isExempt = false
    /// Whether this media is muted individually.
    var isMuted = false
    /// Whether the media was reported as carried.
    var isCarried = false
  }

  private(set) var receivers: [Receiver] = []
  /// The number of videos that can currently be received.
  private(set) var size: Int
  private(set) var isMuted = false
  private let maximum: Int
  private let growth: Int
  private let voices: Voices
  /// The voices that the service says it sends, even if they are not received yet.
  private var reported: [MediaID] = []

  init(initial: Int, maximum: Int, growth: Int, voices: Voices) {
    self.voices = voices
    self.maximum = min(max(1, maximum), 1_000)
    size = min(max(1, initial), self.maximum)
    self.growth = max(1, growth)
  }

  private var hasAudioSlots: Bool { if case .slots = voices { true } else { false } }
  private var silences: Bool { if case .slots(let silences) = voices { silences } else { false } }

  /// Returns whether audio is played as soon as it arrives.
  private func isHeardAtOnce(_ media: MediaID, isAlwaysOn: Bool) -> Bool {
    switch voices {
    case .all: true
    case .slots: isAlwaysOn
    case .reported: isAlwaysOn || reported.contains(media)
    }
  }

  subscript(media: MediaID) -> Receiver? { place(of: media).map { receivers[$0] } }

  private func place(of media: MediaID) -> Int? { receivers.firstIndex { $0.media == media } }

  // MARK: Subscriptions

  private var videos: Int { receivers.count { $0.isVideo } }

  /// Assigns a receiver to media; returns an event if the pool grew.
  /// - Throws: `SignalingFailure` for media that is subscribed already or still being unsubscribed,
  ///   or for video if the pool cannot grow further.
  mutating func assign(_ media: MediaID, isVideo: Bool) throws(SignalingFailure) -> [RoomOutput] {
    var grown: [RoomOutput] = []
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
      grown = [.event(.receiversGrown(size))]
    }
    receivers.append(Receiver(media: media, isVideo: isVideo, phase: .subscribing))
    return grown
  }

  /// Releases the receivers of media that the service does not know.
  mutating func forget(_ media: [MediaID]) { receivers.removeAll { media.contains($0.media) } }

  /// Records that subscriptions were confirmed or refused.
  mutating func endSubscribing(_ media: [MediaID], isRefused: Bool) {
    for id in media {
      guard let index = place(of: id), receivers[index].phase == .subscribing else { continue }
      if isRefused { receivers.remove(at: index) } else { receivers[index].phase = .subscribed }
    }
  }

  /// Marks media as being unsubscribed.
  mutating func beginUnsubscribing(_ media: MediaID) throws(SignalingFailure) {
    guard let index = place(of: media), receivers[index].phase != .unsubscribing else {
      throw failure(.notSubscribed, media)
    }
    receivers[index].phase = .unsubscribing
  }

  /// Records that unsubscriptions were confirmed or refused.
  mutating func endUnsubscribing(
    _ media: [MediaID], isRefused: Bool, _ people: ParticipantTable, _ links: ConnectionTable
  ) -> [RoomOutput] {
    var outputs: [RoomOutput] = []
    for id in media {
      guard let index = place(of: id), receivers[index].phase == .unsubscribing else { continue }
      if isRefused {
        receivers[index].phase = .subscribed
      } else {
        outputs += remove(id, people, links)
      }
    }
    return outputs
  }

  /// Removes media that is no longer published.
  mutating func remove(
    _ media: MediaID, _ people: ParticipantTable, _ links: ConnectionTable
  ) -> [RoomOutput] {
    let lost = lose(media, people, links)
    guard let index = place(of: media) else { return lost }
    receivers.remove(at: index)
    return lost + [.event(.remoteUnsubscribed(media))]
  }

  mutating func setProfile(_ profile: VideoProfile, of media: MediaID) {
    if let index = place(of: media) { receivers[index].profile = profile }
  }

  mutating func setPaused(_ isPaused: Bool, _ media: MediaID) {
    if let index = place(of: media) { receivers[index].isPaused = isPaused }
  }

  // MARK: Assignment

  /// Assigns media to a connection's section, even without a subscription, as when the service
  /// chooses the media.
  mutating func assign(
    _ media: PublishedMedia, to mid: String, on connection: ConnectionID,
    _ people: ParticipantTable, _ links: ConnectionTable
  ) -> [RoomOutput] {
    var outputs: [RoomOutput] = []
    if let former = receiver(on: connection, mid: mid), former.media != media.id {
      outputs += lose(former.media, people, links)
    }
    if let known = self[media.id] {
      if known.connection != connection || known.mid != mid {
        outputs += lose(media.id, people, links)
      }
    } else {
      do throws(SignalingFailure) {
        outputs += try assign(media.id, isVideo: media.kind == .video)
      } catch {
        return outputs + [.event(.failed(error))]
      }
    }
    guard let index = place(of: media.id) else { return outputs }
    if receivers[index].phase == .subscribing { receivers[index].phase = .subscribed }
    (receivers[index].connection, receivers[index].mid) = (connection, mid)
    receivers[index].transceiver = links.transceiver(of: mid, on: connection)
    return outputs + reportCarried(index, people, links)
  }

  /// Unassigns media; other media may arrive on the same transceiver.
  mutating func unassign(
    _ media: MediaID, _ people: ParticipantTable, _ links: ConnectionTable
  ) -> [RoomOutput] {
    var outputs: [RoomOutput] = []
    if let receiver = self[media], receiver.isExempt, hasAudioSlots {
      outputs = order(receiver) { .exemptAudio(transceiver: $0, false) }
    }
    return outputs + lose(media, people, links)
  }

  /// Records the transceiver that receives a section; reports the section's media as carried.
  mutating func receive(
    _ mid: String, by transceiver: UInt32, on connection: ConnectionID,
    _ people: ParticipantTable, _ links: ConnectionTable
  ) -> [RoomOutput] {
    guard let receiver = receiver(on: connection, mid: mid), receiver.transceiver != transceiver,
      let index = place(of: receiver.media)
    else { return [] }
    let lost = lose(receiver.media, people, links)
    (receivers[index].connection, receivers[index].mid) = (connection, mid)
    receivers[index].transceiver = transceiver
    return lost + reportCarried(index, people, links)
  }

  /// Reports that the media on a closed connection is no longer received; it stays subscribed.
  mutating func lose(
    _ link: ConnectionTable.Connection, _ people: ParticipantTable
  ) -> [RoomOutput] {
    receivers.indices.filter { receivers[$0].connection == link.id }
      .flatMap { lose($0, over: link.peer, people) }
  }

  private mutating func lose(
    _ media: MediaID, _ people: ParticipantTable, _ links: ConnectionTable
  ) -> [RoomOutput] {
    guard let index = place(of: media), let connection = receivers[index].connection else {
      return []
    }
    return lose(index, over: links[connection]?.peer ?? 0, people)
  }

  /// Records that media is no longer carried; it stays subscribed.
  private mutating func lose(
    _ index: Int, over peer: UInt32, _ people: ParticipantTable
  ) -> [RoomOutput] {
    let receiver = receivers[index]
    (receivers[index].connection, receivers[index].mid) = (nil, nil)
    receivers[index].transceiver = nil
    receivers[index].isOccupant = false
    receivers[index].isExempt = false
    receivers[index].isCarried = false
    var outputs: [RoomOutput] = []
    if receiver.isOccupant { outputs.append(.event(.audioVacated(receiver.media))) }
    if receiver.isCarried, let place = carried(receiver, by: peer, people) {
      outputs.append(.person(.ended(place)))
    }
    return outputs
  }

  /// Reports media as carried once its section and transceiver are known.
  private mutating func reportCarried(
    _ index: Int, _ people: ParticipantTable, _ links: ConnectionTable
  ) -> [RoomOutput] {
    let receiver = receivers[index]
    guard !receiver.isCarried, let connection = receiver.connection, let link = links[connection],
      let place = carried(receiver, by: link.peer, people)
    else { return [] }
    let isAlwaysOn = people.media(receiver.media)?.isAlwaysOn == true
    let isHeard =
      !receiver.isVideo && isHeardAtOnce(receiver.media, isAlwaysOn: isAlwaysOn)
    receivers[index].isCarried = true
    receivers[index].isOccupant = isHeard
    receivers[index].isExempt = isAlwaysOn && isHeard && choosesVoices
    var outputs: [RoomOutput] = [
      .person(.carried(place)),
      .event(.remoteSubscribed(receiver.media, connection, transceiver: place.transceiver)),
    ]
    if isHeard, hasAudioSlots {
      outputs += order(receiver) { .exemptAudio(transceiver: $0, true) }
    }
    if isHeard { outputs.append(.event(.audioOccupied(receiver.media))) }
    if isMuted || receiver.isMuted { outputs += setAudible(receiver) }
    outputs += setSilenced(receiver, !isHeard)
    return outputs
  }

  private func carried(
    _ receiver: Receiver, by peer: UInt32, _ people: ParticipantTable
  ) -> CarriedMedia? {
    guard let transceiver = receiver.transceiver, let media = people.media(receiver.media),
      let owner = people.person(media.owner)
    else { return nil }
    return CarriedMedia(
      participant: owner.number, media: media.id.number, kind: media.kind, isInbound: true,
      peer: peer, transceiver: transceiver, extraValue: media.extraValue)
  }

  private func receiver(on connection: ConnectionID, mid: String) -> Receiver? {
    receivers.first { $0.connection == connection && $0.mid == mid }
  }

  // MARK: Playback

  /// Records that a transceiver gained or lost a slot.
  mutating func recordSlot(
    _ isHeld: Bool, of transceiver: UInt32, on connection: ConnectionID
  ) -> [RoomOutput] {
    let index = receivers.firstIndex {
      $0.connection == connection && $0.transceiver == transceiver
    }
    guard let index, receivers[index].isOccupant != isHeld, !receivers[index].isExempt else {
      return []
    }
    receivers[index].isOccupant = isHeld
    let media = receivers[index].media
    return setSilenced(receivers[index], !isHeld)
      + [.event(isHeld ? .audioOccupied(media) : .audioVacated(media))]
  }

  private var choosesVoices: Bool { if case .all = voices { false } else { true } }

  /// Silences a receiver without a slot, or plays it again.
  private func setSilenced(_ receiver: Receiver, _ isSilenced: Bool) -> [RoomOutput] {
    guard silences, !receiver.isVideo else { return [] }
    return order(receiver) { .setSilenced(transceiver: $0, isSilenced) }
  }

  /// Sets the voices that the service sends in addition to those that are always on.
  mutating func setVoices(_ media: [MediaID]) -> [RoomOutput] {
    guard case .reported = voices else { return [] }
    reported = Array(media.prefix(ReceiverPool.reportedMaximum))
    var outputs: [RoomOutput] = []
    // Report voices that are no longer played before the new ones.
    for isHeard in [false, true] {
      for index in receivers.indices where receivers[index].isCarried && !receivers[index].isVideo {
        let receiver = receivers[index]
        guard !receiver.isExempt, receiver.isOccupant != isHeard,
          reported.contains(receiver.media) == isHeard
        else { continue }
        receivers[index].isOccupant = isHeard
        outputs.append(
          .event(isHeard ? .audioOccupied(receiver.media) : .audioVacated(receiver.media)))
      }
    }
    return outputs
  }

  /// The maximum number of voices; no service sends more at the same time.
  private static let reportedMaximum = 1_000

  /// Applies a change of `isAlwaysOn` to audio that is being received.
  mutating func exempt(_ media: PublishedMedia) -> [RoomOutput] {
    guard choosesVoices, let index = place(of: media.id), !receivers[index].isVideo,
      receivers[index].isCarried, receivers[index].transceiver != nil,
      receivers[index].isExempt != media.isAlwaysOn
    else { return [] }
    let wasHeard = receivers[index].isOccupant
    let isHeard = isHeardAtOnce(media.id, isAlwaysOn: media.isAlwaysOn)
    receivers[index].isExempt = media.isAlwaysOn
    receivers[index].isOccupant = isHeard
    var outputs: [RoomOutput] = []
    if hasAudioSlots {
      outputs = order(receivers[index]) { .exemptAudio(transceiver: $0, media.isAlwaysOn) }
    }
    guard wasHeard != isHeard else { return outputs }
    outputs += setSilenced(receivers[index], !isHeard)
    return outputs + [.event(isHeard ? .audioOccupied(media.id) : .audioVacated(media.id))]
  }

  /// Mutes or unmutes all received audio; the setting of each stream is kept separately.
  mutating func setMuted(_ isMuted: Bool) -> [RoomOutput] {
    self.isMuted = isMuted
    return receivers.flatMap { setAudible($0) }
  }

  /// Mutes or unmutes one received audio stream; the setting for all audio is kept separately.
  mutating func setMuted(_ isMuted: Bool, _ media: MediaID) throws(SignalingFailure) -> [RoomOutput]
  {
    guard let index = place(of: media) else { throw failure(.notSubscribed, media) }
    receivers[index].isMuted = isMuted
    return setAudible(receivers[index])
  }

  /// Turns a receiver's audio on or off in the connection; the audio is off while this receiver or
  /// all audio is muted.
  private func setAudible(_ receiver: Receiver) -> [RoomOutput] {
    guard !receiver.isVideo else { return [] }
    return order(receiver) { .setAudible(transceiver: $0, !isMuted && !receiver.isMuted) }
  }

  /// Returns an order for a receiver's connection, or nothing if the media is not carried.
  private func order(
    _ receiver: Receiver, _ order: (UInt32) -> RoomConnectionOrder
  ) -> [RoomOutput] {
    guard let connection = receiver.connection, let transceiver = receiver.transceiver else {
      return []
    }
    return [.connection(connection, order(transceiver))]
  }

  private func failure(_ code: RoomErrorCode, _ media: MediaID) -> SignalingFailure {
    SignalingFailure(code, code.meaning, media: media)
  }
}
