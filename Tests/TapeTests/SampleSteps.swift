import Flow
import ICE
import JSEP
import Media
import Peer
import RTP
import SCTP
import SDP
import Stats
import Tape
import Wire

/// Hand-made steps with every kind of input and output.
enum SampleSteps {
  static let local = SocketAddress(IPAddress(ipv4: 0x7f00_0001), port: 5000)
  static let remote = SocketAddress(IPAddress(ipv6High: 0x2001_0db8 << 32, low: 1), port: 6000)

  static func datagram(_ bytes: [UInt8], from port: UInt16 = 6000) -> Datagram {
    Datagram(
      local: local, remote: SocketAddress(IPAddress(ipv4: 0x0a00_0001), port: port), bytes: bytes)
  }

  /// Returns an RTP packet with the transport-wide sequence number in extension 5.
  static func rtp(sequence: UInt16, payload: Int = 40) -> [UInt8] {
    var writer = ByteWriter()
    writer.uint8(0x90)
    writer.uint8(0x80 | 96)
    writer.uint16(sequence)
    writer.uint32(0xf000_0000 &+ UInt32(sequence) * 3000)
    writer.uint32(0xdead_beef)
    writer.uint16(0xbede)
    writer.uint16(1)
    writer.uint8(0x51)
    writer.uint16(sequence &+ 7)
    writer.uint8(0)
    for index in 0..<payload { writer.uint8(UInt8(truncatingIfNeeded: index &* 7)) }
    return writer.bytes
  }

  static let genesis = Genesis(
    seed: (0..<32).map { UInt8($0) }, wallClock: WallClock(unixNanosecondsAtZero: 1_700_000_000),
    configuration: PeerConfiguration())

  static let videoFrame = I420Buffer(
    width: 4, height: 2, samples: (0..<12).map { UInt8($0) })

