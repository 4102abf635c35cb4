public import JSEP
public import Media
package import RTP
public import Secure
package import Wire

/// Everything that can happen to a peer: the one gate through which the outside world comes in.
package enum PeerInput: Sendable {
  /// The first input of every peer, once; apart, because it would make every input larger.
  indirect case genesis(Genesis)
  /// The addresses that may be gathered on.
  case interfaces([IPAddress])
  /// A datagram and the kernel's receive time, which is not after the step.
  case datagram(Datagram, arrival: Instant)
  /// The deadline was reached.
  case deadline
  /// An API call; its reply carries the same number.
  case call(id: UInt32, PeerCall)
  /// A message for a data channel (W3C send); its reply carries the number, which no call has, and
  /// comes late while much is buffered.
  case send(id: UInt32, DataMessage)
  /// Audio or a video frame from the application for a transceiver's sender.
  case captured(transceiver: UInt32, CapturedMedia)
  /// The system answers a request, or somebody connected.
  case answer(SystemAnswer)
  case sendFailed(SendFailure)
  /// A signaling message that the application sent or received: kept in the take, not acted on.
  case signaling(SignalingMessage)
}

/// Datagrams of one path that the system refused to send, or a connection that broke.
package struct SendFailure: Hashable, Sendable {
  package var local: SocketAddress
  package var remote: SocketAddress
  /// The errno of the first.
  package var code: Int32
  /// How many there were, and their bytes.
  package var packets: Int
  package var bytes: Int

  package init(
    local: SocketAddress, remote: SocketAddress, code: Int32, packets: Int = 0, bytes: Int = 0
  ) {
    self.local = local
    self.remote = remote
    self.code = code
    self.packets = packets
    self.bytes = bytes
  }

  /// The refusal of one datagram.
  package init(_ datagram: Datagram, code: Int32) {
    self.init(
      local: datagram.local, remote: datagram.remote, code: code, packets: 1,
      bytes: datagram.bytes.count)
  }
}

/// What a peer wants done or tells.
package enum PeerOutput: Sendable {
  case datagram(Datagram)
  /// The system is to do something; it answers with `answer`.
  case request(SystemRequest)
  case reply(id: UInt32, PeerReply)
  case event(PeerEvent)
}

/// What a peer starts from.
package struct Genesis: Hashable, Sendable {
  /// 32 secret bytes from which every random value of the peer comes.
  package var seed: [UInt8]
  package var wallClock: WallClock
  package var configuration: PeerConfiguration

  package init(seed: [UInt8], wallClock: WallClock, configuration: PeerConfiguration) {
    self.seed = seed
    self.wallClock = wallClock
    self.configuration = configuration
  }
}

