import Foundation
import JSEP
import Live
import Peer
import Secure

/// The candidates that may be used, numbered as in the Objective-C header.
public enum RTCIceTransportPolicy: Int, Sendable {
  /// No candidates; not supported.
  case none
  /// Relayed candidates only.
  case relay
  /// All candidates except host candidates; not supported.
  case noHost
  /// All candidates.
  case all
}

/// How media is bundled for a peer that does not support BUNDLE, numbered as in the Objective-C
/// header.
public enum RTCBundlePolicy: Int, Sendable {
  /// One transport per media kind.
  case balanced
  /// One transport per m-section.
  case maxCompat
  /// One transport for everything.
  case maxBundle

  var native: BundlePolicy {
    switch self {
    case .balanced: .balanced
    case .maxCompat: .maxCompat
    case .maxBundle: .maxBundle
    }
  }
}

/// Whether RTCP must share RTP's port, numbered as in the Objective-C header; no effect here,
/// because RTCP always shares RTP's port.
public enum RTCRtcpMuxPolicy: Int, Sendable {
  /// RTCP may have its own port if the peer insists.
  case negotiate
  /// RTCP must share RTP's port.
  case require
}

/// Whether ICE over TCP may be used (RFC 6544), numbered as in the Objective-C header.
public enum RTCTcpCandidatePolicy: Int, Sendable {
  /// TCP candidates are gathered as well.
  case enabled
  /// Only UDP candidates are gathered.
  case disabled
}

/// How long candidates are gathered, numbered as in the Objective-C header.
public enum RTCContinualGatheringPolicy: Int, Sendable {
  /// Until all candidates are known.
  case gatherOnce
  /// As long as the connection exists.
  ///
  /// Here both policies follow address changes and report `complete`.
  case gatherContinually
}

/// The local certificate's key type, numbered as in the Objective-C header.
public enum RTCEncryptionKeyType: Int, Sendable {
  /// RSA with 2048 bits.
  case RSA
  /// ECDSA on P-256.
  case ECDSA
}

/// The format of descriptions with several streams, numbered as in the Objective-C header.
public enum RTCSdpSemantics: Int, Sendable {
  /// One m-section per media kind; not supported.
  case planB
  /// One m-section per transceiver (RFC 9429).
  case unifiedPlan
}

/// Whether a TURN server's certificate is verified, numbered as in the Objective-C header.
public enum RTCTlsCertPolicy: Int, Sendable {
  /// The certificate is verified.
  case secure
  /// The certificate is not verified; not supported.
  case insecureNoCheck
}

/// A STUN or TURN service: its addresses and credentials.
public final class RTCIceServer: Sendable {
  /// `stun:`, `turn:` and `turns:` URIs.
  public let urlStrings: [String]
  /// The username for a TURN server.
  public let username: String?
  /// The password for a TURN server.
  public let credential: String?
  /// Whether the server's certificate is verified.
  public let tlsCertPolicy: RTCTlsCertPolicy

  /// Creates a server without credentials.
  public convenience init(urlStrings: [String]) {
    self.init(urlStrings: urlStrings, username: nil, credential: nil)
  }

  /// Creates a server with a username and a password.
  public convenience init(urlStrings: [String], username: String?, credential: String?) {
    self.init(
      urlStrings: urlStrings, username: username, credential: credential, tlsCertPolicy: .secure)
  }

  /// Creates a server with a policy for verifying its certificate.
  public init(
    urlStrings: [String], username: String?, credential: String?, tlsCertPolicy: RTCTlsCertPolicy
  ) {
    self.urlStrings = urlStrings
    self.username = username
    self.credential = credential
    self.tlsCertPolicy = tlsCertPolicy
  }
}

/// A connection's configuration, read when the connection is created.
public final class RTCConfiguration {
  /// STUN and TURN servers.
  public var iceServers: [RTCIceServer] = []
  /// The candidates that may be used.
  public var iceTransportPolicy = RTCIceTransportPolicy.all
  /// How media is bundled for a peer that does not support BUNDLE.
  public var bundlePolicy = RTCBundlePolicy.balanced
  /// Whether RTCP must share RTP's port.
  public var rtcpMuxPolicy = RTCRtcpMuxPolicy.require
  /// Whether ICE over TCP may be used.
  public var tcpCandidatePolicy = RTCTcpCandidatePolicy.enabled
  /// Whether candidates are gathered once or continually.
  public var continualGatheringPolicy = RTCContinualGatheringPolicy.gatherOnce
  /// The local certificate's key type.
  public var keyType = RTCEncryptionKeyType.ECDSA
  /// The format of descriptions with several streams.
  public var sdpSemantics = RTCSdpSemantics.unifiedPlan
  /// The connection's certificate; nil generates one for it.
  public var certificate: RTCCertificate?
  /// Whether IPv6 addresses are excluded.
  public var disableIPV6 = false
  /// After how many milliseconds of silence the connection counts as disconnected: at least 100; -1
  /// means 7000.
  public var iceConnectionReceivingTimeout: Int32 = -1
  /// The number of transports that gather candidates in advance.
  public var iceCandidatePoolSize: Int32 = 0
  /// Whether packets carry the DSCP for their encoding's `networkPriority`.
  public var enableDscp = false

