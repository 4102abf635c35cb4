/// Writes encoded frames into a WebM file (Matroska, RFC 9559): one VP8, VP9, AV1 or Opus track,
/// with an index for seeking.
package struct WebMWriter {
  /// The track's codec and format.
  package enum Content: Hashable, Sendable {
    /// `V_VP8`, `V_VP9` or `V_AV1`, and the video frames' size.
    case video(codec: String, width: Int, height: Int)
    /// Opus with this many channels.
    case opus(channels: Int)

    private var isVideo: Bool {
      if case .video = self { return true }
      return false
    }

    fileprivate var longestCluster: Int64 { isVideo ? 5_000 : 10_000 }
  }

  private struct Cluster {
    var begin: Int64
    var blocks: [UInt8] = []
    /// Whether the cluster begins with a key frame, in which case players can start there.
    var beginsWithKey: Bool
  }

  private let content: Content
  private var clusters: [Cluster] = []
  private var last: Int64 = -1

  package init(_ content: Content) { self.content = content }

  /// Returns a track's `TrackEntry` element.
  ///
  /// - Parameters:
  ///   - preSkip: how many Opus samples at 48 kHz a player skips at the start.
  ///   - configuration: what a video codec needs before its first frame (`CodecPrivate`).
  static func entry(
    _ content: Content, preSkip: Int = 0, configuration: [UInt8] = []
  ) -> [UInt8] {
    let common =
      EBML.element([0xd7], [1]) + EBML.element([0x73, 0xc5], [1])
      + EBML.element([0x9c], [0])
    switch content {
    case .video(let codec, let width, let height):
      let size =
        EBML.element([0xb0], EBML.number(UInt64(max(width, 0))))
        + EBML.element([0xba], EBML.number(UInt64(max(height, 0))))
      let needed = configuration.isEmpty ? [] : EBML.element([0x63, 0xa2], configuration)
      return EBML.element(
        [0xae],
        common + EBML.element([0x83], [1]) + EBML.element([0x86], Array(codec.utf8)) + needed
          + EBML.element([0xe0], size))
    case .opus(let channels):
      let audio =
        EBML.element([0xb5], EBML.real(48_000))
        + EBML.element([0x9f], [UInt8(clamping: channels)])
      let skipped = UInt64(clamping: max(preSkip, 0)) * 1_000_000_000 / 48_000
      let delay = preSkip > 0 ? EBML.element([0x56, 0xaa], EBML.number(skipped)) : []
      return EBML.element(
        [0xae],
        common + EBML.element([0x83], [2]) + EBML.element([0x86], Array("A_OPUS".utf8))
          + EBML.element([0x63, 0xa2], OpusHead.bytes(channels: channels, preSkip: preSkip))
          + delay + EBML.element([0x56, 0xbb], EBML.number(80_000_000))
          + EBML.element([0xe1], audio))
    }
  }

  /// The header that every file begins with.
  static var head: [UInt8] { EBML.element([0x1a, 0x45, 0xdf, 0xa3], header) }

  /// Returns the WebM name of a take's codec; nil if the format does not support it.
  package static func videoCodec(_ name: String) -> String? {
    ["vp8": "V_VP8", "vp9": "V_VP9", "av1": "V_AV1"][name]
  }

  /// Adds the next frame.
  ///
  /// - Parameter milliseconds: the time since the start of the file; a frame that is not later than
  ///   the previous frame is written 1 ms after it.
  package mutating func add(_ frame: [UInt8], at milliseconds: Int64, isKey: Bool) {
    let at = max(milliseconds, last + 1)
    last = at
    let age = clusters.last.map { at - $0.begin } ?? .max
    // A block has a 16-bit time relative to its cluster.
    if isKey && age > 0 && (age >= content.longestCluster / 5 || clusters.isEmpty)
      || age > content.longestCluster
    {
      clusters.append(Cluster(begin: at, beginsWithKey: isKey))
    }
    let place = clusters.count - 1
    let time = UInt16(truncatingIfNeeded: at - clusters[place].begin)
    let head: [UInt8] = [
      0x81, UInt8(time >> 8), UInt8(truncatingIfNeeded: time), isKey ? 0x80 : 0,
    ]
    clusters[place].blocks += EBML.head([0xa3], length: head.count + frame.count) + head
    clusters[place].blocks += frame
  }

  package func file() -> [UInt8] {
    let information = EBML.element(
      [0x15, 0x49, 0xa9, 0x66],
      EBML.element([0x2a, 0xd7, 0xb1], EBML.number(1_000_000))
        + EBML.element([0x44, 0x89], EBML.real(Double(max(last, 0) + 20)))
        + EBML.element([0x4d, 0x80], Array("retake".utf8))
        + EBML.element([0x57, 0x41], Array("retake".utf8)))
    let tracks = EBML.element([0x16, 0x54, 0xae, 0x6b], Self.entry(content))
    let bodies = clusters.map { cluster in
      EBML.element(
        [0x1f, 0x43, 0xb6, 0x75],
        EBML.element([0xe7], EBML.number(UInt64(max(cluster.begin, 0)))) + cluster.blocks)
    }
    // Positions have a fixed width, so that the index's length is known before it is written.
    let front = information.count + tracks.count
    let begin = front + cues(bodies, from: 0).count
    let index = cues(bodies, from: begin)
    var segment = EBML.head(
      [0x18, 0x53, 0x80, 0x67], length: begin + bodies.reduce(0) { $0 + $1.count })
    segment += information + tracks + index
    for body in bodies { segment += body }
    return Self.head + segment
  }

  private static let header =
    EBML.element([0x42, 0x86], [1]) + EBML.element([0x42, 0xf7], [1])
    + EBML.element([0x42, 0xf2], [4]) + EBML.element([0x42, 0xf3], [8])
    + EBML.element([0x42, 0x82], Array("webm".utf8)) + EBML.element([0x42, 0x87], [4])
    + EBML.element([0x42, 0x85], [2])

  private func cues(_ bodies: [[UInt8]], from begin: Int) -> [UInt8] {
    var points: [UInt8] = []
    var position = begin
    for (cluster, body) in zip(clusters, bodies) {
      defer { position += body.count }
      guard cluster.beginsWithKey else { continue }
      let place =
        EBML.element([0xf7], [1]) + EBML.element([0xf1], EBML.wide(UInt64(position)))
      points += EBML.element(
        [0xbb],
        EBML.element([0xb3], EBML.number(UInt64(max(cluster.begin, 0))))
          + EBML.element([0xb7], place))
    }
    return EBML.element([0x1c, 0x53, 0xbb, 0x6b], points)
  }
}

