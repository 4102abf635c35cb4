import RTP
import SDP
import Wire

/// The codecs and header extensions that a peer offers and accepts.
package struct Capabilities: Hashable, Sendable {
  /// In order of preference within each kind.
  package private(set) var codecs: [CodecCapability]
  /// In the order in which offers list them.
  package private(set) var extensions: [ExtensionCapability]
  /// Whether a remote offer may turn a sender of one stream into one of several layers (W3C
  /// setRemoteDescription, proposedSendEncodings).
  package private(set) var acceptsOfferedLayers: Bool
  /// Whether codecs that were offered and not answered are received all the same.
  package private(set) var receivesAllOffered: Bool

  /// The default for peers whose genesis names no codecs.
  package static let usual = Capabilities()

  /// The default for new connections whose application names no codecs.
  static let offered = Capabilities(codecs: Codec.offeredNames)

  /// Finds what is named; names that nothing is known of are passed over.
  ///
  /// - Parameters:
  ///   - codecs: the encoding names in the order of preference, in upper or lower case; nil for the
  ///     usual ones.
  ///   - extensions: the URIs in the order in which offers list them; nil for all.
  ///   - encoders: the codecs that are encoded among those passed through otherwise, by encoding
  ///     name.
  ///   - acceptsOfferedLayers: whether offers decide on the layers of a simulcast.
  package init(
    codecs: [String]? = nil, extensions: [String]? = nil, encoders: [String] = [],
    acceptsOfferedLayers: Bool = false, receivesAllOffered: Bool = false
  ) {
    let encoders = encoders.map { CodecName(rawValue: $0) }
    self.acceptsOfferedLayers = acceptsOfferedLayers
    self.receivesAllOffered = receivesAllOffered
    self.codecs = Capabilities.codecs(named: codecs).flatMap { codec in
      codec.formats.map { CodecCapability(codec, $0, encoders: encoders) }
    }
    guard let extensions else {
      self.extensions = ExtensionCapability.all
      return
    }
    var found: [ExtensionCapability] = []
    for uri in extensions where !found.contains(where: { $0.uri == uri }) {
      found += ExtensionCapability.all.filter { $0.uri == uri }
    }
    self.extensions = found
  }

  private static func codecs(named wanted: [String]?) -> [Codec] {
    guard let wanted else { return Codec.all.filter(\.isUsual) }
    var found: [Codec] = []
    for text in wanted {
      let name = CodecName(rawValue: text)
      guard let codec = name.codec, !found.contains(where: { $0.name == name }) else { continue }
      found.append(codec)
    }
    return found
  }

  func codecs(_ kind: MediaKind) -> [CodecCapability] { codecs.filter { $0.kind == kind } }

  /// The capability that matches a format of a remote section.
  func codec(matching map: RTPMap, parameters: String, kind: MediaKind) -> CodecCapability? {
    guard
      let format = CodecFormat(
        name: map.name, parameters: parameters, clockRate: map.clockRate)
    else { return nil }
    let named = codecs.filter {
      // Without a channel count, audio has one channel (RFC 8866 section 6.6).
      $0.kind == kind && $0.clockRate == map.clockRate
        && ($0.channels ?? 1) == (map.channels ?? 1) && $0.name.lowercased() == format.name
    }
    return named.first { $0.format == format } ?? named.first { $0.isPassedThrough }
  }

  /// Whether an extension is supported in sections of a kind.
  func hasExtension(_ uri: String, kind: MediaKind) -> Bool {
    extensions.contains { $0.uri == uri && $0.kinds.contains(kind) }
  }
}