  /// Creates the default configuration.
  public init() {}

  /// Creates a configuration from stored values.
  convenience init(copying other: RTCConfiguration.Values) {
    self.init()
    values = other
  }

  /// A Sendable copy of the configuration's values.
  struct Values: Sendable {
    var iceServers: [RTCIceServer]
    var iceTransportPolicy: RTCIceTransportPolicy
    var bundlePolicy: RTCBundlePolicy
    var rtcpMuxPolicy: RTCRtcpMuxPolicy
    var tcpCandidatePolicy: RTCTcpCandidatePolicy
    var continualGatheringPolicy: RTCContinualGatheringPolicy
    var keyType: RTCEncryptionKeyType
    var sdpSemantics: RTCSdpSemantics
    var certificate: RTCCertificate?
    var disableIPV6: Bool
    var iceConnectionReceivingTimeout: Int32
    var iceCandidatePoolSize: Int32
    var enableDscp: Bool

    /// Returns whether at most the servers and the transport policy differ from another
    /// configuration's.
    func changesServersAlone(from other: Values) -> Bool {
      bundlePolicy == other.bundlePolicy && rtcpMuxPolicy == other.rtcpMuxPolicy
        && tcpCandidatePolicy == other.tcpCandidatePolicy
        && continualGatheringPolicy == other.continualGatheringPolicy && keyType == other.keyType
        && sdpSemantics == other.sdpSemantics && disableIPV6 == other.disableIPV6
        && iceConnectionReceivingTimeout == other.iceConnectionReceivingTimeout
        && iceCandidatePoolSize == other.iceCandidatePoolSize && enableDscp == other.enableDscp
        && certificate?.native == other.certificate?.native
    }
  }

  var values: Values {
    get {
      Values(
        iceServers: iceServers, iceTransportPolicy: iceTransportPolicy,
        bundlePolicy: bundlePolicy, rtcpMuxPolicy: rtcpMuxPolicy,
        tcpCandidatePolicy: tcpCandidatePolicy,
        continualGatheringPolicy: continualGatheringPolicy, keyType: keyType,
        sdpSemantics: sdpSemantics, certificate: certificate, disableIPV6: disableIPV6,
        iceConnectionReceivingTimeout: iceConnectionReceivingTimeout,
        iceCandidatePoolSize: iceCandidatePoolSize, enableDscp: enableDscp)
    }
    set {
      iceServers = newValue.iceServers
      iceTransportPolicy = newValue.iceTransportPolicy
      bundlePolicy = newValue.bundlePolicy
      rtcpMuxPolicy = newValue.rtcpMuxPolicy
      tcpCandidatePolicy = newValue.tcpCandidatePolicy
      continualGatheringPolicy = newValue.continualGatheringPolicy
      keyType = newValue.keyType
      sdpSemantics = newValue.sdpSemantics
      certificate = newValue.certificate
      disableIPV6 = newValue.disableIPV6
      iceConnectionReceivingTimeout = newValue.iceConnectionReceivingTimeout
      iceCandidatePoolSize = newValue.iceCandidatePoolSize
      enableDscp = newValue.enableDscp
    }
  }

  /// Converts to the stack's type; nil for unsupported values.
  var native: PeerConfiguration? {
    guard sdpSemantics == .unifiedPlan, iceTransportPolicy == .all || iceTransportPolicy == .relay,
      iceServers.allSatisfy({ $0.tlsCertPolicy == .secure })
    else { return nil }
    var native = PeerConfiguration()
    native.iceServers = iceServers.map {
      ICEServerConfiguration(
        urls: $0.urlStrings, username: $0.username, credential: $0.credential)
    }
    native.iceTransportPolicy = iceTransportPolicy == .relay ? .relay : .all
    native.bundlePolicy = bundlePolicy.native
    native.iceTCP = tcpCandidatePolicy == .enabled ? .also : nil
    native.notices = PeerNotice.all
    if disableIPV6 { native.usesIPv6 = false }
    native.iceReceivingTimeoutMilliseconds = UInt32(exactly: iceConnectionReceivingTimeout)
    if iceCandidatePoolSize > 0 {
      native.iceCandidatePoolSize = UInt8(clamping: iceCandidatePoolSize)
    }
    if enableDscp { native.enablesDSCP = true }
    if let certificate {
      native.certificates = [certificate.native]
    } else if keyType == .RSA {
      native.certificates = [.generate(.rsa2048)]
    }
    return native.firstUnusableICEServer == nil ? native : nil
  }
}