/// EBML elements (RFC 8794).
enum EBML {
  static func element(_ name: [UInt8], _ body: [UInt8]) -> [UInt8] {
    head(name, length: body.count) + body
  }

  /// Returns a frequent element's name, followed by its length in as few bytes as possible.
  static func shortHead(_ name: [UInt8], length: Int) -> [UInt8] {
    var count = 1
    while count < 8, length >= 1 << (7 * count) - 1 { count += 1 }
    var size = Array(wide(UInt64(max(length, 0))).suffix(count))
    size[0] |= 0x80 >> UInt8(count - 1)
    return name + size
  }

  /// Returns an element's name, followed by its length in eight bytes, which suffice for any
  /// length.
  static func head(_ name: [UInt8], length: Int) -> [UInt8] {
    var size = wide(UInt64(length))
    size[0] = 0x01
    return name + size
  }

  static func number(_ value: UInt64) -> [UInt8] {
    let bytes = wide(value)
    let rest = bytes.drop { $0 == 0 }
    return rest.isEmpty ? [0] : Array(rest)
  }

  static func wide(_ value: UInt64) -> [UInt8] {
    (0..<8).map { UInt8(truncatingIfNeeded: value >> (56 - 8 * $0)) }
  }

  static func real(_ value: Double) -> [UInt8] { wide(value.bitPattern) }
}
