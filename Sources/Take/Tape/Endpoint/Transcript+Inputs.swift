import FoundationEssentials
import Media
package import Peer
import RTP
import Wire

// The rows of what came in. `EndpointDecoder` is the inverse of this file.
extension Transcript {
  /// Adds the rows of an input.
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
    }
  }

  /// Adds a datagram of an endpoint, which knows how its packets are counted.
  mutating func append(_ datagram: borrowing Datagram, at time: Instant, isInbound: Bool) {
    let id = notes(EndpointNotes.init).transportSequenceID
    append(datagram, at: time, isInbound: isInbound, transportSequenceID: id)
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

/// 16-bit samples as bytes, low byte first.
func littleEndianBytes(_ samples: [Int16]) -> [UInt8] {
  var bytes: [UInt8] = []
  bytes.reserveCapacity(samples.count * 2)
  for sample in samples {
    bytes.append(UInt8(truncatingIfNeeded: sample))
    bytes.append(UInt8(truncatingIfNeeded: sample >> 8))
  }
  return bytes
}

/// The inverse of `littleEndianBytes`; an odd byte at the end is left out.
func samples(littleEndian bytes: [UInt8]) -> [Int16] {
  var samples: [Int16] = []
  samples.reserveCapacity(bytes.count / 2)
  for index in stride(from: 1, to: bytes.count, by: 2) {
    let (low, high) = (UInt16(bytes[index - 1]), UInt16(bytes[index]))
    samples.append(Int16(bitPattern: low | high << 8))
  }
  return samples
}

/// The last call and its text: most calls of a recording ask for the same statistics again.
struct CallMemory {
  private var last: (call: PeerCall, text: CallText)?

  /// The text of a call.
  mutating func text(_ call: PeerCall) -> CallText {
    // Of others a number may be equal and written in two ways.
    guard case .getStats = call else { return CallText(call) }
    if let last, last.call == call { return last.text }
    let text = CallText(call)
    last = (call, text)
    return text
  }

  /// The call of a text; nil when the text is not one that this version knows.
  mutating func call(_ name: String, _ arguments: String) -> PeerCall? {
    if let last, last.text.arguments == arguments, last.text.name == name { return last.call }
    let text = CallText(name: name, arguments: arguments)
    guard let call = text.call else { return nil }
    last = (call, text)
    return call
  }
}

/// An API call as its name and its arguments, both from the JSON that Codable gives.
struct CallText {
  var name: String
  var arguments: String

  init(name: String, arguments: String) {
    self.name = name
    self.arguments = arguments
  }

  /// An enumeration's JSON is `{"name":{arguments}}`.
  init(_ call: PeerCall) { self.init(encoding: call) }

  /// The same for calls of other machines.
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

  /// The call; nil when the text is not one that this version knows.
  var call: PeerCall? { value(PeerCall.self) }

  func value<Call: Decodable>(_ type: Call.Type) -> Call? {
    CanonicalJSON.value(type, from: "{\(jsonName):\(arguments)}")
  }

  private var jsonName: String { CanonicalJSON.text(name) }
}
