import ICE
public import JSEP
public import Media
package import RTP
public import Secure
package import Wire

/// An input of a peer; inputs are its only connection to the outside world.
package enum PeerInput: Sendable {
  /// The first input of each peer; indirect, because it would otherwise enlarge all inputs.
  indirect case genesis(Genesis)
  /// The addresses on which candidates may be gathered, and their network types in the same order;
  /// `types` is empty if they are unknown.
  case interfaces([IPAddress], types: [NetworkType] = [])
  /// A datagram and the kernel's receive time, which is never later than the step's instant.
  case datagram(Datagram, arrival: Instant)
  /// The deadline that the peer last returned was reached.
  case deadline
  /// An API call; the reply has the same number.
  case call(id: UInt32, PeerCall)
  /// A message for a data channel (W3C send).
  ///
  /// The reply has the same number, which differs from the numbers of calls. It is delayed while
  /// much data is buffered.
  case send(id: UInt32, DataMessage)
  /// An application's audio or video for a sender.
  case captured(transceiver: UInt32, CapturedMedia)
  /// The system's reply to a request, or an accepted connection.
  case answer(SystemAnswer)
  case sendFailed(SendFailure)
  /// A signaling message that the application sent or received; it is only recorded in the take.
  case signaling(SignalingMessage)
  /// A packet from the other leg of a relay, to protect and send.
  case relayed(RelayedPacket)
}

/// Datagrams on one path that the system refused to send, or a TCP connection that broke.
package struct SendFailure: Hashable, Sendable {
  package var local: SocketAddress
  package var remote: SocketAddress
  /// The errno for the first datagram.
  package var code: Int32
  /// The number of datagrams, and of their bytes.
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

  /// Creates the failure of a single datagram.
  package init(_ datagram: Datagram, code: Int32) {
    self.init(
      local: datagram.local, remote: datagram.remote, code: code, packets: 1,
      bytes: datagram.bytes.count)
  }
}

/// A request or event from a peer.
package enum PeerOutput: Sendable {
  case datagram(Datagram)
  /// A request to the system, which replies with `answer`.
  case request(SystemRequest)
  case reply(id: UInt32, PeerReply)
  case event(PeerEvent)
  /// A decrypted packet that arrived on a leg of a relay, for the other leg; it has no row in the
  /// take, because a replay derives it from its datagram.
  case relayed(RelayedPacket)
}

/// A peer's initial state.
package struct Genesis: Hashable, Sendable {
  /// The 32 secret bytes from which all of the peer's random values are derived.
  package var seed: [UInt8]
  package var wallClock: WallClock
  package var configuration: PeerConfiguration

  package init(seed: [UInt8], wallClock: WallClock, configuration: PeerConfiguration) {
    self.seed = seed
    self.wallClock = wallClock
    self.configuration = configuration
  }
}

