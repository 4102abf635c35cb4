import ICE
import JSEP
import Peer
import SCTP
import SDP

/// The offer/answer exchange (W3C RTCSignalingState), numbered as in the Objective-C header.
public enum RTCSignalingState: Int, Sendable {
  /// No exchange is under way.
  case stable
  /// A local offer waits for its answer.
  case haveLocalOffer
  /// A local provisional answer was given.
  case haveLocalPrAnswer
  /// The peer's offer waits for its answer.
  case haveRemoteOffer
  /// The peer gave a provisional answer.
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

/// The checks of candidate pairs (W3C RTCIceConnectionState), numbered as in the Objective-C
/// header.
public enum RTCIceConnectionState: Int, Sendable {
  /// Nothing is checked yet.
  case new
  /// Pairs are checked.
  case checking
  /// A pair works, others may still be checked.
  case connected
  /// A pair works and nothing is checked any more.
  case completed
  /// No pair works.
  case failed
  /// The pair in use does not answer.
  case disconnected
  /// The connection was closed.
  case closed
  /// How many states there are; never a state.
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

/// ICE and DTLS taken together (W3C RTCPeerConnectionState), numbered as in the Objective-C header.
public enum RTCPeerConnectionState: Int, Sendable {
  /// Nothing was begun.
  case new
  /// ICE or DTLS is under way.
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

/// The gathering of local candidates (W3C RTCIceGatheringState), numbered as in the Objective-C
/// header.
public enum RTCIceGatheringState: Int, Sendable {
  /// Nothing is gathered yet.
  case new
  /// Candidates are gathered.
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

/// The life of a data channel (W3C RTCDataChannelState), numbered as in the Objective-C header.
public enum RTCDataChannelState: Int, Sendable {
  /// There is no association yet.
  case connecting
  /// Messages can be sent.
  case open
  /// What was sent is still delivered.
  case closing
  /// The channel is gone.
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
