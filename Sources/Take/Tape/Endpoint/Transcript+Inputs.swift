import Crypto
import FoundationEssentials
import Media
package import Peer
import RTP
import SCTP
import SDP
import Stats
import Wire

// Writes inputs as rows, which `EndpointDecoder` reads.
extension Transcript {
  package mutating func append(_ input: PeerInput) {
    switch input {
    case .genesis(let genesis): append(genesis)
    case .interfaces(let addresses, let types):
      let listedTypes = types.map(\.rawValue).joined(separator: " ")
      add(
        NetworkRow(
          kind: "interfaces", address: listed(addresses),
          networkTypes: types.isEmpty ? nil : listedTypes))
    case .datagram(let datagram, let arrival): append(datagram, at: arrival, isInbound: true)
    case .deadline: break
    case .call(let id, let call): append(call, id: id)
    case .send(let id, let message): append(message, call: id)
    case .captured(let transceiver, let media): append(media, of: transceiver)
    case .answer(.socketBound(let id, let address)):
      add(NetworkRow(kind: "bound", request: id, address: address.description))
    case .answer(.socketFailed(let id, let code)):
      add(NetworkRow(kind: "bind-failed", request: id, code: code))
    case .answer(.streamAccepted(let local, let remote)):
      add(
        NetworkRow(kind: "accepted", address: local.description, remote: remote.description))
    case .answer(.nameResolved(let id, let addresses)):
      add(NetworkRow(kind: "resolved", request: id, address: listed(addresses)))
    case .sendFailed(let failure):
      add(
        NetworkRow(
          kind: "send-failed", address: failure.local.description,
          remote: failure.remote.description, code: failure.code, packets: failure.packets,
          bytes: failure.bytes))
    case .signaling(let message):
      add(
        SignalingRow(
          direction: Direction(isInbound: message.isInbound), transport: message.transport,
          type: message.type, message: message.message))
    case .relayed(let packet): append(packet)
    }
  }

  /// Adds a row for a datagram, with its transport-wide sequence number if that is negotiated.
  mutating func append(_ datagram: borrowing Datagram, at time: Instant, isInbound: Bool) {
    let id = notes(EndpointNotes.init).transportSequenceID
    append(datagram, at: time, isInbound: isInbound, transportSequenceID: id)
  }

  private mutating func append(_ packet: RelayedPacket) {
    guard format >= RelayedRow.since else {
      var row = CaptureRow(track: UInt32(clamping: packet.transport))
      row.kind = RelayedRow.formerKindPrefix + packet.kind.rowName
      row.content = content(packet.bytes)
      return add(row)
    }
    add(
      RelayedRow(
        protocol: packet.kind.rowName, transport: packet.transport, bytes: packet.bytes))
  }

  private func listed(_ addresses: [IPAddress]) -> String {
    addresses.map(\.description).joined(separator: " ")
  }

  private mutating func append(_ genesis: Genesis) {
    let words = words
    if words.clock != .zero { add(ClockRow(added: words.clock.nanoseconds)) }
    add(
      PeerRow(
        label: words.label, role: words.role, seed: genesis.seed,
        wallClock: genesis.wallClock.unixNanosecondsAtZero,
        configuration: CanonicalJSON.text(genesis.configuration),
        actor: ActorNumber(number: actor)))
  }

  private mutating func append(_ call: PeerCall, id: UInt32) {
    let parts = notes(EndpointNotes.init).calls.text(call)
    add(CallRequestRow(call: id, name: parts.name, arguments: parts.arguments))
  }

  private mutating func append(_ media: CapturedMedia, of transceiver: UInt32) {
    var row = CaptureRow(track: transceiver)
    switch media {
    case .audio(let block):
      row.kind = MediaKind.audio.rawValue
      (row.channels, row.samples) = (block.channels, block.frameCount)
      if !block.samples.isEmpty { row.content = content(littleEndianBytes(block.samples)) }
    case .videoFrame(let videoFrame): describe(videoFrame, in: &row)
    case .frame(let videoFrame, let timestamp):
      describe(videoFrame, in: &row)
      row.timestamp = timestamp
    case .encoded(let codec, let stream):
      row.kind = codec.rawValue
      row.content = content(stream)
    }
    add(row)
  }

  private mutating func describe(_ videoFrame: I420Buffer, in row: inout CaptureRow) {
    row.kind = MediaKind.video.rawValue
    (row.width, row.height) = (videoFrame.width, videoFrame.height)
    if !videoFrame.samples.isEmpty { row.content = content(videoFrame.samples) }
  }
}