/// A peer's behaviour: W3C RTCConfiguration, and everything else on which a replay depends.
public struct PeerConfiguration: Hashable, Sendable, Codable {
  /// The STUN and TURN servers.
  public var iceServers: [ICEServerConfiguration] = []
  /// Whether all candidates may be used, or only relayed ones.
  public var iceTransportPolicy = ICETransportPolicy.all
  /// Whether TCP connections may carry a call (ICE-TCP, RFC 6544); nil for UDP only.
  public var iceTCP: ICETCPPolicy?
  /// What host candidates contain instead of local addresses; nil for the addresses themselves.
  public var iceAddressPrivacy: ICEAddressPrivacy?
  /// Whether IPv6 candidates are gathered; nil means yes.
  public var usesIPv6: Bool?
  /// The time without packets after which a connection counts as disconnected, in milliseconds, at
  /// least 100; nil means 7000.
  ///
  /// With a shorter time, a quiet remote peer is checked more often.
  public var iceReceivingTimeoutMilliseconds: UInt32?
  /// The number of transports that gather before a local description requires it (W3C
  /// iceCandidatePoolSize); nil means none.
  ///
  /// Their candidates are reported when a description requires them; most are ready by then.
  public var iceCandidatePoolSize: UInt8?
  /// Whether packets are marked with the DSCP for their priority (RFC 8837), see
  /// `RTPEncoding.networkPriority`; nil means no.
  public var enablesDSCP: Bool?
  /// How many transports to offer, in case the remote peer does not support BUNDLE.
  public var bundlePolicy = BundlePolicy.balanced
  /// The certificates, at most one for each algorithm; if empty, one is created from the peer's
  /// seed.
  public var certificates: [PeerCertificate] = []
  /// The SRTP profiles to negotiate, in order of preference; empty for a peer without media.
  public var srtpProtections = SRTPProtection.preferred
  /// Whether answers choose the DTLS client role if the offer leaves the choice open.
  ///
  /// A DTLS server's bytes do not depend on the OpenSSL version, so takes are more portable if this
  /// is false.
  public var answersAsDTLSClient = false
  /// The time limit for establishing a connection, from its first description on, in milliseconds;
  /// 0 for no limit.
  public var establishmentTimeoutMilliseconds: UInt32 = 30_000
  /// Whether a connection counts as established only once all local candidates are known.
  public var establishmentNeedsAllCandidates = true
  /// The maximum bit rate of all video in bit/s.
  public var videoBitrateMaximum: UInt64 = 2_500_000
  /// The initial video bit rate in bit/s.
  public var videoBitrateStart: UInt64 = 600_000
  /// The Opus bit rate in bit/s; a sender's `maxBitrate` can lower it.
  public var audioBitrate: UInt32 = 32_000
  /// The minimum delay of all playouts beyond the fastest transit, in milliseconds; nil adapts the
  /// delay to the arrivals alone (W3C RTCRtpReceiver.jitterBufferTarget, for all receivers).
  public var jitterBufferMinimum: UInt32?
  /// The codecs to offer and accept, by encoding name and in order of preference; unknown codecs
  /// are ignored.
  ///
  /// A session replaces nil with the current default: Opus, G.711 (PCMU, PCMA), telephone events,
  /// VP8, VP9 and H.264. In older takes, nil means Opus, VP8, VP9 and H.264.
  public var codecs: [String]?
  /// The URIs of the header extensions to use, in the order in which offers list them; nil for all.
  public var headerExtensions: [String]?
  /// Whether a report on a source precedes each PLI or FIR for it; nil means no.
  ///
  /// A server that identifies sections by report blocks needs this (Janus before 1.2).
  public var reportsWithKeyframeDemands: Bool?
  /// Whether a sender with a single video stream sends several if a remote offer requests simulcast
  /// (W3C setRemoteDescription).
  ///
  /// A session replaces nil with true; in older takes, nil means no.
  public var takesOfferedLayers: Bool?
  /// Whether changes of a received track's gain (muted, enabled, volume) are spread over a block to
  /// avoid clicks; nil means no, as in older takes.
  public var rampsVolume: Bool?
  /// Optional events to report; nil if there are none.
  public var notices: [PeerNotice]?
  /// The application's own codecs; nil if there are none.
  ///
  /// A replay uses them if it has them, and the recorded results otherwise.
  public var ownCodecs: [OwnCodec]?

  /// The codecs to decode besides VP8 and VP9, by encoding name in lower case: `h264`, `av1`.
  ///
  /// Others are passed on without decoding. A session replaces nil with its build's codecs; in
  /// older takes, nil means none.
  public var decoders: [String]?

  /// Whether a target far below what a sender's video needs counts as a bandwidth limitation (W3C
  /// qualityLimitationReason).
  ///
  /// A session replaces nil with true; in older takes, nil means no.
  public var limitationFollowsTarget: Bool?

  /// Whether getStats includes the members added with take format 7 and counts path probes as
  /// libwebrtc does.
  ///
  /// A session replaces nil with true; in older takes, nil means no.
  public var hasCompleteStatistics: Bool?

