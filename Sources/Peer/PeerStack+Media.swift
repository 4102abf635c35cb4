import Flow
import JSEP
import Media
import RTP
import Transport
import Wire

// Media between the packets below and the sources and codecs above.
extension PeerStack {
  // MARK: Flow

  func drive(_ bundle: Bundle, _ input: MediaFlow.Input) {
    let isOutermost = bundle.flowOutputs.isEmpty
    bundle.flow.step(input, at: now, into: &bundle.flowOutputs)
    guard isOutermost else { return }
    while let output = bundle.flowOutputs.next() { handle(output, of: bundle) }
  }

  private func handle(_ output: consuming MediaFlow.Output, of bundle: Bundle) {
    switch consume output {
    case .rtp(let packet): drive(bundle, PeerTransport.Input.rtp(packet))
    case .rtcp(let packet): drive(bundle, PeerTransport.Input.rtcp(packet))
    case .received(let frame): play(frame)
    case .keyframeRequested(let mid): requestKeyframe(mid)
    case .targetBitrate(let bitrate):
      bundle.videoBitrate = bitrate
      shareBitrate(of: bundle)
    case .lossReported(let mid, let share): reportLoss(share, mid)
    case .rtcpBlock(let record):
      tell(.rtcp(record))
      // A sender report tells the time at which the sender captured what.
      if record.isInbound, record.type == "sr" { alignPlayouts() }
    case .streamBegan, .streamEnded: break
    }
  }

  // MARK: Receiving

  private func play(_ frame: ReceivedFrame) {
    guard let section = negotiation.sections.first(where: { $0.mid == frame.mid }) else { return }
    let index: Int
    if let known = tracks.receivingIndex(ofMID: frame.mid) {
      index = known
    } else {
      index = tracks.receiving.count
      tracks.receiving.append(
        ReceivingTrack(
          transceiver: section.transceiverID, kind: section.kind, mid: frame.mid, codecs: codecs,
          minimumDelay: .milliseconds(Int64(genesis.configuration.jitterBufferMinimum ?? 0))))
    }
    switch frame.kind {
    case .audio: driveAudioPlayout(at: index, .frame(frame))
    case .video: driveVideoPlayout(at: index, .frame(frame))
    }
  }

  private func driveAudioPlayout(at index: Int, _ input: AudioPlayout.Input) {
    var outputs = Outbox<AudioPlayout.Output>()
    tracks.receiving[index].audio?.step(input, at: now, into: &outputs)
    let transceiver = tracks.receiving[index].transceiver
    while case .played(let played)? = outputs.next() {
      let isOwnPacket = played.origin == .packet
      var record = FrameRecord(
        transceiver: transceiver, kind: .audio, isInbound: true,
        codec: played.frame?.codec ?? .opus, ssrc: played.frame?.ssrc ?? 0,
        rtpTime: played.frame?.rtpTime ?? 0, isKey: true, width: 0, height: 0,
        bytes: isOwnPacket ? played.frame?.bytes ?? [] : [],
        outcome: isOwnPacket ? "decoded" : played.origin.rawValue,
        decoded: .audio(played.decoded.block), quantiser: 0)
      record.peak = played.decoded.peak
      record.energy = played.decoded.energy
      record.audioLevel = isOwnPacket ? played.frame?.audioLevel : nil
      record.isVoice = isOwnPacket && played.frame?.isVoice ?? false
      record.contributors = isOwnPacket ? played.frame?.contributors ?? [] : []
      tell(.frame(record))
      hear(record, frameCount: played.decoded.block.frameCount)
      let level =
        record.audioLevel
        ?? AudioLevel.level(
          energy: record.energy, frameCount: played.decoded.block.frameCount)
      if isOwnPacket {
        tracks.receiving[index].lastPlayed = (record.rtpTime, now)
        tracks.receiving[index].sources.play(record, level: level, at: now)
      }
      // To send on what was decoded is to mix it (RFC 3550 section 7.1).
      echo(
        .audio(played.decoded.block), of: transceiver,
        from: [Contributor(source: record.ssrc, level: level)])
    }
  }