extension ClearPacket.Kind {
  /// The packet kind's name in the rows of relayed packets.
  fileprivate var rowName: String {
    switch self {
    case .rtp: "rtp"
    case .rtcp: "rtcp"
    case .sctp: "sctp"
    }
  }

  /// Parses the name in a row; fails for unknown names.
  init?(rowName: some StringProtocol) {
    let kinds: [ClearPacket.Kind] = [.rtp, .rtcp, .sctp]
    guard let kind = kinds.first(where: { $0.rowName == rowName }) else { return nil }
    self = kind
  }
}

/// Returns 16-bit samples as bytes, least significant byte first.
func littleEndianBytes(_ samples: [Int16]) -> [UInt8] {
  var bytes: [UInt8] = []
  bytes.reserveCapacity(samples.count * 2)
  for sample in samples {
    bytes.append(UInt8(truncatingIfNeeded: sample))
    bytes.append(UInt8(truncatingIfNeeded: sample >> 8))
  }
  return bytes
}

/// Returns the samples that `littleEndianBytes` encoded, ignoring an odd last byte.
func samples(littleEndian bytes: [UInt8]) -> [Int16] {
  var samples: [Int16] = []
  samples.reserveCapacity(bytes.count / 2)
  for index in stride(from: 1, to: bytes.count, by: 2) {
    let (low, high) = (UInt16(bytes[index - 1]), UInt16(bytes[index]))
    samples.append(Int16(bitPattern: low | high << 8))
  }
  return samples
}

/// Caches the text of the last call, because most calls of a recording are the same `getStats`.
struct CallMemory {
  private var last: (call: PeerCall, text: CallText)?

  mutating func text(_ call: PeerCall) -> CallText {
    // Only `getStats` is cached: in other calls, equal numbers such as 0.0 and -0.0 differ as text.
    guard case .getStats = call else { return CallText(call) }
    if let last, last.call == call { return last.text }
    let text = CallText(call)
    last = (call, text)
    return text
  }

  /// Parses a call; nil if this version does not know it.
  mutating func call(_ name: String, _ arguments: String) -> PeerCall? {
    if let last, last.text.arguments == arguments, last.text.name == name { return last.call }
    let text = CallText(name: name, arguments: arguments)
    guard let call = text.call else { return nil }
    last = (call, text)
    return call
  }
}

/// The name and the arguments of an API call, as in its row.
struct CallText {
  var name: String
  var arguments: String

  init(name: String, arguments: String) {
    self.name = name
    self.arguments = arguments
  }

  /// Splits an encoded call, whose JSON is `{"name":{arguments}}`.
  init(_ call: PeerCall) { self.init(encoding: call) }

  /// Splits an encoded call to a machine of any kind.
  init(encoding call: some Encodable) {
    let text = CanonicalJSON.text(call)
    guard text.hasPrefix("{\""), let end = text.dropFirst(2).firstIndex(of: "\"") else {
      self.init(name: "", arguments: text)
      return
    }
    self.init(
      name: String(text.dropFirst(2)[..<end]),
      arguments: String(text[text.index(end, offsetBy: 2)...].dropLast()))
  }

  /// The call with its arguments decoded; nil if this version does not know it.
  var call: PeerCall? { value(PeerCall.self) }

  func value<Call: Decodable>(_ type: Call.Type) -> Call? {
    CanonicalJSON.value(type, from: "{\(jsonName):\(arguments)}")
  }

  private var jsonName: String { CanonicalJSON.text(name) }
}

// MARK: - Data

// Writes data channels and their messages as rows.
extension Transcript {
  mutating func append(_ record: DataChannelRecord) {
    let options = record.options
    let counters = record.counters
    add(
      ChannelRow(
        channel: record.channel, state: record.state.rawValue, isRemote: record.isRemote,
        label: options.label, protocol: options.protocol, id: options.id,
        ordered: options.ordered, maxPacketLifeTime: options.maxPacketLifeTime,
        maxRetransmits: options.maxRetransmits, negotiated: options.negotiated,
        priority: options.priority.rawValue, messagesSent: counters.messagesSent,
        bytesSent: counters.bytesSent, messagesReceived: counters.messagesReceived,
        bytesReceived: counters.bytesReceived))
  }

  /// Adds a row for a message; `call` is nil if the message was received.
  ///
  /// A replay needs the bytes that the application sent, so they are always stored. Received bytes
  /// follow from the packets, so a take without media stores only their digest.
  mutating func append(_ message: DataMessage, call: UInt32?) {
    append(message, call: call, isInbound: call == nil)
  }

