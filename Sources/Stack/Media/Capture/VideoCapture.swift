package import RTP
package import Wire

/// The sending side of a video track: a source and an encoder on the source's frame clock.
///
/// The test pattern is generated on a grid that begins at the first start and never drifts; frames
/// are dropped if the clock is late. Frames from the application or the echo are encoded as they
/// arrive.
package struct VideoCapture: Machine {
  package enum Input {
    case start
    case stop
    /// A frame from the application or the echo.
    case videoFrame(I420Buffer)
    /// Whether the video is sent; otherwise black frames replace it.
    case enabled(Bool)
    /// A frame with its capture time, in nanoseconds of the source's clock.
    case frame(I420Buffer, timestamp: Int64)
    /// Whether the video is screen content from now on.
    case screen(Bool)
    case requestKeyframe
    case bitrate(UInt64)
    /// The maximum frame rate (nil for no limit), and the factor of at least 1 by which frames are
    /// scaled down (W3C maxFramerate and scaleResolutionDownBy).
    case limits(framesPerSecond: Double?, scaleDownBy: Double)
    /// The number of temporal layers from now on, 1 to 3.
    case temporalLayers(Int)
    case deadline
  }
  package enum Output {
    case encoded(EncodedFrame, quantiser: UInt8)
    case failure(String)
  }

  /// The bit rate before the first target, in bits per second.
  package static let startBitrate: UInt64 = 600_000
  /// The frame rate assumed for an application's source.
  private static let applicationFramesPerSecond = 30
  /// Frames closer together than this (1 ms in the 90 kHz clock) are dropped.
  private static let leastDistance: Int64 = 90

  /// The pattern's size, rate and progress on the grid.
  private struct Clock {
    var width: Int
    var height: Int
    var framesPerSecond: Int64
    var pattern: TestPattern?
    var nextFrame: Int64 = 0

    func start(of frame: Int64, since origin: Instant) -> Instant {
      let (seconds, rest) = frame.quotientAndRemainder(dividingBy: framesPerSecond)
      return origin + .seconds(seconds)
        + Interval(nanoseconds: rest * 1_000_000_000 / framesPerSecond)
    }

    /// Returns the number of the last frame that starts at or before an instant.
    func frame(at now: Instant, since origin: Instant) -> Int64 {
      let elapsed = max(0, (now - origin).nanoseconds)
      let (seconds, rest) = elapsed.quotientAndRemainder(dividingBy: 1_000_000_000)
      // Frame starts are rounded down, so one nanosecond is added.
      return seconds * framesPerSecond + ((rest + 1) * framesPerSecond - 1) / 1_000_000_000
    }
  }

  package private(set) var counters = VideoCaptureCounters()
  /// The instant of media time 0: either passed to the initialiser or set by the first start; nil
  /// until then.
  package private(set) var origin: Instant?

  private var clock: Clock?
  private var encoder: CaptureEncoder
  private var isRunning = false
  private var hasFailed = false
  private var isEnabled: Bool
  private var blackout = Blackout()
  private var thinner = FrameThinner()
  private var scaleDownBy = 1.0
  private var frameClock = FrameClock()
  /// The media time of the last encoded frame, without wrap-around.
  private var lastMediaTime: Int64?

  /// Creates a track's capture.
  /// - Parameters:
  ///   - codec: the codec, which a library or the application must be able to encode.
  ///   - origin: the instant of media time 0 if this capture continues another one's stream (W3C
  ///     replaceTrack); if nil, the first start is used.
  ///   - counters: the counters of an earlier capture of the same source.
  ///   - isEnabled: whether the video is sent rather than black frames.
  ///   - unitLimit: the largest H.264 unit in bytes; nil if the peer accepts fragments.
  package init(
    track: String, source: MediaSource, codec: CodecName, codecs: any CodecFactory,
    origin: Instant? = nil, counters: VideoCaptureCounters = VideoCaptureCounters(),
    isEnabled: Bool = true, unitLimit: Int? = nil
  ) {
    self.isEnabled = isEnabled
    self.counters = counters
    encoder = CaptureEncoder(
      track: track, codec: codec, codecs: codecs, unitLimit: unitLimit)
    self.origin = origin
    if case .pattern(let width, let height, let framesPerSecond) = source {
      clock = Clock(
        width: min(max(width, 1), 4_096), height: min(max(height, 1), 4_096),
        framesPerSecond: Int64(min(max(framesPerSecond, 1), 240)))
    }
  }

  /// When the pattern's next frame is due; nil unless the pattern is running.
  package var deadline: Instant? {
    guard isRunning, !hasFailed, let clock, let origin else { return nil }
    return clock.start(of: clock.nextFrame, since: origin)
  }

  package mutating func step(
    _ input: Input, at now: Instant, into outbox: inout Outbox<Output>
  ) {
    guard !hasFailed else { return }
    switch input {
    case .start: start(at: now)
    case .stop: isRunning = false
    case .videoFrame(let videoFrame):
      guard isRunning, clock == nil, let origin else { return }
      encode(videoFrame, RTPClock.ticks(from: origin, to: now), into: &outbox)
    case .enabled(let isEnabled): self.isEnabled = isEnabled
    case .frame(let videoFrame, let timestamp):
      guard isRunning, clock == nil, let origin else { return }
      let arrival = RTPClock.ticks(from: origin, to: now)
      encode(videoFrame, frameClock.mediaTime(of: timestamp, arrival: arrival), into: &outbox)
    case .screen(let isScreen): encoder.setScreen(isScreen)
    case .requestKeyframe: encoder.requestKeyframe()
    case .bitrate(let bitsPerSecond): encoder.setBitrate(bitsPerSecond)
    case .limits(let framesPerSecond, let factor):
      thinner.limit(to: framesPerSecond)
      scaleDownBy = factor
    case .temporalLayers(let count): encoder.setTemporalLayers(count)
    case .deadline:
      guard let deadline, now >= deadline else { return }
      tick(at: now, into: &outbox)
    }
  }

  private mutating func start(at now: Instant) {
    guard !isRunning else { return }
    isRunning = true
    encoder.requestKeyframe()
    // If this capture continues another one, the other one has already sent this instant's frame.
    let first = origin == nil ? now : now + Interval(nanoseconds: 1)
    let begin = origin ?? now
    origin = begin
    guard let clock else { return }
    // Begin with the first frame that starts now or later.
    var next = clock.frame(at: first, since: begin)
    if clock.start(of: next, since: begin) < first { next += 1 }
    self.clock?.nextFrame = max(clock.nextFrame, next)
  }

  private mutating func tick(at now: Instant, into outbox: inout Outbox<Output>) {
    guard let clock, let origin else { return }
    let number = max(clock.nextFrame, clock.frame(at: now, since: origin))
    counters.framesSkipped &+= UInt64(number - clock.nextFrame)
    counters.framesLate &+= UInt64(number - clock.nextFrame)
    self.clock?.nextFrame = number + 1
    let rate = clock.framesPerSecond
    let mediaTime = number / rate * 90_000 + number % rate * 90_000 / rate
    let size = VideoScaler.size(
      width: clock.width, height: clock.height, dividedBy: scaleDownBy)
    do throws(CodecError) {
      let wantsPixels = try encoder.open(
        width: size.width, height: size.height, framesPerSecond: expectedFramesPerSecond)
      encode(videoFrame(number, wantsPixels: wantsPixels), mediaTime, into: &outbox)
    } catch {
      fail(error, into: &outbox)
    }
  }

  private mutating func videoFrame(_ number: Int64, wantsPixels: Bool) -> I420Buffer {
    guard let clock, wantsPixels else {
      return I420Buffer(width: clock?.width ?? 0, height: clock?.height ?? 0, samples: [])
    }
    let pattern = clock.pattern ?? TestPattern(width: clock.width, height: clock.height)
    self.clock?.pattern = pattern
    return pattern.videoFrame(number)
  }

  private mutating func encode(
    _ videoFrame: I420Buffer, _ mediaTime: Int64, into outbox: inout Outbox<Output>
  ) {
    counters.frames &+= 1
    counters.width = videoFrame.width
    counters.height = videoFrame.height
    counters.captureTimes.record(mediaTime)
    let sides = 1...LibraryVPXEncoder.largestSide
    guard sides.contains(videoFrame.width), sides.contains(videoFrame.height),
      lastMediaTime.map({ mediaTime - $0 >= VideoCapture.leastDistance }) ?? true,
      thinner.admits(mediaTime)
    else {
      counters.framesSkipped &+= 1
      return
    }
    let size = VideoScaler.size(
      width: videoFrame.width, height: videoFrame.height, dividedBy: scaleDownBy)
    let scaled = VideoScaler.scaled(videoFrame, width: size.width, height: size.height)
    let videoFrame = isEnabled ? scaled : blackout.black(like: scaled)
    do throws(CodecError) {
      let made = try encoder.encode(
        videoFrame, mediaTime: UInt32(truncatingIfNeeded: mediaTime),
        framesPerSecond: expectedFramesPerSecond)
      lastMediaTime = mediaTime
      guard let (frame, encoded) = made else { return }
      counters.count(encoded)
      outbox.append(.encoded(frame, quantiser: encoded.quantiser))
    } catch {
      fail(error, into: &outbox)
    }
  }

  private var expectedFramesPerSecond: Int {
    clock.map { Int($0.framesPerSecond) } ?? VideoCapture.applicationFramesPerSecond
  }

  private mutating func fail(_ error: CodecError, into outbox: inout Outbox<Output>) {
    hasFailed = true
    isRunning = false
    encoder.close()
    outbox.append(.failure(error.reason))
  }
}