  /// Whether the local offer's codecs are received even if the answer omits them.
  ///
  /// An answerer may send only the codecs that it lists (RFC 3264 section 6.1), but libwebrtc sends
  /// the offer's first codec. A session replaces nil with true; in older takes, nil means no.
  public var receivesAllOffered: Bool?

  /// Whether responses to connectivity checks are accepted even after several seconds.
  ///
  /// Otherwise a pair remembers only its last 16 checks, too few for a round trip of more than a
  /// second. A session replaces nil with true; in older takes, nil means no.
  public var awaitsSlowPaths: Bool?

  /// Whether a transport that closes because its sections joined another bundle leaves the
  /// connection open.
  ///
  /// Otherwise the closing of that transport is reported as the connection's end. A session
  /// replaces nil with true; in older takes, nil means no.
  public var ignoresUnusedTransports: Bool?

  /// The codecs beyond VP8 and VP9 that are encoded, by encoding name in lower case: `h264`.
  ///
  /// Others are only passed on. A session replaces nil with the codecs of its build or the
  /// application; in older takes, nil means none.
  public var encoders: [String]?

  /// Whether the connection is a leg of a relay, which forwards packets and leaves negotiation to
  /// the two ends; nil means no.
  package var relays: Bool?

  /// The first bytes of each random stream in hexadecimal, by the stream's label; nil unless the
  /// take was redacted.
  ///
  /// A redacted take has a different seed, but numbers that the remote peer repeats (SSRCs, SCTP
  /// tags, STUN transactions) stay the same.
  package var drawnBytes: [String: String]?

  /// Creates a configuration with the defaults of all members.
  public init() {}
}

/// Media that the application passes to a sender.
package enum CapturedMedia: Sendable {
  case audio(AudioBlock)
  case videoFrame(I420Buffer)
  /// A video frame with its capture time in nanoseconds on its source's clock.
  case frame(I420Buffer, timestamp: Int64)
  /// A video frame that is already encoded: for H.264 a byte stream (H.264 annex B).
  case encoded(CodecName, [UInt8])
}

/// A message on the application's signaling channel, as recorded in the take.
public struct SignalingMessage: Hashable, Sendable {
  /// Whether the message was received rather than sent.
  public var isInbound: Bool
  /// The transport, such as `http`, `loopback`, `whip` or `whep`.
  public var transport: String
  /// The type, such as `offer`, `answer`, `candidate`, `restart` or `bye`.
  public var type: String
  /// The message's text, exactly as it was on the signaling channel.
  public var message: String

  /// Creates a message to record in the take; nothing is sent.
  public init(isInbound: Bool, transport: String, type: String, message: String) {
    self.isInbound = isInbound
    self.transport = transport
    self.type = type
    self.message = message
  }
}

// MARK: - PeerConfiguration: ICE

/// The URIs of a STUN or TURN service, and the credentials for them (W3C RTCIceServer).
public struct ICEServerConfiguration: Hashable, Sendable, Codable {
  /// The `stun:`, `turn:` and `turns:` URIs (RFC 7064, RFC 7065).
  ///
  /// A `turn:` or `turns:` URI may end in `?transport=tcp`, and a `turn:` URI also in
  /// `?transport=udp`.
  public var urls: [String]
  /// The user name for a TURN server; nil for a STUN server.
  public var username: String?
  /// The password for a TURN server; nil for a STUN server.
  public var credential: String?

  /// Creates a server entry; `turn:` and `turns:` URIs need a user name and a password.
  public init(urls: [String], username: String? = nil, credential: String? = nil) {
    self.urls = urls
    self.username = username
    self.credential = credential
  }
}

/// The candidates that may be used (W3C RTCIceTransportPolicy).
public enum ICETransportPolicy: String, Hashable, Sendable, Codable, CaseIterable {
  /// Candidates of all types may be used.
  case all
  /// Only relayed candidates, which hide the local addresses from the remote peer.
  case relay
}

