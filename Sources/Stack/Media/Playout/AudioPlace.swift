import RTP
import Wire

/// The position of playout in the stream, and how much was concealed since.
struct AudioPlace {
  /// How a packet relates to what was played.
  enum Arrival {
    /// Nothing at or after it was played.
    case inTime
    /// A duplicate of the packet played.
    case again
    case late
  }

  /// The media time of the next sample.
  private(set) var playhead: Int64 = 0
  /// Whether something was played since the track was last silent.
  private(set) var hasPlayed = false
  /// The newest sequence number played, and how long the last packet was.
  private var lastSequence: Int64?
  private(set) var lastDuration = 960
  /// Recent numbers of packets without audio: events or comfort noise.
  private var silentSequences: [Int64] = []
  private static let silentMaximum = 64
  /// Consecutive concealed samples, and how many of them the playhead was held for.
  private(set) var concealedRun = 0
  private var heldSamples: Int64 = 0

  /// Compares a packet with what was played.
  func arrival(of frame: ReceivedFrame) -> Arrival {
    if let lastSequence, frame.firstSequence <= lastSequence {
      return frame.firstSequence == lastSequence ? .again : .late
    }
    return hasPlayed && frame.extendedTime < playhead ? .late : .inTime
  }

  /// Whether a packet follows the last one played without loss.
  func isFollowed(by frame: ReceivedFrame) -> Bool {
    lastSequence.map { last in
      var next = last &+ 1
      while next < frame.firstSequence, silentSequences.contains(next) { next &+= 1 }
      return frame.firstSequence == next
    } ?? false
  }

  /// Whether the packet after the last one played carries no audio.
  var isFollowedBySilence: Bool {
    lastSequence.map { silentSequences.contains($0 &+ 1) } ?? false
  }

  /// Records a packet without audio.
  mutating func pass(_ sequence: Int64) {
    if silentSequences.count == AudioPlace.silentMaximum { silentSequences.removeFirst() }
    silentSequences.append(sequence)
  }

  /// Resets the position for another stream.
  mutating func forget() {
    lastSequence = nil
    silentSequences = []
    rest()
  }

  /// Falls silent until the next packet.
  mutating func rest() {
    hasPlayed = false
    heldSamples = 0
    concealedRun = 0
  }

  /// Continues at a media time.
  mutating func move(to time: Int64) { playhead = time }

  mutating func play(_ entry: AudioPacketBuffer.Entry) {
    pass(entry)
    // Concealment is in blocks of at least 2.5 ms, however short the packet was.
    lastDuration = max(entry.packet.duration, 120)
    concealedRun = 0
    hasPlayed = true
  }

  /// Skips a packet.
  mutating func skip(_ entry: AudioPacketBuffer.Entry) {
    pass(entry)
    heldSamples = 0
  }

  private mutating func pass(_ entry: AudioPacketBuffer.Entry) {
    playhead = entry.end
    lastSequence = max(lastSequence ?? entry.frame.lastSequence, entry.frame.lastSequence)
  }

  // MARK: What is made up

  /// Counts concealed samples; returns whether they start a run.
  mutating func conceal(_ count: Int) -> Bool {
    defer { concealedRun += count }
    return concealedRun == 0
  }

  /// Ends a run of concealment.
  mutating func recover() { concealedRun = 0 }

  /// Records that the playhead was held during a concealed block.
  mutating func hold() { heldSamples += Int64(lastDuration) }

  /// Deducts concealment during a hold from the gap before a packet; returns the remaining gap.
  mutating func closeGap(before head: AudioPacketBuffer.Entry) -> Int64 {
    let gap = head.frame.extendedTime &- playhead
    guard gap > 0 else {
      heldSamples = 0
      return 0
    }
    playhead &+= min(gap, heldSamples)
    heldSamples = 0
    // Less than 2.5 ms cannot be concealed.
    if head.frame.extendedTime &- playhead < 120 { playhead = head.frame.extendedTime }
    return head.frame.extendedTime &- playhead
  }
}