  private func driveVideoPlayout(at index: Int, _ input: VideoPlayout.Input) {
    var outputs = Outbox<VideoPlayout.Output>()
    tracks.receiving[index].video?.step(input, at: now, into: &outputs)
    let transceiver = tracks.receiving[index].transceiver
    while let output = outputs.next() {
      switch output {
      case .shown(let frame, let decoded):
        let record = videoRecord(transceiver, frame, "decoded", decoded)
        tell(.frame(record))
        tracks.receiving[index].lastPlayed = (frame.rtpTime, now)
        tracks.receiving[index].sources.play(record, level: nil, at: now)
        echo(.picture(decoded.picture), of: transceiver)
      case .undecodable(let frame):
        tell(.frame(videoRecord(transceiver, frame, "undecodable")))
        drive(bundles.carrying(frame.mid), .requestKeyframe(mid: frame.mid))
      case .passed(let frame):
        let record = videoRecord(transceiver, frame, "not decoded")
        tell(.frame(record))
        tracks.receiving[index].lastPlayed = (frame.rtpTime, now)
        tracks.receiving[index].sources.play(record, level: nil, at: now)
        passOn(frame, of: transceiver)
      }
    }
  }

  private func videoRecord(
    _ transceiver: UInt32, _ frame: ReceivedFrame, _ outcome: String, _ decoded: DecodedVideo? = nil
  ) -> FrameRecord {
    FrameRecord(
      transceiver: transceiver, kind: .video, isInbound: true, codec: frame.codec, ssrc: frame.ssrc,
      rtpTime: frame.rtpTime, isKey: frame.isKey, width: decoded?.picture.width ?? 0,
      height: decoded?.picture.height ?? 0, bytes: frame.bytes,
      outcome: outcome, decoded: decoded.map { .picture($0.picture) } ?? .none,
      quantiser: decoded?.quantiser ?? 0)
  }

  /// Feeds what a transceiver received to its own sender, when that is the sender's source.
  private func echo(
    _ media: CapturedMedia, of transceiver: UInt32, from contributors: [Contributor] = []
  ) {
    guard let index = tracks.sendingIndex(of: transceiver), tracks.sending[index].source == .echo,
      tracks.sending[index].isRunning
    else { return }
    tracks.sending[index].contributors = contributors
    feed(media, at: index)
  }

  /// Sends a frame back as it came, where the echo of the same codec is what is sent.
  private func passOn(_ frame: ReceivedFrame, of transceiver: UInt32) {
    guard let index = tracks.sendingIndex(of: transceiver), tracks.sending[index].source == .echo,
      tracks.sending[index].codec == frame.codec.rawValue, let mid = tracks.sending[index].mid
    else { return }
    let passed = EncodedFrame(
      kind: .video, codec: frame.codec, mediaTime: frame.rtpTime, bytes: frame.bytes,
      isKey: frame.isKey)
    pass(passed, from: tracks.sending[index], mid)
  }

  /// Sends a frame that was encoded elsewhere.
  private func pass(_ frame: EncodedFrame, from track: SendingTrack, _ mid: String) {
    tell(
      .frame(
        FrameRecord(
          transceiver: track.transceiver, kind: .video, isInbound: false, codec: frame.codec,
          ssrc: track.ssrc, rtpTime: frame.mediaTime, isKey: frame.isKey, width: Int(frame.width),
          height: Int(frame.height), bytes: frame.bytes, outcome: "passed on", decoded: .none,
          quantiser: 0)))
    drive(bundles.carrying(mid), .frame(mid: mid, frame))
  }

  // MARK: Sending

  /// Media from the application for a transceiver's sender.
  func capture(_ media: CapturedMedia, for transceiver: UInt32) {
    guard let index = tracks.sendingIndex(of: transceiver), tracks.sending[index].isRunning,
      tracks.sending[index].source == .application
    else { return }
    feed(media, at: index)
  }

  private func feed(_ media: CapturedMedia, at index: Int) {
    switch media {
    case .audio(let block): driveAudioCapture(at: index, .block(block))
    case .picture(let picture):
      guard tracks.sending[index].stream == nil else { return refuseEncoding(at: index) }
      driveVideoCapture(at: index, .picture(picture))
    case .h264(let stream): sendStream(stream, at: index)
    }
  }