/// How a peer behaves (W3C RTCConfiguration, and what the take must pin).
public struct PeerConfiguration: Hashable, Sendable, Codable {
  /// STUN and TURN servers.
  public var iceServers: [ICEServerConfiguration] = []
  /// Which candidates may be used.
  public var iceTransportPolicy = ICETransportPolicy.all
  /// Whether connections may carry a call (ICE-TCP, RFC 6544); nil leaves it at UDP.
  public var iceTCP: ICETCPPolicy?
  /// What host candidates show of the local addresses; nil shows them.
  public var iceAddressPrivacy: ICEAddressPrivacy?
  /// Whether candidates of IPv6 are gathered; nil: they are.
  public var usesIPv6: Bool?
  /// How long the peer may not be heard before the connection counts as disconnected, in
  /// milliseconds, 100 at least; nil: 7000.
  ///
  /// A peer that sends little is asked more often where it is less.
  public var iceReceivingTimeoutMilliseconds: UInt32?
  /// How many transports gather before a local description asks for it (W3C iceCandidatePoolSize);
  /// nil: none.
  ///
  /// Their candidates are told when it does: most of them are there by then.
  public var iceCandidatePoolSize: UInt8?
  /// Whether packets ask routers for what the priority of their media says (RFC 8837): see
  /// `RTPEncoding.networkPriority`; nil: they do not.
  public var enablesDSCP: Bool?
  /// What an offer allows a peer that does not know BUNDLE.
  public var bundlePolicy = BundlePolicy.balanced
  /// The certificates to identify with, at most one for each algorithm; none has one made from the
  /// peer's seed.
  public var certificates: [PeerCertificate] = []
  /// The SRTP profiles to negotiate, the preferred one first; none for a peer without media.
  public var srtpProtections = SRTPProtection.preferred
  /// Whether answers take the DTLS client's role when the offer leaves the choice; the server's
  /// bytes do not depend on the version of OpenSSL, so takes travel better without.
  public var answersAsDTLSClient = false
  /// How long a connection may take to be established, counted from its first description, in
  /// milliseconds; 0 sets no limit.
  public var establishmentTimeoutMilliseconds: UInt32 = 30_000
  /// Whether a connection counts as established only when all local candidates are known.
  public var establishmentNeedsAllCandidates = true
  /// What all video may spend at most, in bits per second.
  public var videoBitrateMaximum: UInt64 = 2_500_000
  /// What video begins with, in bits per second.
  public var videoBitrateStart: UInt64 = 600_000
  /// The Opus bit rate in bits per second.
  public var audioBitrate: UInt32 = 32_000
  /// The least delay of all playouts beyond the fastest transit, in milliseconds; nil lets the
  /// arrivals alone decide (W3C RTCRtpReceiver.jitterBufferTarget, for all receivers).
  public var jitterBufferMinimum: UInt32?
  /// The codecs to offer and accept, by encoding name, the preferred ones first, and those that are
  /// not known passed over.
  ///
  /// A session puts those in the place of nil that connections offer as a rule: Opus, G.711 (PCMU,
  /// PCMA), telephone events, VP8, VP9 and H.264. nil in a take, of before there were all of them,
  /// has Opus, VP8, VP9 and H.264.
  public var codecs: [String]?
  /// The header extensions to use, by URI, in the order in which offers list them; nil has all.
  public var headerExtensions: [String]?
  /// Whether a demand for a key frame comes with a report on its source; nil: it does not.
  ///
  /// A server that tells sections by report blocks passes it on only then (Janus before 1.2).
  public var reportsWithKeyframeDemands: Bool?
  /// Whether a sender of one video stream sends several where an offer asks for a simulcast (W3C
  /// setRemoteDescription); nil: it does not, in a take of before.
  public var takesOfferedLayers: Bool?
  /// Whether a change of what a received track is played at (muted, enabled, volume) is spread over
  /// a block, so that nothing clicks; nil: it is not, in a take of before.
  public var rampsVolume: Bool?
  /// What is told beyond what every connection tells; nil: nothing.
  public var notices: [PeerNotice]?
  /// The codecs that the application brought, which a replay needs too or takes from the recording;
  /// nil: none.
  public var ownCodecs: [OwnCodec]?

  /// The codecs beyond VP8 and VP9 that are decoded, by encoding name in lower case: `h264`, `av1`.
  ///
  /// Others are given on as received. A session puts those in the place of nil that its build has;
  /// nil in a take, of before there were any, has none.
  public var decoders: [String]?

  /// Whether a target far below what the video frames of a sender want counts as limited by the
  /// bandwidth (W3C qualityLimitationReason); nil, in older takes: it does not.
  public var limitationFollowsTarget: Bool?

  /// The codecs beyond VP8 and VP9 that are encoded, by encoding name in lower case: `h264`.
  ///
  /// Others are sent only as they come. A session puts those in the place of nil that its build or
  /// the application has; nil in older takes: none.
  public var encoders: [String]?

  /// Creates the default configuration.
  public init() {}
}

/// Media that an application hands to a sender.
package enum CapturedMedia: Sendable {
  case audio(AudioBlock)
  case videoFrame(I420Buffer)
  /// A video frame with the time at which it was taken, in nanoseconds of its source's clock.
  case frame(I420Buffer, timestamp: Int64)
  /// A video frame that comes encoded: of H.264 a byte stream (H.264 annex B).
  case encoded(CodecName, [UInt8])
}

/// A message of the application's signaling channel, as the take keeps it.
public struct SignalingMessage: Hashable, Sendable {
  /// Whether the message was received; else it was sent.
  public var isInbound: Bool
  /// `http`, `loopback`, `whip`, `whep`, ...
  public var transport: String
  /// `offer`, `answer`, `candidate`, `restart`, `bye`, ...
  public var type: String
  /// The message as on the channel.
  public var message: String

  /// Creates a message.
  public init(isInbound: Bool, transport: String, type: String, message: String) {
    self.isInbound = isInbound
    self.transport = transport
    self.type = type
    self.message = message
  }
}
