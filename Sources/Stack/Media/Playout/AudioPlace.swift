import RTP
import Wire

/// How far a stream of audio was played, and what was made up since.
struct AudioPlace {
  /// What was played before a packet came.
  enum Arrival {
    /// Nothing that it would be needed for.
    case inTime
    /// The packet itself: the same again is no loss.
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
  /// The newest numbers of packets that carry no audio: events, or comfort noise.
  private var silentSequences: [Int64] = []
  private static let silentMaximum = 64
  /// Samples made up in a row, and those of them during which the playhead stood still.
  private(set) var concealedRun = 0
  private var heldSamples: Int64 = 0

  /// Whether a packet comes before what was played.
  func arrival(of frame: ReceivedFrame) -> Arrival {
    if let lastSequence, frame.firstSequence <= lastSequence {
      return frame.firstSequence == lastSequence ? .again : .late
    }
    return hasPlayed && frame.extendedTime < playhead ? .late : .inTime
  }

  /// Whether a packet follows the one played last, so that nothing between them was lost.
  func isFollowed(by frame: ReceivedFrame) -> Bool {
    lastSequence.map { last in
      var next = last &+ 1
      while next < frame.firstSequence, silentSequences.contains(next) { next &+= 1 }
      return frame.firstSequence == next
    } ?? false
  }

  /// Whether the packet after the one played last carries no audio.
  var isFollowedBySilence: Bool {
    lastSequence.map { silentSequences.contains($0 &+ 1) } ?? false
  }

  /// Records the number of a packet that carries no audio.
  mutating func pass(_ sequence: Int64) {
    if silentSequences.count == AudioPlace.silentMaximum { silentSequences.removeFirst() }
    silentSequences.append(sequence)
  }

  /// Another stream begins.
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

  /// Goes on at a media time.
  mutating func move(to time: Int64) { playhead = time }

  mutating func play(_ entry: AudioPacketBuffer.Entry) {
    pass(entry)
    // What is made up after it comes in blocks of 2.5 ms at least, however short the packet was.
    lastDuration = max(entry.packet.duration, 120)
    concealedRun = 0
    hasPlayed = true
  }

  /// A packet is left out.
  mutating func skip(_ entry: AudioPacketBuffer.Entry) {
    pass(entry)
    heldSamples = 0
  }

  private mutating func pass(_ entry: AudioPacketBuffer.Entry) {
    playhead = entry.end
    lastSequence = max(lastSequence ?? entry.frame.lastSequence, entry.frame.lastSequence)
  }

  // MARK: What is made up

  /// Counts made-up samples; whether they are the first of a run.
  mutating func conceal(_ count: Int) -> Bool {
    defer { concealedRun += count }
    return concealedRun == 0
  }

  /// What was lost is there again.
  mutating func recover() { concealedRun = 0 }

  /// The playhead stood still while a block was made up.
  mutating func hold() { heldSamples += Int64(lastDuration) }

  /// Sets what was made up while the place was held against the gap before a packet; returns what
  /// is left of it.
  mutating func closeGap(before head: AudioPacketBuffer.Entry) -> Int64 {
    let gap = head.frame.extendedTime &- playhead
    guard gap > 0 else {
      heldSamples = 0
      return 0
    }
    playhead &+= min(gap, heldSamples)
    heldSamples = 0
    // Less than 2.5 ms cannot be made up.
    if head.frame.extendedTime &- playhead < 120 { playhead = head.frame.extendedTime }
    return head.frame.extendedTime &- playhead
  }
}
