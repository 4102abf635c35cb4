import Foundation
import SDP
import Wire

@testable import JSEP

/// One side of a call: a negotiation with the transport that its descriptions state.
struct Side {
  var negotiation: Negotiation
  var transport: LocalTransport
  /// All changes by descriptions, in order.
  var changes: [Negotiation.Change] = []

  init(_ name: String, capabilities: Capabilities = .usual) {
    negotiation = Negotiation(
      entropy: Entropy(seed: Array(name.utf8)).stream("sdp"), cname: "cname-" + name,
      capabilities: capabilities)
    transport = LocalTransport(
      usernameFragment: name + "Frag", password: name + "0123456789abcdefghijklmn",
      fingerprints: [
        CertificateFingerprint(
          algorithm: "sha-256",
          value: Array(name.utf8).map { String($0, radix: 16).uppercased() }
            .joined(separator: ":"))
      ])
  }

  mutating func add(
    _ kind: MediaKind, _ direction: TransceiverDirection = .sendrecv, byAddTrack: Bool = false,
    streams: [String] = ["stream"]
  ) throws -> UInt32 {
    try negotiation.addTransceiver(
      kind: kind, direction: direction, streamIDs: streams, byAddTrack: byAddTrack)
  }

  mutating func offer() throws -> SessionDescription {
    let offer = try negotiation.createOffer(transport)
    changes += try negotiation.setLocal(offer)
    return offer
  }

  mutating func answer(_ type: SDPType = .answer) throws -> SessionDescription {
    var answer = try negotiation.createAnswer(transport)
    answer.type = type
    changes += try negotiation.setLocal(answer)
    return answer
  }

  mutating func apply(_ description: SessionDescription) throws {
    changes += try negotiation.setRemote(description)
  }

  mutating func apply(_ type: SDPType, _ sdp: String) throws {
    try apply(SessionDescription(type: type, sdp: sdp))
  }

  func transceiver(_ id: UInt32) -> Transceiver? {
    negotiation.transceivers.first { $0.id == id }
  }

  /// The negotiated directions by mid, in the order of the m-sections.
  var agreed: [String] {
    negotiation.sections.map { "\($0.mid) \($0.kind.rawValue) \($0.direction.rawValue)" }
  }
}

/// Runs a complete exchange: one side offers, the other answers.
func exchange(_ offerer: inout Side, _ answerer: inout Side) throws {
  try answerer.apply(try offerer.offer())
  try offerer.apply(try answerer.answer())
}

func document(_ description: SessionDescription?) throws -> SDPDocument {
  try SDPDocument(parsing: description?.sdp ?? "")
}

/// Returns a description made by a browser or server, from the samples of `SDPTests`.
func sample(_ name: String) throws -> String {
  let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .appending(path: "SDPTests/Samples")
  return try String(contentsOf: folder.appending(path: name + ".sdp"), encoding: .utf8)
}

extension String {
  /// Returns the text with every occurrence of a part replaced.
  func with(_ part: String, _ replacement: String) -> String {
    replacing(part, with: replacement)
  }
}

extension Negotiation {
  var remoteTransport: RemoteTransport? { remoteTransports.first }

  mutating func createOffer(_ transport: LocalTransport) throws(JSEPError) -> SessionDescription {
    try createOffer([transport])
  }

  mutating func createAnswer(_ transport: LocalTransport) throws(JSEPError) -> SessionDescription {
    try createAnswer([transport])
  }

  func localDescription(_ transport: LocalTransport) -> SessionDescription? {
    localDescription([transport])
  }
}
