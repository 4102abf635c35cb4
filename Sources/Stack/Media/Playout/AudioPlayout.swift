package import RTP
package import Wire

/// The receiving side of an audio track: reordering, adaptive delay, decoding, concealment.
///
/// A packet waits until its media time plus the fastest transit plus the target delay, which
/// follows the recent spread of transits (`ArrivalSpread`). Each tick plays one block: the packet
/// that is due, a packet recovered from the next packet's in-band FEC, or concealment. A block is
/// as long as its packet, usually 20 ms. When the buffer is empty the playhead is held, so that
/// late packets are played late instead of being lost. After a second without packets, or sooner
/// after quiet audio, the track goes silent and has no deadline until packets arrive again.
///
/// Every call to the decoder produces exactly one output.
package struct AudioPlayout: Machine {
  package enum Input {
    case frame(ReceivedFrame)
    case deadline
  }
  package enum Output {
    /// The next audio block, with the packet that contained it.
    case played(PlayedAudio)
  }

  /// The bounds of the delay beyond the fastest transit, unless a longer delay was requested or is
  /// needed for sync.
  package static let leastDelay = Interval.milliseconds(40)
  package static let mostDelay = Interval.milliseconds(500)
  /// The maximum number of ticks that a late step catches up on before the clock is moved forward.
  private static let mostLateTicks = 10

  /// Consecutive concealed samples after which the track goes silent: 1 s, or 100 ms after quiet
  /// audio, when the sender is probably pausing.
  private static let mostConcealed = 48_000
  private static let mostConcealedWhenQuiet = 4_800
  /// A delay that exceeds the target by more than this is cut immediately.
  private static let mostExcess = Interval.milliseconds(300)

  package private(set) var counters = AudioPlayoutCounters()
  /// When the next block is played; nil while the track is silent.
  package private(set) var nextTick: Instant?
  private var ssrc: UInt32?
  /// The codec of the last packet played, whose decoder also conceals missing packets.
  private var codec = CodecName.opus
  /// The number of 48 kHz ticks per tick of the stream's clock; all times here are in 48 kHz ticks.
  private var ticks: Int64 = 1
  private var buffer = AudioPacketBuffer()
  private var delay: AudioDelay
  private var place = AudioPlace()
  private var decoder: PlayoutDecoder

  /// Creates a track's playout.
  /// - Parameters:
  ///   - channels: output channels, 1 or 2.
  ///   - minimumDelay: the lower limit of the delay; more than 5 s counts as 5 s.
  ///   - rampsGain: whether a gain change is spread over a block instead of being immediate.
  package init(
    track: String, codecs: any CodecFactory, channels: Int = 1, minimumDelay: Interval = .zero,
    rampsGain: Bool = false
  ) {
    delay = AudioDelay(minimum: minimumDelay)
    decoder = PlayoutDecoder(
      track: track, channels: min(max(channels, 1), 2), codecs: codecs, rampsGain: rampsGain)
  }

  package var deadline: Instant? { nextTick }

  /// This track's delay, ignoring other tracks in its stream.
  @inline(__always)
  package var independentDelay: Interval { delay.independent }

  /// Returns when a sample would be played, ignoring other tracks; nil before the first packet.
  package func independentPlayout(ofRTPTime time: UInt32) -> Instant? {
    delay.independentPlayout(ofRTPTime: time, lasting: ticks)
  }

  /// Sets the minimum delay that keeps audio in sync with the stream's video.
  package mutating func align(to delay: Interval) { self.delay.align(to: delay) }

  /// Sets the gain, which is applied before anything is counted or output.
  package mutating func setGain(_ gain: PlayoutGain) { decoder.setGain(gain) }

  /// Records a packet without audio, so that it does not count as lost.
  package mutating func pass(_ sequence: Int64) { place.pass(sequence) }

  package mutating func step(
    _ input: Input, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    switch input {
    case .frame(let frame): enqueue(frame, at: now)
    case .deadline:
      for _ in 0..<AudioPlayout.mostLateTicks {
        guard let nextTick, nextTick <= now else { return }
        tick(nextTick, at: now, into: &outbox)
      }
      guard let nextTick, nextTick <= now else { return }
      self.nextTick = now + interval(place.lastDuration)
    }
  }

  /// Buffers a packet and wakes a silent track.
  private mutating func enqueue(_ frame: ReceivedFrame, at now: Instant) {
    guard let packet = AudioPacket(frame) else {
      counters.packetsMalformed &+= 1
      return
    }
    var frame = frame
    frame.extendedTime = frame.extendedTime &* packet.ticks
    // Another stream or clock restarts everything, because its times are unrelated.
    if frame.ssrc != ssrc || packet.ticks != ticks {
      ssrc = frame.ssrc
      (codec, ticks) = (frame.codec, packet.ticks)
      delay.reset()
      reset()
    }
    switch delay.observe(frame) {
    case .steady: break
    case .jumped: reset()
    case .straggler:
      counters.packetsDiscarded &+= 1
      return
    }
    switch place.arrival(of: frame) {
    case .inTime: break
    case .again:
      counters.packetsDuplicated &+= 1
      return
    case .late:
      counters.packetsDiscarded &+= 1
      return
    }
    if buffer.isFull {
      buffer.removeFirst()
      counters.packetsDiscarded &+= 1
    }
    guard buffer.insert(.init(frame: frame, packet: packet)) else {
      counters.packetsDuplicated &+= 1
      return
    }
    if nextTick == nil || !place.hasPlayed { begin(at: now) }
  }

  /// Drops the packets and resets the position.
  private mutating func reset() {
    counters.packetsDiscarded &+= UInt64(buffer.entries.count)
    buffer.removeAll()
    place.forget()
    nextTick = nil
  }

  /// Schedules the first block: the oldest packet at its due time.
  private mutating func begin(at now: Instant) {
    guard let first = buffer.first else { return }
    place.move(to: first.frame.extendedTime)
    nextTick = max(now, delay.dueTime(of: place.playhead))
    delay.recordAdjustment()
  }

  private func interval(_ samples: Int) -> Interval {
    Interval(nanoseconds: Int64(samples) * 62_500 / 3)
  }

  // MARK: - Tick

  private mutating func tick(_ due: Instant, at now: Instant, into outbox: inout Outbox<Output>) {
    delay.tick()
    dropOverdue(due)
    guard let head = buffer.first else {
      hold(at: due, into: &outbox)
      return
    }
    let gap = place.closeGap(before: head)
    if gap > 0 {
      bridge(gap, before: head, at: due, into: &outbox)
      return
    }
    let excess = due - delay.dueTime(of: place.playhead)
    let last = interval(place.lastDuration)
    if place.hasPlayed, delay.shouldInsert(excess, block: last) {
      delay.recordAdjustment()
      conceal(place.lastDuration, isInsertion: true, into: &outbox)
      nextTick = due + last
    } else if place.hasPlayed, buffer.firstIsFollowed,
      delay.shouldRemove(excess, block: interval(head.packet.duration))
    {
      delay.recordAdjustment()
      remove(head)
      guard let next = buffer.first else { return }
      play(next, due: due, at: now, into: &outbox)
    } else {
      play(head, due: due, at: now, into: &outbox)
    }
  }

  /// Skips ahead if far more is buffered than needed, as after a stall.
  private mutating func dropOverdue(_ due: Instant) {
    while let head = buffer.first, buffer.entries.count > 1,
      due - delay.dueTime(of: head.frame.extendedTime) > AudioPlayout.mostExcess
    {
      remove(head)
      delay.recordAdjustment()
    }
  }

  /// Removes a packet to shorten the delay.
  private mutating func remove(_ head: AudioPacketBuffer.Entry) {
    counters.removedSamplesForAcceleration &+= UInt64(head.packet.duration)
    place.skip(head)
    buffer.removeFirst()
  }

  // MARK: - Gaps

  /// Conceals a block because nothing is buffered, and holds the position for late packets.
  private mutating func hold(at due: Instant, into outbox: inout Outbox<Output>) {
    let isPause = delay.isQuiet || place.isFollowedBySilence
    let limit = isPause ? AudioPlayout.mostConcealedWhenQuiet : AudioPlayout.mostConcealed
    guard place.concealedRun < limit else {
      place.rest()
      nextTick = nil
      return
    }
    conceal(place.lastDuration, isInsertion: false, into: &outbox)
    place.hold()
    nextTick = due + interval(place.lastDuration)
  }

  /// Fills the gap before a buffered packet when the packet that is due is missing.
  private mutating func bridge(
    _ gap: Int64, before head: AudioPacketBuffer.Entry, at due: Instant,
    into outbox: inout Outbox<Output>
  ) {
    let isPause = place.isFollowed(by: head.frame)
    let limit = isPause ? AudioPlayout.mostConcealedWhenQuiet : AudioPlayout.mostConcealed
    guard place.concealedRun < limit, gap <= Int64(AudioPlayout.mostConcealed) else {
      // Enough has been concealed, or the gap is too long: continue with the next packet when it is
      // due.
      place.move(to: head.frame.extendedTime)
      nextTick = max(due, delay.dueTime(of: place.playhead))
      return
    }
    if !isPause, head.packet.hasInbandFEC, gap <= Int64(head.packet.frameDuration) {
      recover(Int(gap) / 120 * 120, from: head.frame, into: &outbox)
      place.move(to: head.frame.extendedTime)
      nextTick = due + interval(Int(gap))
      return
    }
    let count = min(Int(gap) / 120 * 120, place.lastDuration)
    conceal(count, isInsertion: false, into: &outbox)
    place.move(to: place.playhead &+ Int64(count))
    nextTick = due + interval(count)
  }

  // MARK: - Audio

  private mutating func play(
    _ entry: AudioPacketBuffer.Entry, due: Instant, at now: Instant,
    into outbox: inout Outbox<Output>
  ) {
    buffer.removeFirst()
    codec = entry.frame.codec
    place.play(entry)
    nextTick = due + interval(entry.packet.duration)
    let decoded = decode(.payload(entry.frame.bytes), lasting: entry.packet.duration)
    counters.countEmitted(
      samples: decoded.block.frameCount, delay: now - entry.frame.firstArrival,
      target: delay.target, minimum: delay.network)
    delay.record(
      level: AudioMeter.level(energy: decoded.energy, frameCount: decoded.block.frameCount))
    put(.packet, entry.frame, decoded, into: &outbox)
  }

  private mutating func recover(
    _ count: Int, from frame: ReceivedFrame, into outbox: inout Outbox<Output>
  ) {
    let decoded = decode(
      .recoverPrevious(from: frame.bytes, frameCount: count), lasting: count)
    counters.recoveredSamples &+= UInt64(decoded.block.frameCount)
    counters.fecPacketsReceived &+= 1
    place.recover()
    put(.recovered, frame, decoded, into: &outbox)
  }

  private mutating func conceal(
    _ count: Int, isInsertion: Bool, into outbox: inout Outbox<Output>
  ) {
    let decoded = decode(.conceal(frameCount: count), lasting: count)
    let samples = UInt64(decoded.block.frameCount)
    if isInsertion {
      counters.insertedSamplesForDeceleration &+= samples
    } else {
      if place.conceal(count) { counters.concealmentEvents &+= 1 }
      counters.concealedSamples &+= samples
      let level = AudioMeter.level(energy: decoded.energy, frameCount: decoded.block.frameCount)
      if delay.isSilent(level: level) {
        counters.silentConcealedSamples &+= samples
      }
    }
    put(.concealed, nil, decoded, into: &outbox)
  }

  private mutating func put(
    _ origin: PlayedAudio.Origin, _ frame: ReceivedFrame?, _ decoded: DecodedAudio,
    into outbox: inout Outbox<Output>
  ) {
    counters.countPlayed(decoded)
    outbox.append(
      .played(PlayedAudio(origin: origin, frame: frame, decoded: decoded, codec: codec)))
  }

  private mutating func decode(
    _ request: AudioDecodeRequest, lasting frameCount: Int
  ) -> DecodedAudio {
    decoder.decode(request, codec, lasting: frameCount, failures: &counters.decodingFailures)
  }
}

