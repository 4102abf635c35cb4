import ICE
import JSEP
import Peer
import SCTP
import SDP

/// The state of the offer/answer exchange (W3C RTCSignalingState), numbered as in the Objective-C
/// header.
public enum RTCSignalingState: Int, Sendable {
  /// No exchange is under way.
  case stable
  /// A local offer awaits its answer.
  case haveLocalOffer
  /// A local provisional answer was sent.
  case haveLocalPrAnswer
  /// A remote offer awaits its answer.
  case haveRemoteOffer
  /// A remote provisional answer was received.
  case haveRemotePrAnswer
  /// The connection was closed.
  case closed

  init(_ state: SignalingState) {
    self =
      switch state {
      case .stable: .stable
      case .haveLocalOffer: .haveLocalOffer
      case .haveLocalPranswer: .haveLocalPrAnswer
      case .haveRemoteOffer: .haveRemoteOffer
      case .haveRemotePranswer: .haveRemotePrAnswer
      case .closed: .closed
      }
  }
}

/// The state of the connectivity checks (W3C RTCIceConnectionState), numbered as in the Objective-C
/// header.
public enum RTCIceConnectionState: Int, Sendable {
  /// No checks have started.
  case new
  /// Candidate pairs are being checked.
  case checking
  /// A pair works; others may still be checked.
  case connected
  /// A pair works and all checks have finished.
  case completed
  /// No pair works.
  case failed
  /// The selected pair does not answer.
  case disconnected
  /// The connection was closed.
  case closed
  /// The number of states; never a state itself.
  case count

  init(_ state: ICEConnectionState) {
    self =
      switch state {
      case .new: .new
      case .checking: .checking
      case .connected: .connected
      case .completed: .completed
      case .failed: .failed
      case .disconnected: .disconnected
      case .closed: .closed
      }
  }
}

/// The combined state of ICE and DTLS (W3C RTCPeerConnectionState), numbered as in the Objective-C
/// header.
public enum RTCPeerConnectionState: Int, Sendable {
  /// Nothing has started.
  case new
  /// ICE or DTLS is being established.
  case connecting
  /// Media can flow.
  case connected
  /// The path does not answer; it may recover.
  case disconnected
  /// A transport failed.
  case failed
  /// The connection was closed.
  case closed

  init(_ state: ConnectionState) {
    self =
      switch state {
      case .new: .new
      case .connecting: .connecting
      case .connected: .connected
      case .disconnected: .disconnected
      case .failed: .failed
      case .closed: .closed
      }
  }
}

/// The state of candidate gathering (W3C RTCIceGatheringState), numbered as in the Objective-C
/// header.
public enum RTCIceGatheringState: Int, Sendable {
  /// Gathering has not started.
  case new
  /// Candidates are being gathered.
  case gathering
  /// All candidates are known.
  case complete

  init(_ state: ICEGatheringState) {
    self =
      switch state {
      case .new: .new
      case .gathering: .gathering
      case .complete: .complete
      }
  }
}

/// The state of a data channel (W3C RTCDataChannelState), numbered as in the Objective-C header.
public enum RTCDataChannelState: Int, Sendable {
  /// There is no association yet.
  case connecting
  /// Messages can be sent.
  case open
  /// Messages in flight are still delivered.
  case closing
  /// The channel is closed.
  case closed

  init(_ state: DataChannelState) {
    self =
      switch state {
      case .connecting: .connecting
      case .open: .open
      case .closing: .closing
      case .closed: .closed
      }
  }
}
