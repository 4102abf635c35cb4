public import Foundation
import JSEP
import Live
import Peer
import Synchronization
import Wire

/// A transceiver's direction, numbered as in the Objective-C header.
public enum RTCRtpTransceiverDirection: Int, Sendable {
  /// Sends and receives.
  case sendRecv
  /// Only sends.
  case sendOnly
  /// Only receives.
  case recvOnly
  /// Neither sends nor receives.
  case inactive
  /// Permanently stopped.
  case stopped

  init(_ direction: TransceiverDirection) {
    self =
      switch direction {
      case .sendrecv: .sendRecv
      case .sendonly: .sendOnly
      case .recvonly: .recvOnly
      case .inactive: .inactive
      case .stopped: .stopped
      }
  }

  var native: TransceiverDirection {
    switch self {
    case .sendRecv: .sendrecv
    case .sendOnly: .sendonly
    case .recvOnly: .recvonly
    case .inactive: .inactive
    case .stopped: .stopped
    }
  }
}

/// A transceiver's media type, numbered as in the Objective-C header.
public enum RTCRtpMediaType: Int, Sendable {
  /// Sound.
  case audio
  /// Video frames.
  case video
  /// Messages; no transceiver carries them.
  case data
  /// Something else; no transceiver carries it.
  case unsupported
  /// Anything; no transceiver carries it.
  case any

  /// The kind of media as the stack's type; nil for types that no transceiver carries.
  var native: MediaKind? {
    switch self {
    case .audio: .audio
    case .video: .video
    case .data, .unsupported, .any: nil
    }
  }
}

/// A transceiver's initial state, read when it is created.
public final class RTCRtpTransceiverInit {
  /// The preferred direction.
  public var direction = RTCRtpTransceiverDirection.sendRecv
  /// The streams that the track belongs to.
  public var streamIds: [String] = []
  /// The encodings: a single encoding, or a named encoding per layer; empty for the default.
  public var sendEncodings: [RTCRtpEncodingParameters] = []

  /// Creates the default state.
  public init() {}
}

/// A sender and a receiver that share an m-section.
public final class RTCRtpTransceiver: Sendable {
  /// Whether the transceiver carries audio or video.
  public let mediaType: RTCRtpMediaType
  /// The sending half, even if nothing is sent.
  public let sender: RTCRtpSender
  /// The receiving half, even if nothing is received.
  public let receiver: RTCRtpReceiver

  private let number: UInt32
  private let connection: PeerConnection

  init(_ info: TransceiverInfo, of connection: PeerConnection) {
    number = info.id
    mediaType = info.kind == .audio ? .audio : .video
    self.connection = connection
    sender = RTCRtpSender(info, of: connection)
    receiver = RTCRtpReceiver(info, of: connection)
  }

  private var info: TransceiverInfo? {
    connection.infos.first { $0.id == number }
  }

  /// The m-section's identifier; empty until it is assigned.
  public var mid: String { info?.mid ?? "" }
  /// Whether the transceiver was permanently stopped.
  public var isStopped: Bool { info?.direction == .stopped }
  /// The preferred direction.
  public var direction: RTCRtpTransceiverDirection {
    info.map { RTCRtpTransceiverDirection($0.direction) } ?? .stopped
  }

  /// Reads the negotiated direction.
  /// - Returns: false if no direction was negotiated.
  public func currentDirection(
    _ currentDirectionOut: UnsafeMutablePointer<RTCRtpTransceiverDirection>
  ) -> Bool {
    guard let agreed = info?.currentDirection else { return false }
    currentDirectionOut.pointee = RTCRtpTransceiverDirection(agreed)
    return true
  }

  /// Sets the preferred direction; needs negotiation.
  public func setDirection(
    _ direction: RTCRtpTransceiverDirection, error: UnsafeMutablePointer<NSError?>?
  ) {
    do {
      try connection.performAndWait(
        .setDirection(transceiver: number, direction.native))
    } catch let refusal {
      error?.pointee = RTCPeerConnectionError(refusal) as NSError
    }
  }

  /// Permanently stops the transceiver; needs negotiation.
  public func stopInternal() { _ = try? connection.performAndWait(.stopTransceiver(number)) }

  /// Detaches the sent track and ends the received track, because the connection was closed.
  func connectionEnded() {
    sender.detach()
    receiver.ended()
  }
}

extension RTCRtpTransceiver: Hashable {
  /// Returns whether both are the same object.
  public static func == (left: RTCRtpTransceiver, right: RTCRtpTransceiver) -> Bool {
    left === right
  }

  /// Hashes the object's identity.
  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

extension PeerConnection {
  /// The current transceivers' states.
  var infos: [TransceiverInfo] {
    guard case .transceivers(let all) = try? performAndWait(.transceivers) else { return [] }
    return all
  }
}
