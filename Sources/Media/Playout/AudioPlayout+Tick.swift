import RTP
import Wire

/// One tick of the playout: which block goes out next, and how the delay follows its target.
extension AudioPlayout {
  /// After so many made-up samples in a row the track falls silent: 1 s, or 100 ms when it was
  /// quiet before, for then the sender most likely pauses.
  private static let mostConcealed = 48_000
  private static let mostConcealedWhenQuiet = 4_800
  /// A block whose level is at or below this many -dBov may be repeated or left out unnoticed.
  private static let quietLevel: UInt8 = 45
  /// A delay that is too long by more than this is shortened at once.
  private static let mostExcess = Interval.milliseconds(300)

  /// Decides on and plays the block that is due.
  mutating func tick(_ due: Instant, at now: Instant, into outbox: inout Outbox<Output>) {
    ticksSinceAdjustment += 1
    dropOverdue(due)
    guard let head = buffer.first else {
      hold(at: due, into: &outbox)
      return
    }
    let gap = closeGap(before: head)
    if gap > 0 {
      bridge(gap, before: head, at: due, into: &outbox)
      return
    }
    let excess = due - dueTime(of: playhead)
    if shouldInsert(excess) {
      ticksSinceAdjustment = 0
      conceal(lastDuration, isInsertion: true, into: &outbox)
      nextTick = due + interval(lastDuration)
    } else if shouldRemove(excess, head) {
      ticksSinceAdjustment = 0
      remove(head)
      guard let next = buffer.first else { return }
      play(next, due: due, at: now, into: &outbox)
    } else {
      play(head, due: due, at: now, into: &outbox)
    }
  }

  // MARK: - The delay

  /// Catches up at once when far more is buffered than wanted, as after a stall.
  private mutating func dropOverdue(_ due: Instant) {
    while let head = buffer.first, buffer.entries.count > 1,
      due - dueTime(of: head.frame.extendedTime) > AudioPlayout.mostExcess
    {
      remove(head)
      ticksSinceAdjustment = 0
    }
  }

  /// Leaves a packet out to shorten the delay.
  private mutating func remove(_ head: AudioPacketBuffer.Entry) {
    counters.removedSamplesForAcceleration &+= UInt64(head.packet.duration)
    playhead = head.end
    note(head.frame.lastSequence)
    heldSamples = 0
    buffer.removeFirst()
  }

  private mutating func note(_ sequence: Int64) {
    lastSequence = max(lastSequence ?? sequence, sequence)
  }

  /// Whether the delay is so much too short that a block more brings it nearer to its target;
  /// quiet places are used earlier.
  private func shouldInsert(_ excess: Interval) -> Bool {
    guard hasPlayed, ticksSinceAdjustment >= 5 else { return false }
    return excess <= (isQuiet ? .milliseconds(-5) : interval(lastDuration) / -2)
  }

  /// Whether the delay is too long by more than a block and the packet after the next is there.
  private func shouldRemove(_ excess: Interval, _ head: AudioPacketBuffer.Entry) -> Bool {
    let block = interval(head.packet.duration)
    guard hasPlayed, buffer.firstIsFollowed, ticksSinceAdjustment >= 5,
      excess >= block + .milliseconds(10)
    else { return false }
    return isQuiet || ticksSinceAdjustment >= (excess >= block * 3 ? 10 : 100)
  }

  // MARK: - Gaps