/// Whether TCP connections between the peers may carry a call (ICE-TCP, RFC 6544).
public enum ICETCPPolicy: String, Hashable, Sendable, Codable, CaseIterable {
  /// TCP candidates are gathered as well, and used if UDP finds no path.
  case also
  /// Only TCP candidates are gathered, and servers are not used.
  case only
}

/// What host candidates contain instead of local addresses.
public enum ICEAddressPrivacy: String, Hashable, Sendable, Codable, CaseIterable {
  /// mDNS names, which only hosts on the same link can resolve (RFC 6762).
  case names
}

extension PeerConfiguration {
  var iceSettings: ICESettings {
    ICESettings(
      servers: parsedICEServers, relayOnly: iceTransportPolicy == .relay,
      usesUDP: iceTCP != .only, usesTCP: iceTCP != nil, hidesAddresses: iceAddressPrivacy != nil,
      silence: iceReceivingTimeoutMilliseconds.map { .milliseconds(Int64(max(100, $0))) },
      awaitsSlowPaths: awaitsSlowPaths ?? false)
  }

  /// The servers in `iceServers`, except for unusable URIs.
  var parsedICEServers: [ICEServer] {
    iceServers.flatMap { entry in entry.urls.compactMap { ICEServer(uri: $0, of: entry) } }
  }

  /// The first URI in `iceServers` that cannot be used, such as one for TURN without a password;
  /// nil if all can be used.
  public var firstUnusableICEServer: String? {
    for entry in iceServers {
      for uri in entry.urls where ICEServer(uri: uri, of: entry) == nil { return uri }
    }
    return nil
  }
}

extension ICEServer {
  /// Parses URIs such as `stun:host`, `turn:host:port?transport=tcp` or `turns:[address]`; nil if
  /// the URI is unusable.
  ///
  /// A TURN server without a user name or a password is refused, as in W3C, and so is DTLS
  /// (`turns:` over UDP), which no known server requires.
  init?(uri: String, of entry: ICEServerConfiguration) {
    guard let colon = uri.firstIndex(of: ":") else { return nil }
    let scheme = uri[..<colon].lowercased()
    let parts = uri[uri.index(after: colon)...].split(
      separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    var transport = Transport.udp
    var credentials: TURNCredentials?
    switch scheme {
    case "stun": guard parts.count == 1 else { return nil }
    case "turn", "turns":
      guard let username = entry.username, let password = entry.credential else { return nil }
      credentials = TURNCredentials(username: username, password: password)
      let isSecure = scheme == "turns"
      switch parts.count == 2 ? parts[1].lowercased() : "" {
      case "": transport = isSecure ? .tls : .udp
      case "transport=udp": if isSecure { return nil }
      case "transport=tcp": transport = isSecure ? .tls : .tcp
      default: return nil
      }
    default: return nil
    }
    guard let host = parts.first, let (name, port) = ICEServer.split(host) else { return nil }
    // Default ports: RFC 8489 section 8 and RFC 7065 section 3.2.
    self.init(
      host: name, port: port ?? (transport == .tls ? 5349 : 3478), transport: transport,
      credentials: credentials)
  }

  private static func split(_ text: Substring) -> (ICECandidate.Host, UInt16?)? {
    if let end = SocketAddress(text) { return end.port > 0 ? (.address(end.ip), end.port) : nil }
    if text.hasPrefix("["), text.hasSuffix("]") {
      return IPAddress(text.dropFirst().dropLast()).map { (.address($0), nil) }
    }
    if let address = IPAddress(text) { return (.address(address), nil) }
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    guard let host = parts.first, !host.isEmpty, parts.count <= 2 else { return nil }
    guard parts.count == 2 else { return (.name(String(host)), nil) }
    guard let port = UInt16(parts[1]), port > 0 else { return nil }
    return (.name(String(host)), port)
  }
}