extension AudioPlayout {
  package var snapshot: AudioPlayoutSnapshot {
    let end = buffer.entries.last?.end ?? place.playhead
    return AudioPlayoutSnapshot(
      bufferedPackets: buffer.entries.count,
      buffered: interval(Int(clamping: max(0, end.subtractingReportingOverflow(place.playhead).0))),
      targetDelay: delay.target, alignedDelay: delay.aligned, playhead: place.playhead,
      isSilent: nextTick == nil, nextTick: nextTick,
      concealedRun: interval(place.concealedRun), counters: counters)
  }
}

// MARK: - PlayoutDecoder

/// A playout's decoders, each created for the first block that needs it, and the gain.
struct PlayoutDecoder {
  private let track: String
  private let channels: Int
  private let codecs: any CodecFactory
  /// One decoder per codec; nil for a codec whose decoder could not be created.
  private var decoders: [(codec: CodecName, decoder: (any AudioDecoding)?)] = []
  /// The gain, applied before anything is counted or output.
  private var gain = PlayoutGain.unity
  private let rampsGain: Bool
  /// The previous block's gain, for a ramp; nil before the first block.
  private var former: PlayoutGain?

  init(track: String, channels: Int, codecs: any CodecFactory, rampsGain: Bool = false) {
    self.track = track
    self.channels = channels
    self.codecs = codecs
    self.rampsGain = rampsGain
  }