// MARK: - RTCCertificate

/// A certificate that identifies a connection.
///
/// It is generated here and stored as the seed of its key, so that a take can record it. Imported
/// certificates are not accepted, because they could not be replayed.
public final class RTCCertificate: Sendable {
  let native: PeerCertificate

  init(_ native: PeerCertificate) { self.native = native }

  /// Creates a certificate; returns nil for unsupported parameters.
  /// - Parameter params: `name` is `ECDSA` (the default) or `RSASSA-PKCS1-v1_5`; `expires` is the
  ///   lifetime in seconds, at most one year.
  public static func generate(withParams params: [AnyHashable: Any]) -> RTCCertificate? {
    let algorithm: CertificateAlgorithm
    switch params["name"] as? String ?? "ECDSA" {
    case "ECDSA": algorithm = .ecdsaP256
    case "RSASSA-PKCS1-v1_5": algorithm = .rsa2048
    default: return nil
    }
    var lifetime = PeerCertificate.defaultLifetimeSeconds
    switch params["expires"] {
    case nil: break
    case let seconds as NSNumber: lifetime = seconds.int64Value
    case let seconds as Int: lifetime = Int64(seconds)
    case let seconds as Double: lifetime = Int64(exactly: seconds.rounded()) ?? 0
    default: return nil
    }
    guard lifetime > 0 else { return nil }
    let made = PeerCertificate.generate(algorithm, lifetimeSeconds: lifetime)
    return made.fingerprint == nil ? nil : RTCCertificate(made)
  }

  /// The certificate in PEM (RFC 7468 section 5); empty if OpenSSL fails.
  public var certificate: String {
    guard let bytes = try? native.bytes() else { return "" }
    let text = Data(bytes).base64EncodedString(
      options: [.lineLength64Characters, .endLineWithLineFeed])
    return "-----BEGIN CERTIFICATE-----\n\(text)\n-----END CERTIFICATE-----\n"
  }
}

// MARK: - RTCMediaConstraints

/// Names the constraint that makes an offer receive audio.
public let kRTCMediaConstraintsOfferToReceiveAudio = "OfferToReceiveAudio"
/// Names the constraint that makes an offer receive video.
public let kRTCMediaConstraintsOfferToReceiveVideo = "OfferToReceiveVideo"
/// Names the constraint that makes an offer restart ICE.
public let kRTCMediaConstraintsIceRestart = "IceRestart"
/// Names the constraint for comfort noise, which is not offered here.
public let kRTCMediaConstraintsVoiceActivityDetection = "VoiceActivityDetection"
/// Names the constraint for an audio source's echo cancellation.
public let kRTCMediaConstraintsEchoCancellation = "googEchoCancellation"
/// Names the constraint for an audio source's gain control.
public let kRTCMediaConstraintsAutoGainControl = "googAutoGainControl"
/// Names the constraint for an audio source's noise suppression.
public let kRTCMediaConstraintsNoiseSuppression = "googNoiseSuppression"
/// The value that enables a constraint.
public let kRTCMediaConstraintsValueTrue = "true"
/// The value that disables a constraint.
public let kRTCMediaConstraintsValueFalse = "false"

/// Constraints by name; unknown names are ignored.
public final class RTCMediaConstraints: Sendable {
  private let mandatory: [String: String]
  private let optional: [String: String]

  /// Creates constraints; a mandatory constraint takes precedence over an optional constraint of
  /// the same name.
  public init(
    mandatoryConstraints: [String: String]?, optionalConstraints: [String: String]?
  ) {
    mandatory = mandatoryConstraints ?? [:]
    optional = optionalConstraints ?? [:]
  }

  /// Returns whether a constraint is enabled; nil if it is missing.
  func wants(_ name: String) -> Bool? {
    switch (mandatory[name] ?? optional[name])?.lowercased() {
    case kRTCMediaConstraintsValueTrue: true
    case kRTCMediaConstraintsValueFalse: false
    default: nil
    }
  }
}
