import Foundation
import Media
package import Peer
import RTP
import Wire

// The rows of what came in. `EndpointDecoder` is the inverse of this file.
extension Transcript {
  /// Adds the rows of an input.
  package mutating func append(_ input: borrowing PeerInput) {
    switch copy input {
    case .genesis(let genesis): append(genesis)
    case .interfaces(let addresses): network("interfaces", address: listed(addresses))
    case .datagram(let datagram, let arrival): append(datagram, at: arrival, isInbound: true)
    case .deadline: break
    case .call(let id, let call): append(call, id: id)
    case .send(let id, let message): append(message, call: id)
    case .captured(let transceiver, let media): append(media, of: transceiver)
    case .socketBound(let id, let address):
      network("bound", request: id, address: address.description)
    case .socketFailed(let id, let code): network("bind-failed", request: id, code: code)
    case .streamAccepted(let local, let remote):
      network("accepted", address: local.description, remote: remote.description)
    case .nameResolved(let id, let addresses):
      network("resolved", request: id, address: listed(addresses))
    case .sendFailed(let failure):
      network(
        "send-failed", address: failure.local.description, remote: failure.remote.description,
        code: failure.code, packets: failure.packets, bytes: failure.bytes)
    case .signaling(let message):
      stampedRow(.signaling)
      add(.text(directionName(message.isInbound)))
      add(.text(message.transport))
      add(.text(message.type))
      add(.text(message.message))
    }
  }

  private func listed(_ addresses: [IPAddress]) -> String {
    addresses.map(\.description).joined(separator: " ")
  }

  private mutating func append(_ genesis: Genesis) {
    let words = words
    if words.clock != .zero {
      stampedRow(.clock)
      add(.number(words.clock.nanoseconds))
    }
    stampedRow(.peer)
    add(.text(words.label))
    add(.text(words.role))
    add(.blob(genesis.seed))
    add(.number(genesis.wallClock.unixNanosecondsAtZero))
    add(.text(CanonicalJSON.text(genesis.configuration)))
    if format >= 4 { add(.number(actor)) }
  }

  private mutating func append(_ call: PeerCall, id: UInt32) {
    let parts = CallText(call)
    stampedRow(.callRequest)
    add(.number(id))
    add(.text(parts.name))
    add(.text(parts.arguments))
  }

  private mutating func append(_ media: CapturedMedia, of transceiver: UInt32) {
    switch media {
    case .audio(let block):
      let content = block.samples.isEmpty ? nil : contentNumber(littleEndianBytes(block.samples))
      stampedRow(.capture)
      add(.number(transceiver))
      add(.text(MediaKind.audio.rawValue))
      add(.null)
      add(.null)
      add(.number(block.channels))
      add(.number(block.frameCount))
      add(.number(content))
    case .picture(let picture):
      let content = picture.samples.isEmpty ? nil : contentNumber(picture.samples)
      stampedRow(.capture)
      add(.number(transceiver))
      add(.text(MediaKind.video.rawValue))
      add(.number(picture.width))
      add(.number(picture.height))
      add(.null)
      add(.null)
      add(.number(content))
    case .encoded(let codec, let stream):
      let content = contentNumber(stream)
      stampedRow(.capture)
      add(.number(transceiver))
      add(.text(codec.rawValue))
      for _ in 0..<4 { add(.null) }
      add(.number(content))
    }
  }

  /// Adds a row about the operating system.
  mutating func network(
    _ kind: String, isInbound: Bool = true, request: UInt32? = nil, address: String? = nil,
    remote: String? = nil, code: Int32? = nil, packets: Int? = nil, bytes: Int? = nil
  ) {
    stampedRow(.network)
    add(.text(directionName(isInbound)))
    add(.text(kind))
    add(.number(request))
    add(.text(address))
    add(.text(remote))
    add(.number(code))
    guard format >= 3 else { return }
    add(.number(packets))
    add(.number(bytes))
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
  (0..<bytes.count / 2).map { index in
    Int16(truncatingIfNeeded: UInt16(bytes[2 * index]) | UInt16(bytes[2 * index + 1]) << 8)
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
  init(_ call: PeerCall) {
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
  var call: PeerCall? {
    CanonicalJSON.value(PeerCall.self, from: "{\(jsonName):\(arguments)}")
  }

  private var jsonName: String { CanonicalJSON.text(name) }
}