  /// Sets what was made up while the place was held against the gap; gives what is left of it.
  private mutating func closeGap(before head: AudioPacketBuffer.Entry) -> Int64 {
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

  /// Nothing is there: makes something up and holds the place for late packets.
  private mutating func hold(at due: Instant, into outbox: inout Outbox<Output>) {
    let limit = isQuiet ? AudioPlayout.mostConcealedWhenQuiet : AudioPlayout.mostConcealed
    guard concealedRun < limit else {
      rest()
      return
    }
    conceal(lastDuration, isInsertion: false, into: &outbox)
    heldSamples += Int64(lastDuration)
    nextTick = due + interval(lastDuration)
  }

  /// The packet that is due is missing but a later one is there.
  private mutating func bridge(
    _ gap: Int64, before head: AudioPacketBuffer.Entry, at due: Instant,
    into outbox: inout Outbox<Output>
  ) {
    let isPause = lastSequence.map { head.frame.firstSequence == $0 &+ 1 } ?? false
    let limit = isPause ? AudioPlayout.mostConcealedWhenQuiet : AudioPlayout.mostConcealed
    guard concealedRun < limit, gap <= Int64(AudioPlayout.mostConcealed) else {
      // The gap is as good as silence: on with the packet after it, at its time.
      playhead = head.frame.extendedTime
      nextTick = max(due, dueTime(of: playhead))
      return
    }
    if !isPause, head.packet.hasInbandFEC, gap <= Int64(head.packet.frameDuration) {
      recover(Int(gap) / 120 * 120, from: head.frame, into: &outbox)
      playhead = head.frame.extendedTime
      nextTick = due + interval(Int(gap))
      return
    }
    let count = min(Int(gap) / 120 * 120, lastDuration)
    conceal(count, isInsertion: false, into: &outbox)
    playhead &+= Int64(count)
    nextTick = due + interval(count)
  }

  // MARK: - Audio

  private mutating func play(
    _ entry: AudioPacketBuffer.Entry, due: Instant, at now: Instant,
    into outbox: inout Outbox<Output>
  ) {
    buffer.removeFirst()
    playhead = entry.end
    note(entry.frame.lastSequence)
    lastDuration = entry.packet.duration
    nextTick = due + interval(entry.packet.duration)
    concealedRun = 0
    hasPlayed = true
    let decoded = decode(.payload(entry.frame.bytes), lasting: entry.packet.duration)
    counters.countEmitted(
      samples: decoded.block.frameCount, delay: now - entry.frame.firstArrival,
      target: targetDelay, minimum: networkDelay)
    isQuiet =
      AudioMeter.level(energy: decoded.energy, frameCount: decoded.block.frameCount)
      >= AudioPlayout.quietLevel
    put(.packet, entry.frame, decoded, into: &outbox)
  }

  private mutating func recover(
    _ count: Int, from frame: ReceivedFrame, into outbox: inout Outbox<Output>
  ) {
    let decoded = decode(
      .recoverPrevious(from: frame.bytes, frameCount: count), lasting: count)
    counters.recoveredSamples &+= UInt64(decoded.block.frameCount)
    counters.fecPacketsReceived &+= 1
    concealedRun = 0
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
      if concealedRun == 0 { counters.concealmentEvents &+= 1 }
      concealedRun += count
      counters.concealedSamples &+= samples
      let level = AudioMeter.level(energy: decoded.energy, frameCount: decoded.block.frameCount)
      if isQuiet || level >= AudioPlayout.quietLevel {
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
    outbox.append(.played(PlayedAudio(origin: origin, frame: frame, decoded: decoded)))
  }

  /// Calls the decoder; what it refuses is silence of the same length.
  private mutating func decode(
    _ request: AudioDecodeRequest, lasting frameCount: Int
  ) -> DecodedAudio {
    do throws(CodecError) {
      if decoder == nil && !hasFailed {
        // Once is enough: a library that is not there will not come.
        hasFailed = true
        decoder = try codecs.audioDecoder(track: track, channels: channels)
        hasFailed = false
      }
      if let decoder { return gain.applied(to: try decoder.decode(request)) }
    } catch {
      counters.decodingFailures &+= 1
    }
    let samples = [Int16](repeating: 0, count: frameCount * channels)
    return DecodedAudio(
      block: AudioBlock(samples: samples, channels: channels), peak: 0, energy: 0)
  }
}