  static let inputs: [PeerInput] = [
    .genesis(genesis),
    .interfaces([local.ip, remote.ip], types: [.ethernet, .wifi]),
    .interfaces([]),
    .call(id: 1, .createOffer(iceRestart: true)),
    .call(id: 2, .setLocalDescription(nil)),
    .call(id: 3, .setRemoteDescription(SessionDescription(type: .offer, sdp: "v=0\r\n\"/\u{0}é"))),
    .call(id: 4, .addICECandidate(CandidateInit(candidate: "candidate:1", sdpMLineIndex: 0))),
    .call(
      id: 5,
      .addTrack(
        kind: .video, streamIDs: ["a", "b"],
        source: .pattern(width: 64, height: 48, framesPerSecond: 5))),
    .call(
      id: 6,
      .addTransceiver(kind: .audio, direction: .recvonly, streamIDs: [], source: nil)),
    .call(id: 7, .getStats()),
    .call(id: 8, .setDirection(transceiver: 1, .inactive)),
    .call(id: 29, .setStreams(transceiver: 1, ["s", "t"])),
    .call(id: 30, .setCodecPreferences(transceiver: 1, RTPCodec.capabilities(.video))),
    .call(id: 31, .getParameters(transceiver: 1)),
    .call(id: 32, .setParameters(transceiver: 1, parameters)),
    .call(
      id: 33,
      .addStream(MediaStreamInit(id: "s", tracks: [.init(id: "a", kind: .audio, source: .echo)]))),
    .call(id: 34, .removeStream("s")),
    .call(id: 35, .streams),
    .call(id: 36, .readDescription(.currentRemote)),
    .call(
      id: 37, .addTrack(kind: .audio, streamIDs: [], source: .application, trackID: "track")),
    .call(
      id: 38,
      .addTransceiver(
        kind: .video, direction: .sendonly, streamIDs: [], source: nil,
        sendEncodings: [RTPEncoding(active: false, maxBitrate: 9, maxFramerate: 12.5)])),
    .call(
      id: 39,
      .addTransceiver(
        kind: .video, direction: .sendonly, streamIDs: [], source: nil,
        sendEncodings: [RTPEncoding(maxFramerate: -.infinity, scaleResolutionDownBy: .infinity)])),
    .call(id: 40, .setEnabled(transceiver: 1, isInbound: true, isEnabled: false)),
    .call(id: 41, .setVolume(transceiver: 1, volume: 2.5)),
    .call(id: 47, .insertDTMF(transceiver: 1, tones: "1#", duration: 100, gap: 70)),
    .call(id: 42, .trackState(transceiver: 1, isInbound: false)),
    .call(id: 43, .replaceSource(transceiver: 1, nil)),
    .call(id: 44, .replaceSource(transceiver: 1, .echo, isEnabled: false)),
    .call(id: 9, .createDataChannel(channel.options)),
    .call(id: 10, .setBufferedAmountLowThreshold(channel: 3, .max)),
    .send(id: 11, DataMessage(channel: 3, isBinary: false, bytes: Array("é\u{0}".utf8))),
    .send(id: 12, DataMessage(channel: 3, isBinary: true, bytes: [])),
    .captured(transceiver: 1, .audio(AudioBlock(samples: [1, -1, 32767, -32768], channels: 2))),
    .captured(transceiver: 1, .audio(AudioBlock(samples: [1, -1, 32767, -32768], channels: 2))),
    .captured(transceiver: 1, .audio(AudioBlock(blank: 960, channels: 1))),
    .captured(transceiver: 2, .videoFrame(videoFrame)),
    .captured(transceiver: 2, .videoFrame(I420Buffer(width: 640, height: 480, samples: []))),
    .captured(transceiver: 2, .videoFrame(videoFrame)),
    .answer(.socketBound(id: 1, local)),
    .answer(.socketFailed(id: 2, code: 98)),
    .answer(.streamAccepted(local: local, remote: remote)),
    .answer(.nameResolved(id: 3, [remote.ip])),
    .answer(.nameResolved(id: 4, [])),
    .sendFailed(SendFailure(local: local, remote: remote, code: -101, packets: 2, bytes: 2400)),
    .signaling(
      SignalingMessage(isInbound: true, transport: "http", type: "offer", message: "{}")),
    .datagram(datagram([]), arrival: Instant(nanoseconds: 5)),
    .datagram(datagram(rtp(sequence: 1)), arrival: Instant(nanoseconds: 900)),
    .datagram(datagram(rtp(sequence: 65535)), arrival: Instant(nanoseconds: 901)),
    .datagram(datagram([0x80, 200, 0, 1, 0xde, 0xad, 0xbe, 0xef]), arrival: .zero),
    .datagram(
      Datagram(local: remote, remote: local, bytes: [0, 1], ecn: .congestionExperienced),
      arrival: .zero),
    .relayed(RelayedPacket(kind: .rtp, transport: 1, bytes: rtp(sequence: 3))),
    .deadline,
  ]

  static let candidate = ICECandidate(
    foundation: "1", priority: 0xffff_ffff, host: .name("a.local"), port: 9, kind: .serverReflexive,
    related: local, extensions: [ICECandidate.Extension(name: "ufrag", value: "abcd")])

  static var pair: ICEPairReport {
    var pair = ICEPairReport(
      id: 1, local: candidate, remote: candidate, base: local, state: .succeeded, nominated: true,
      selected: true, priority: .max)
    pair.currentRoundTrip = .milliseconds(12)
    return pair
  }

  static let track = TrackRecord(
    transceiver: 1, mid: "0", kind: .video, isInbound: true, ssrc: nil, codec: "vp8",
    payloadType: 96, clockRate: 90_000, transportSequenceID: 5)

  static func frame(inbound: Bool, time: UInt32) -> FrameRecord {
    FrameRecord(
      transceiver: 1, kind: .video, isInbound: inbound, codec: .vp8, ssrc: 0xdead_beef,
      rtpTime: time, isKey: time == 0, width: 4, height: 2, bytes: [1, 2, 3],
      outcome: inbound ? "decoded" : "encoded", decoded: inbound ? .videoFrame(videoFrame) : .none,
      quantiser: 30)
  }

  static var audio: FrameRecord {
    var frame = FrameRecord(
      transceiver: 2, kind: .audio, isInbound: true, codec: .opus, ssrc: 7, rtpTime: .max,
      isKey: true, width: 0, height: 0, bytes: [9], outcome: "decoded",
      decoded: .audio(AudioBlock(samples: [100, -200], channels: 1)), quantiser: 0)
    frame.peak = 200
    frame.energy = 50_000
    frame.audioLevel = 30
    frame.isVoice = true
    frame.contributors = [Contributor(source: 0xfeed_beef, level: 30)]
    return frame
  }