  /// Sends a picture that comes encoded, where that codec was agreed on.
  private func sendStream(_ stream: [UInt8], at index: Int) {
    guard let mid = tracks.sending[index].mid, tracks.sending[index].stream != nil else {
      refuse(
        layer: "encoder",
        "pictures in H.264 came to be sent, but \(tracks.sending[index].codec) was agreed on")
      return
    }
    guard let frame = tracks.sending[index].stream?.take(stream, at: now) else { return }
    pass(frame, from: tracks.sending[index], mid)
  }

  private func refuseEncoding(at index: Int) {
    refuse(
      layer: "encoder",
      "nothing can be encoded as \(tracks.sending[index].codec), which is all that the peer takes:"
        + " send back what comes (echo), or let the peer take VP8 or VP9")
  }

  func driveAudioCapture(at index: Int, _ input: AudioCapture.Input) {
    var outputs = Outbox<AudioCapture.Output>()
    tracks.sending[index].audio?.step(input, at: now, into: &outputs)
    while let output = outputs.next() {
      switch output {
      case .encoded(let frame): send(frame, quantiser: 0, from: index)
      case .failure(let reason): refuse(layer: "encoder", reason)
      }
    }
  }

  func driveVideoCapture(at index: Int, _ input: VideoCapture.Input) {
    var outputs = Outbox<VideoCapture.Output>()
    tracks.sending[index].video?.step(input, at: now, into: &outputs)
    while let output = outputs.next() {
      switch output {
      case .encoded(let frame, let quantiser): send(frame, quantiser: quantiser, from: index)
      case .failure(let reason): refuse(layer: "encoder", reason)
      }
    }
  }

  private func send(_ encoded: EncodedFrame, quantiser: UInt8, from index: Int) {
    let track = tracks.sending[index]
    guard let mid = track.mid else { return }
    var frame = encoded
    if track.source == .echo { frame.contributors = track.contributors }
    var record = FrameRecord(
      transceiver: track.transceiver, kind: frame.kind, isInbound: false, codec: frame.codec,
      ssrc: track.ssrc, rtpTime: frame.mediaTime, isKey: frame.isKey, width: Int(frame.width),
      height: Int(frame.height), bytes: frame.bytes, outcome: "encoded", decoded: .none,
      quantiser: quantiser)
    record.audioLevel = frame.audioLevel
    record.isVoice = frame.isVoice
    record.peak = frame.peak
    record.energy = frame.energy
    record.contributors = frame.contributors
    tracks.sending[index].totals.add(
      frame, quantiser: quantiser, bitrate: track.bitrate,
      late: track.video?.counters.framesLate ?? 0, at: now)
    tell(.frame(record))
    if frame.kind == .audio { hear(record, frameCount: AudioBlock.sampleRate / 50) }
    drive(bundles.carrying(mid), .frame(mid: mid, frame))
  }

  private func requestKeyframe(_ mid: String) {
    guard let index = tracks.sending.firstIndex(where: { $0.mid == mid && $0.kind == .video })
    else { return }
    driveVideoCapture(at: index, .requestKeyframe)
    // Only the peer can make a key frame of what is its own.
    if tracks.sending[index].source == .echo, tracks.sending[index].video == nil {
      drive(bundles.carrying(mid), .requestKeyframe(mid: mid))
    }
  }

  private func reportLoss(_ share: UInt8, _ mid: String) {
    guard let index = tracks.sending.firstIndex(where: { $0.mid == mid && $0.kind == .audio })
    else { return }
    driveAudioCapture(at: index, .lossReported(share))
  }

  /// Shares the transport's target between the video encoders that run.
  private func shareBitrate(of bundle: Bundle) {
    guard let total = bundle.videoBitrate else { return }
    let running = tracks.sending.indices.filter { index in
      let track = tracks.sending[index]
      return track.isRunning && track.kind == .video
        && track.mid.map { bundles.carrying($0) === bundle } ?? false
    }
    guard !running.isEmpty else { return }
    let limits = running.map {
      tracks.senders.encoding(of: tracks.sending[$0].transceiver, .video).maxBitrate
    }
    for (index, share) in zip(running, PeerStack.shares(of: total, limits: limits)) {
      tracks.sending[index].bitrate = share
      driveVideoCapture(at: index, .bitrate(share))
    }
  }

  // MARK: Clocks