// MARK: - CaptureEncoder

/// A video capture's encoder and its settings; the encoder is created for the first frame.
struct CaptureEncoder {
  private let track: String
  private let codec: CodecName
  private let codecs: any CodecFactory
  private var encoder: (any VideoEncoding)?
  private var wantsKeyframe = true
  private var bitrate = VideoCapture.startBitrate
  private var isScreen = false
  private var temporalLayers = 1
  private let unitLimit: Int?
  private var pattern: TemporalPattern?

  init(track: String, codec: CodecName, codecs: any CodecFactory, unitLimit: Int? = nil) {
    self.unitLimit = unitLimit
    self.track = track
    self.codec = codec
    self.codecs = codecs
  }

  mutating func requestKeyframe() { wantsKeyframe = true }

  mutating func setBitrate(_ bitsPerSecond: UInt64) {
    guard bitsPerSecond != bitrate else { return }
    bitrate = bitsPerSecond
    encoder?.setBitrate(bitsPerSecond)
  }

  mutating func setScreen(_ isScreen: Bool) {
    guard isScreen != self.isScreen else { return }
    self.isScreen = isScreen
    // An encoder is configured for its content only once, so a new encoder replaces it.
    replace()
  }

  mutating func setTemporalLayers(_ count: Int) {
    guard count != temporalLayers else { return }
    temporalLayers = count
    pattern = count > 1 ? TemporalPattern(count: count) : nil
    replace()
  }