  static let parameters = RTPSendParameters(
    transactionId: "t", encodings: [RTPEncoding(maxBitrate: .max, scaleResolutionDownBy: 1.5)],
    codecs: [.init(payloadType: 96, codec: RTPCodec(mimeType: "video/VP8", clockRate: 90_000))],
    headerExtensions: [.init(uri: "urn:x", id: 14)], cname: "c", reducedSizeRTCP: true)

  static let stream = MediaStreamInfo(
    id: "s", tracks: [.init(id: nil, kind: .audio, transceiver: 1)])

  /// A tenth of a second, which makes a row of levels.
  static var longAudio: FrameRecord {
    var frame = audio
    frame.decoded = .audio(AudioBlock(blank: 4800, channels: 1))
    return frame
  }

  static let info = TransceiverInfo(
    id: 1, kind: .audio, mid: "0", direction: .sendrecv, currentDirection: nil,
    remoteStreamIDs: ["s"])

  static let channel = DataChannelRecord(
    channel: 3, isRemote: false,
    options: DataChannelInit(
      label: "a \"label\"", protocol: "p", ordered: false, maxRetransmits: 2, id: 7),
    state: .open, counters: DataChannelCounters())

  static let channelInfo = DataChannelInfo(
    number: 3, isRemote: false, options: channel.options, readyState: .open, bufferedAmount: 5,
    maxMessageSize: nil)

  static let report = StatsReport(objects: [
    StatsObject(
      id: "T", type: "transport", timestamp: 1.5,
      members: [
        StatsMember("bytesSent", .integer(4)), StatsMember("nan", .number(.nan)),
        StatsMember("state", .text("a\"b")),
        StatsMember("nested", .record([StatsMember("flag", .flag(true))])),
      ]),
    StatsObject(id: "P", type: "peer-connection", timestamp: -0.0, members: []),
  ])