  func reachTrackDeadlines() {
    for index in tracks.receiving.indices {
      if let due = tracks.receiving[index].audio?.deadline, due <= now {
        driveAudioPlayout(at: index, .deadline)
      }
      if let due = tracks.receiving[index].video?.deadline, due <= now {
        driveVideoPlayout(at: index, .deadline)
      }
    }
    for index in tracks.sending.indices where tracks.sending[index].isRunning {
      if let due = tracks.sending[index].audio?.deadline, due <= now {
        driveAudioCapture(at: index, .deadline)
      }
      if let due = tracks.sending[index].video?.deadline, due <= now {
        driveVideoCapture(at: index, .deadline)
      }
    }
  }

  // MARK: What runs

  /// Starts, stops or replaces captures so that they fit what was agreed and what is wanted.
  func updateCaptures() {
    for index in tracks.sending.indices {
      let track = tracks.sending[index]
      let section = negotiation.sections.first { $0.transceiverID == track.transceiver }
      let isWanted =
        !isClosed && track.source != nil && section?.direction.sends == true
        && section.map { bundles.carrying($0.mid).transport.isSecured } == true
        && tracks.senders.encoding(of: track.transceiver, track.kind).active
      if let section, isWanted {
        let codec = section.sentCodec?.name ?? ""
        // An encoder makes frames of one codec, so another one goes on in its place.
        if track.isRunning, track.codec != codec { stopCapture(at: index) }
        if tracks.sending[index].mid != section.mid { startCapture(at: index, section) }
      } else if track.isRunning {
        stopCapture(at: index)
      }
    }
    for bundle in bundles.all { shareBitrate(of: bundle) }
  }

  private func startCapture(at index: Int, _ section: NegotiatedSection) {
    guard let source = tracks.sending[index].source else { return }
    let transceiver = tracks.sending[index].transceiver
    tracks.sending[index].ssrc =
      negotiation.transceivers.first { $0.id == transceiver }?.ssrc ?? 0
    tracks.sending[index].mid = section.mid
    tracks.sending[index].codec = section.sentCodec?.name ?? ""
    switch section.kind {
    case .audio:
      var settings = OpusSettings()
      let bitrate = audioBitrate(of: transceiver)
      tracks.sending[index].audioBitrate = bitrate
      settings.bitrate = Int32(clamping: bitrate)
      tracks.sending[index].audio = AudioCapture(
        track: String(transceiver), source: source, settings: settings, codecs: codecs,
        origin: tracks.sending[index].origin, counters: tracks.sending[index].audioCounters)
      driveAudioCapture(at: index, .start)
    case .video:
      let codec = CodecName(rawValue: tracks.sending[index].codec)
      if codec.isPassedThrough {
        switch source {
        case .echo: break
        case .application:
          tracks.sending[index].stream = StreamCapture(
            at: now, origin: tracks.sending[index].origin,
            counters: tracks.sending[index].videoCounters)
        default: refuseEncoding(at: index)
        }
        return
      }
      tracks.sending[index].video = VideoCapture(
        track: String(transceiver), source: source,
        codec: codec, codecs: codecs,
        origin: tracks.sending[index].origin, counters: tracks.sending[index].videoCounters)
      let limit = tracks.senders.encoding(of: transceiver, .video).maxBitrate ?? .max
      let allowed = bundles.carrying(section.mid).videoBitrate
      let bitrate = min(allowed ?? genesis.configuration.videoBitrateStart, limit)
      tracks.sending[index].bitrate = bitrate
      driveVideoCapture(at: index, .bitrate(bitrate))
      applyEncoding(at: index)
      driveVideoCapture(at: index, .start)
    }
  }

  func stopCapture(at index: Int) {
    let track = tracks.sending[index]
    tracks.sending[index].origin =
      track.audio?.origin ?? track.video?.origin
      ?? track.stream?.origin ?? track.origin
    if tracks.sending[index].audio != nil {
      driveAudioCapture(at: index, .stop)
      forgetSpeaker(track.transceiver, isInbound: false)
    }
    if tracks.sending[index].video != nil { driveVideoCapture(at: index, .stop) }
    if let sound = tracks.sending[index].audio {
      tracks.sending[index].audioCounters = sound.counters
    }
    tracks.sending[index].videoCounters = tracks.sending[index].pictureCounters
    tracks.sending[index].audio = nil
    tracks.sending[index].video = nil
    tracks.sending[index].stream = nil
    tracks.sending[index].mid = nil
  }
}