  private mutating func replace() {
    encoder = nil
    wantsKeyframe = true
  }

  mutating func close() { encoder = nil }

  /// Creates the encoder with this initial size, unless there is an encoder already.
  /// - Returns: whether the encoder needs pixels.
  mutating func open(
    width: Int, height: Int, framesPerSecond: Int
  ) throws(CodecError) -> Bool {
    try opened(width: width, height: height, framesPerSecond: framesPerSecond).wantsPixels
  }

  private mutating func opened(
    width: Int, height: Int, framesPerSecond: Int
  ) throws(CodecError) -> any VideoEncoding {
    if let encoder { return encoder }
    var settings = VideoSettings(
      codec: codec, width: width, height: height, framesPerSecond: framesPerSecond,
      bitrate: bitrate)
    settings.isScreen = isScreen
    settings.temporalLayers = temporalLayers
    settings.unitLimit = unitLimit
    let made = try codecs.videoEncoder(track: track, settings)
    encoder = made
    return made
  }

  /// Encodes a video frame; returns nil if the encoder drops it.
  /// - Parameter framesPerSecond: the frame rate for which an encoder is created.
  mutating func encode(
    _ videoFrame: I420Buffer, mediaTime: UInt32, framesPerSecond: Int
  ) throws(CodecError) -> (frame: EncodedFrame, encoded: EncodedVideo)? {
    let encoder = try opened(
      width: videoFrame.width, height: videoFrame.height, framesPerSecond: framesPerSecond)
    let step = pattern?.next(isKey: wantsKeyframe)
    if let step { encoder.begin(step) }
    let encoded = try encoder.encode(videoFrame, mediaTime: mediaTime, forceKey: wantsKeyframe)
    guard let encoded else { return nil }
    if encoded.isKey { wantsKeyframe = false }
    // H.264 frames have even sizes, so an odd last column or row is cut off.
    let mask = codec == .h264 ? ~1 : ~0
    var frame = EncodedFrame(
      kind: .video, codec: codec, mediaTime: mediaTime, bytes: encoded.bytes,
      isKey: encoded.isKey, width: UInt16(clamping: videoFrame.width & mask),
      height: UInt16(clamping: videoFrame.height & mask))
    if let step { frame.temporal = pattern?.record(step, isKey: encoded.isKey) }
    return (frame, encoded)
  }
}

/// A video source's counters for W3C media-source and outbound-rtp statistics.
package struct VideoCaptureCounters: Hashable, Sendable {
  /// Frames received or generated, including frames that are dropped later.
  package var frames: UInt64 = 0
  /// Frames that were skipped, for example because the clock was late or they were too close
  /// together, or, if they arrived encoded, because the path could not carry them.
  package var framesSkipped: UInt64 = 0
  /// The skipped frames that were dropped because the clock was late.
  package var framesLate: UInt64 = 0
  /// Encoded frames, and the key frames among them.
  package var framesEncoded: UInt64 = 0
  package var keyFramesEncoded: UInt64 = 0
  /// The sum of all encoded frames' quantisers.
  package var qpSum: UInt64 = 0
  /// The size of the last video frame.
  package var width = 0
  package var height = 0

  package init() {}

  var captureTimes = FrameRate(ticksPerSecond: 90_000)

  /// Returns the number of frames in the second before a media time, in 1/90000 s.
  package func framesPerSecond(atMediaTime mediaTime: Int64) -> Int {
    captureTimes.count(at: mediaTime)
  }

  mutating func count(_ encoded: EncodedVideo) {
    framesEncoded &+= 1
    if encoded.isKey { keyFramesEncoded &+= 1 }
    qpSum &+= UInt64(encoded.quantiser)
  }
}