  /// Adds a row for a message that one end of an observed call sent.
  mutating func append(seen message: DataMessage) {
    append(message, call: nil, isInbound: false)
  }

  private mutating func append(_ message: DataMessage, call: UInt32?, isInbound: Bool) {
    let keepsBytes = keepsMedia || call != nil
    add(
      MessageRow(
        direction: Direction(isInbound: isInbound), channel: message.channel, call: call,
        isBinary: message.isBinary, size: message.bytes.count,
        digest: keepsBytes ? nil : SHA256.hash(message.bytes),
        bytes: keepsBytes ? message.bytes : nil))
  }
}

// MARK: - Notices

// Writes notices about tracks, candidates and transports as rows.
extension Transcript {
  /// Adds a row for a notice of the stack, such as that a track was muted.
  mutating func appendNotice(_ event: PeerEvent) {
    switch event {
    case .trackChanged(let change):
      detail(
        change.kind.rawValue,
        [
          ("transceiver", .integer(Int64(change.transceiver))),
          ("direction", .text(Direction(isInbound: change.isInbound).rawValue)),
          ("reason", change.reason.map { .text($0.rawValue) }),
        ])
    case .candidatesRemoved(let candidates):
      for candidate in candidates {
        detail(
          "candidateremoved",
          [
            ("candidate", .text(candidate.candidate)),
            ("sdpMLineIndex", candidate.sdpMLineIndex.map { .integer(Int64($0)) }),
            ("sdpMid", candidate.sdpMid.map { .text($0) }),
            ("usernameFragment", candidate.usernameFragment.map { .text($0) }),
          ])
      }
    case .gatheringError(let error):
      add(EventRow(type: "icecandidateerror", detail: CanonicalJSON.text(error)))
    case .selectedPair(let change):
      add(EventRow(type: "selectedcandidatepairchange", detail: CanonicalJSON.text(change)))
    case .mutedSpeech(let transceiver, let isSpeaking):
      detail(
        "mutedspeech",
        [
          ("phase", .text(isSpeaking ? "began" : "ended")),
          ("transceiver", .integer(Int64(transceiver))),
        ])
    case .connectionEnded(let reason):
      detail("connectionend", [("reason", .text(reason.rawValue))])
    default: break
    }
  }
}

// MARK: - Speakers

// Writes audio levels and speakers as rows.
extension Transcript {
  /// Adds an audio block to its track's sum, and writes the sum as a row when it has reached 100
  /// ms.
  mutating func appendLevel(_ frame: borrowing FrameRecord, samples: Int) {
    let notes = notes(EndpointNotes.init)
    guard let sum = notes.meter.add(frame, samples: samples, at: at) else { return }
    let direction = Direction(isInbound: frame.isInbound)
    add(
      LevelRow(
        track: frame.transceiver, direction: direction, energy: sum.energy, samples: sum.samples,
        peak: sum.peak, meter: sum.meter, senderLevel: sum.senderLevel, isVoice: sum.isVoice))
    for contributor in sum.contributors {
      add(
        ContributionRow(
          track: frame.transceiver, direction: direction, contributor: contributor.source,
          level: contributor.level.map { -Int($0) }))
    }
  }

  /// Adds a row that lists the loudest voices and their levels.
  mutating func appendLoudest(_ volumes: [SpeakerVolume]) {
    let list = volumes.map { volume in
      JSONText.object(members(of: volume.track) + [("dbov", .integer(volume.decibels))])
    }
    add(EventRow(type: "loudest", detail: JSONText.object([("speakers", .list(list))]).text))
  }

  /// Returns the JSON members that identify a voice: a track or a contributing source.
  func members(of track: SpeakingTrack) -> [(String, JSONText?)] {
    [
      ("contributor", track.contributor.map { .integer(Int64($0)) }),
      ("direction", .text(directionName(track.isInbound))),
      ("track", .integer(Int64(track.transceiver))),
    ]
  }

  mutating func append(_ speech: SpeechRecord) {
    // Unlike other times in outputs, the times of speech are still on the peer's own clock.
    let clock = words.clock
    add(
      SpeechRow(
        track: speech.track.transceiver,
        direction: Direction(isInbound: speech.track.isInbound),
        contributor: speech.track.contributor, phase: speech.phase, from: speech.from + clock,
        to: speech.to + clock, blocks: speech.blocks, decibels: speech.decibels))
  }
}