  static let outputs: [PeerOutput] = [
    .datagram(datagram(rtp(sequence: 9))),
    .datagram(datagram([22, 254, 253])),
    .request(.bindSocket(id: 1, local.ip)),
    .request(.closeSocket(local)),
    .request(.listen(id: 9, local.ip)),
    .request(
      .openStream(
        id: 10, StreamTarget(local: local.ip, remote: remote, kind: .peer, name: ""))),
    .request(.closeStream(local: local, remote: remote)),
    .request(.publishName("a.local", local.ip)),
    .request(.resolveName(id: 3, "a.local")),
    .reply(id: 1, .done),
    .reply(id: 2, .description(SessionDescription(type: .answer, sdp: "v=0\r\n"))),
    .reply(id: 3, .transceiver(info)),
    .reply(id: 4, .transceivers([info, info])),
    .reply(id: 31, .parameters(parameters)),
    .reply(id: 33, .streams(MediaStreams(local: [stream], remote: []))),
    .reply(id: 7, .stats(report)),
    .reply(id: 5, .failure(PeerError(name: "InvalidStateError", message: "no"))),
    .event(.state(StateTransition(machine: "dtls", from: "new", to: "connecting"))),
    .event(.negotiationNeeded),
    .event(.localCandidate(nil)),
    .event(.localCandidate(CandidateInit(candidate: "candidate:1", sdpMid: "0"))),
    .event(.candidate(isLocal: true, candidate)),
    .event(.candidatePair(pair)),
    .event(
      .secured(
        SecuredTransport(
          version: "FEFD", cipherSuite: "c", profile: "p", role: "server",
          remoteFingerprint: "AA"))),
    .event(.track(info)),
    .event(.trackEnded(transceiver: 1)),
    .event(.streamAdded(stream)),
    .event(.streamRemoved(id: "s")),
    .event(.trackNegotiated(track)),
    .event(.rtcp(RTCPRecord(isInbound: true, type: "pli", ssrc: .max, fields: "{}"))),
    .event(.frame(frame(inbound: true, time: 0))),
    .event(.frame(frame(inbound: false, time: 0x8000_0000))),
    .event(.frame(audio)),
    .reply(id: 9, .dataChannel(channelInfo)),
    .reply(id: 13, .dataChannels([channelInfo])),
    .event(.dataChannel(channel)),
    .event(.message(DataMessage(channel: 3, isBinary: true, bytes: [0, 255]))),
    .event(.message(DataMessage(channel: 3, isBinary: false, bytes: [0xff]))),
    .event(.bufferedAmountLow(channel: 3)),
    .event(.dataChannelError(channel: 3, "no stream is free")),
    .event(.frame(longAudio)),
    .event(.dominantSpeaker(SpeakingTrack(transceiver: 2, isInbound: true))),
    .event(.dominantSpeaker(nil)),
    .event(
      .speech(
        SpeechRecord(
          track: SpeakingTrack(transceiver: 2, isInbound: true, contributor: 0xfeed_beef),
          phase: "ended", from: .zero + .milliseconds(20), to: .zero + .milliseconds(900),
          blocks: 40, decibels: -1200))),
    .event(
      .loudestSpeakers([
        SpeakerVolume(track: SpeakingTrack(transceiver: 2, isInbound: true), decibels: -20)
      ])),
    .event(.audioSlot(SpeakingTrack(transceiver: 2, isInbound: true), isHeld: true)),
    .reply(
      id: 14,
      .sources(
        ReceivedSources(contributing: [
          ReceivedSource(source: .max, timestamp: 1.5, rtpTimestamp: 9, audioLevel: nil)
        ]))),
    .event(.refused(layer: "srtp", reason: "replayed")),
    .reply(id: 35, .trackState(TrackState(isEnabled: false, volume: 0.25, isMuted: true))),
    .event(
      .trackChanged(
        TrackChange(transceiver: 2, isInbound: true, kind: .mute, reason: .goodbye))),
    .event(.trackChanged(TrackChange(transceiver: 1, isInbound: false, kind: .disabled))),
    .event(
      .candidatesRemoved([
        CandidateInit(candidate: "candidate:1", sdpMid: "0"),
        CandidateInit(candidate: "candidate:2"),
      ])),
    .event(
      .gatheringError(
        GatheringError(
          url: "stun:a:3478", errorCode: 701, errorText: "gone", address: "10.0.0.1"))),
    .event(
      .selectedPair(
        SelectedPairChange(
          transport: 0, local: "l", remote: "r", reason: .lost, lastReceivedMilliseconds: 7))),
    .event(.connectionEnded(.iceFailed)),
  ]

  /// One step per input.
  ///
  /// Every third step has all outputs, the others at most three; peers and deadlines vary.
  static var all: [StepRecord] {
    inputs.enumerated().map { index, input in
      StepRecord(
        peer: index % 5 == 4 ? 2 : 1, at: Instant(nanoseconds: Int64(index) * 1_000_003),
        input: input, outputs: index % 3 == 0 ? outputs : Array(outputs.prefix(index % 4)),
        deadline: index % 4 == 0 ? nil : Instant(nanoseconds: Int64(index / 2) * 5_000_000),
        entropyDrawn: UInt64(index / 3) * 16)
    }
  }

  /// Returns a plain call: a genesis and then RTP packets in and out every 5 ms.
  static func call(packets: Int, payload: Int) -> [StepRecord] {
    var steps = [
      StepRecord(
        peer: 1, at: .zero, input: .genesis(genesis), outputs: [.event(.trackNegotiated(track))],
        deadline: nil, entropyDrawn: 64)
    ]
    for index in 0..<packets {
      let at = Instant(nanoseconds: Int64(index) * 5_000_011)
      let bytes = rtp(sequence: UInt16(truncatingIfNeeded: index), payload: payload)
      let isInbound = index % 2 == 0
      steps.append(
        StepRecord(
          peer: 1, at: at,
          input: isInbound
            ? .datagram(datagram(bytes), arrival: at - .microseconds(60)) : .deadline,
          outputs: isInbound ? [] : [.datagram(datagram(bytes))],
          deadline: at + .microseconds(Int64(index % 7) * 800), entropyDrawn: 64))
    }
    return steps
  }
}