  mutating func setGain(_ gain: PlayoutGain) { self.gain = gain }

  /// Calls the decoder; returns silence of the same length if there is no decoder or the decoder
  /// refuses the block.
  ///
  /// A refused block is counted in `failures`, as is a decoder that cannot be created.
  mutating func decode(
    _ request: AudioDecodeRequest, _ codec: CodecName, lasting frameCount: Int,
    failures: inout UInt64
  ) -> DecodedAudio {
    do throws(CodecError) {
      if let decoder = try decoder(codec) {
        let decoded = try decoder.decode(request)
        defer { former = gain }
        guard rampsGain, let former, former != gain else { return gain.applied(to: decoded) }
        return gain.applied(to: decoded, from: former)
      }
    } catch {
      failures &+= 1
    }
    let samples = [Int16](repeating: 0, count: frameCount * channels)
    return DecodedAudio(
      block: AudioBlock(samples: samples, channels: channels), peak: 0, energy: 0)
  }

  private mutating func decoder(_ codec: CodecName) throws(CodecError) -> (any AudioDecoding)? {
    if let known = decoders.first(where: { $0.codec == codec }) { return known.decoder }
    decoders.append((codec, nil))
    let made = try codecs.audioDecoder(track: track, codec, channels: channels)
    decoders[decoders.count - 1].decoder = made
    return made
  }
}
