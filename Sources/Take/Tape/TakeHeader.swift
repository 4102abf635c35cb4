import CDTLS
import Media
import Secure
import Wire

/// The contents of the `take` row, which describes the take as a whole.
package struct TakeHeader: Hashable, Sendable {
  /// The application_id that marks an SQLite file as a take: "RTKE" in ASCII.
  package static let applicationID: Int64 = 0x5254_4b45
  /// The format that this version writes, and the newest that it reads.
  ///
  /// Format 3 added what replays need without the original libraries (the events `certificate` and
  /// `keylog`) and the table `clock`. Format 4 added machines other than endpoints (the tables
  /// `actor` and `coverage`, and the actor in `peer`) and the stack's revision. Format 5 added the
  /// times of captured video frames, and compresses these frames. Format 6 added rooms (the tables
  /// `presence` and `carriage`). Format 7 added the ECN marks of received datagrams and the network
  /// types of addresses. Format 8 added the table `relayed`, and stores equal packets of a relay
  /// once.
  package static let currentFormat: Int64 = 8
  /// The oldest format that can be read; older takes come from a different stack.
  package static let oldestFormat: Int64 = 2

  package var format = TakeHeader.currentFormat
  /// The Unix time at instant zero, in nanoseconds.
  package var startUnixNanoseconds: Int64
  /// The start time as ISO 8601, such as `2026-11-21T10:39:00.123456789Z`.
  package var startText: String
  package var toolVersion: String
  package var toolchain: Toolchain
  /// The JSON that contains the toolchain, kept unchanged because a newer version may have written
  /// it.
  package var toolchainText: String
  package var label: String
  /// What the recording application stated about the take, by key, such as `site`.
  ///
  /// Tags are in the JSON beside the toolchain, so they needed neither a column nor a new format.
  package private(set) var tags: [String: String] = [:]
  package var redaction: Int64 = 0
  package var keepsMedia: Bool
  /// The revision of the stack that recorded the take; nil if the take does not state it.
  package var revision: Int64?
  /// The SHA-256 of all other values.
  package var digest: [UInt8] = []

  /// Creates the header of a new take.
  init(options: TapeWriter.Options) {
    startUnixNanoseconds = options.startUnixNanoseconds
    startText = utcText(unixNanoseconds: options.startUnixNanoseconds)
    toolVersion = options.toolVersion
    toolchain = options.toolchain
    tags = options.tags
    toolchainText = ""
    label = options.label
    keepsMedia = options.keepsMedia
    revision = stackRevision
    toolchainText = HeaderText(toolchain, tags: tags).json
    digest = [UInt8].digest(of: values)
  }

  /// Reads the values of a `take` row.
  fileprivate init(_ statement: borrowing SQLiteStatement) {
    (format, startText, startUnixNanoseconds, toolVersion) = statement.values(
      Int64.self, String.self, Int64.self, String.self)
    (toolchainText, label, redaction, keepsMedia, digest) = statement.values(
      from: 4, String.self, String.self, Int64.self, Bool.self, [UInt8].self)
    toolchain = CanonicalJSON.value(Toolchain.self, from: toolchainText) ?? Toolchain()
    tags = HeaderText.tags(in: toolchainText)
    if statement.columnCount > TakeHeader.firstColumns {
      revision = statement.values(from: TakeHeader.firstColumns, Int64?.self)
    }
  }

  /// The number of columns before revisions were added.
  private static let firstColumns = 9

  /// Adds the decoders that only the other toolchain has.
  mutating func use(decodersOf other: Toolchain) {
    var joint = toolchain
    joint.openh264 = joint.openh264 ?? other.openh264
    joint.dav1d = joint.dav1d ?? other.dav1d
    guard joint != toolchain else { return }
    change(toolchain: joint)
  }

  /// Replaces the toolchain, but keeps the tags.
  package mutating func change(toolchain: Toolchain) {
    self.toolchain = toolchain
    toolchainText = HeaderText(toolchain, tags: tags).json
  }

  /// Replaces the tags, but keeps the toolchain.
  package mutating func change(tags: [String: String]) {
    guard tags != self.tags else { return }
    self.tags = tags
    toolchainText = HeaderText(toolchain, tags: tags).json
  }

  /// A copy with a recomputed digest.
  package var sealed: TakeHeader {
    var copy = self
    copy.digest = [UInt8].digest(of: values)
    return copy
  }

  /// The values that all formats have, without the digest.
  private var firstValues: [Value] {
    [
      .number(format), .text(startText), .number(startUnixNanoseconds), .text(toolVersion),
      .text(toolchainText), .text(label), .number(redaction), .flag(keepsMedia),
    ]
  }

  /// The oldest format that has revisions.
  static let revisionFormat: Int64 = 4

  /// All values that the digest covers.
  private var values: [Value] {
    format < TakeHeader.revisionFormat ? firstValues : firstValues + [.number(revision)]
  }

  func insert(into connection: borrowing SQLiteConnection) throws(SQLiteError) {
    let statement = try connection.prepare("INSERT INTO take VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
    let revision = format < TakeHeader.revisionFormat ? nil : revision
    try statement.insert(firstValues + [.blob(digest), .number(revision)])
  }

  /// Reads the row of an open take; throws if it was altered.
  package static func read(from connection: borrowing SQLiteConnection, path: String)
    throws(TapeError) -> TakeHeader
  {
    var found: TakeHeader?
    var rows = 0
    do throws(SQLiteError) {
      let statement = try connection.prepare("SELECT * FROM take LIMIT 2")
      while try statement.step() {
        if hasOwnTypes(statement) { found = TakeHeader(statement) }
        rows += 1
      }
    } catch {
      throw TapeError(path: path, place: "take", error)
    }
    guard var found, rows == 1 else {
      throw TapeError(
        path: path, place: "take", reason: "it has \(rows) usable rows instead of one")
    }
    // The format is also in the file's header, which no digest covers.
    guard found.format == (try? connection.integer("PRAGMA user_version")) else {
      throw TapeError(
        path: path, place: "take",
        reason: "its format and that in the head of the file differ; the file was altered after "
          + "the recording")
    }
    found.toolchain.leaveOutUnused(in: connection)
    guard found.digest == [UInt8].digest(of: found.values) else {
      throw TapeError(
        path: path, place: "take",
        reason: "the row was altered after the recording; nothing in this file can be trusted")
    }
    return found
  }
}

extension TakeHeader {
  /// Returns whether the values have the types that their columns declare.
  ///
  /// A value of another type might read the same and have the same digest.
  private static func hasOwnTypes(_ statement: borrowing SQLiteStatement) -> Bool {
    var classes = statement.storageClasses
    if classes.count == firstColumns + 1 {
      // A copy of an older take has this column, but the digest does not cover it, so it must be
      // NULL.
      let isCovered = statement.integer(0) >= revisionFormat
      let last = classes.removeLast()
      guard last == .null || (last == .integer && isCovered) else { return false }
    }
    return classes == [
      .integer, .text, .integer, .text, .text, .text, .integer, .integer, .blob,
    ] && (0...1).contains(statement.integer(7))
  }
}

/// The JSON in `take.toolchain`, which has the toolchain's members and perhaps `tags`.
private struct HeaderText: Encodable {
  private enum Key: String, CodingKey { case tags }
  private struct Tags: Decodable {
    var tags: [String: String]
  }

  private let toolchain: Toolchain
  private let tags: [String: String]

  init(_ toolchain: Toolchain, tags: [String: String]) {
    self.toolchain = toolchain
    self.tags = tags
  }

  var json: String { CanonicalJSON.text(self) }

  func encode(to encoder: any Encoder) throws {
    try toolchain.encode(to: encoder)
    guard !tags.isEmpty else { return }
    var container = encoder.container(keyedBy: Key.self)
    try container.encode(tags, forKey: .tags)
  }

  /// Reads the tags; empty if the text has no `tags`, or something else under that name.
  static func tags(in text: String) -> [String: String] {
    CanonicalJSON.value(Tags.self, from: text)?.tags ?? [:]
  }
}

/// Formats a time as ISO 8601 in UTC, with nanoseconds (proleptic Gregorian calendar).
package func utcText(unixNanoseconds: Int64) -> String {
  let (seconds, fraction) = floored(unixNanoseconds, by: 1_000_000_000)
  let (days, second) = floored(seconds, by: 86_400)
  // Years begin on March 1 here, from 0000-03-01 on, so that a leap day is the last day of its
  // year.
  let (era, dayOfEra) = floored(days + 719_468, by: 146_097)
  let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
  let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
  let shifted = (5 * dayOfYear + 2) / 153
  let day = dayOfYear - (153 * shifted + 2) / 5 + 1
  let month = shifted < 10 ? shifted + 3 : shifted - 9
  let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
  func padded(_ value: Int64, _ width: Int) -> String {
    let digits = String(value)
    return String(repeating: "0", count: max(0, width - digits.count)) + digits
  }
  return "\(padded(year, 4))-\(padded(month, 2))-\(padded(day, 2))T"
    + "\(padded(second / 3600, 2)):\(padded(second / 60 % 60, 2)):\(padded(second % 60, 2))"
    + ".\(padded(fraction, 9))Z"
}

private func floored(_ value: Int64, by divisor: Int64) -> (quotient: Int64, rest: Int64) {
  let rest = value % divisor
  return rest < 0 ? (value / divisor - 1, rest + divisor) : (value / divisor, rest)
}

// MARK: - Toolchain

/// The libraries and CPU features that exact replays depend on.
public struct Toolchain: Hashable, Sendable, Codable {
  /// The version of OpenSSL, with a fingerprint of its behaviour that is computed at start-up.
  public var openssl: String
  /// The version of libsrtp2.
  public var srtp: String
  /// The version of libopus.
  public var opus: String
  /// The version of libvpx.
  public var vpx: String
  /// The version of OpenH264; nil in builds without it.
  public var openh264: String?
  /// The version of dav1d; nil in builds without it.
  public var dav1d: String?
  /// The processor's architecture, and the features that make codecs choose other code.
  public var cpu: String

  /// Creates a toolchain from the versions of its parts.
  public init(
    openssl: String = "", srtp: String = "", opus: String = "", vpx: String = "", cpu: String = "",
    openh264: String? = nil, dav1d: String? = nil
  ) {
    self.openh264 = openh264
    self.dav1d = dav1d
    self.openssl = openssl
    self.srtp = srtp
    self.opus = opus
    self.vpx = vpx
    self.cpu = cpu
  }

  /// Returns the parts that may behave differently in the other toolchain, with both descriptions.
  ///
  /// OpenSSL is compared by the fingerprint of its behaviour, not by its version. A decoder that
  /// the other toolchain lacks is ignored.
  public func differences(from other: Toolchain) -> [(part: String, here: String, there: String)] {
    let decoders = [("openh264", openh264, other.openh264), ("dav1d", dav1d, other.dav1d)]
      .compactMap { decoder in
        decoder.2.map { (decoder.0, decoder.1 ?? "none in this build", $0) }
      }
    return
      ([
        ("openssl", openssl, other.openssl), ("srtp", srtp, other.srtp), ("opus", opus, other.opus),
        ("vpx", vpx, other.vpx), ("cpu", cpu, other.cpu),
      ] + decoders).filter { Toolchain.behaviour($0.1) != Toolchain.behaviour($0.2) }.map {
        (part: $0.0, here: $0.1, there: $0.2)
      }
  }

  /// Returns the part of a description that identifies behaviour: the fingerprint, or everything if
  /// there is none.
  private static func behaviour(_ text: String) -> Substring {
    guard let comma = text.lastIndex(of: ","), text[comma...].hasPrefix(engineMark) else {
      return text[...]
    }
    return text[comma...]
  }

  /// Separates OpenSSL's version from the fingerprint of its behaviour.
  static let engineMark = ", engine "
}

// MARK: - Toolchain: Current

extension Toolchain {
  /// Returns this process's toolchain.
  ///
  /// - Throws: an error with the take's path if OpenSSL cannot be made deterministic here.
  package static func current(for path: String) throws(TapeError) -> Toolchain {
    let engine: String
    do throws(SecureError) {
      engine = try DTLSTransport.engineFingerprint()
    } catch {
      throw TapeError(path: path, place: "", reason: error.reason)
    }
    return Toolchain(
      openssl: DTLSTransport.opensslVersion + Toolchain.engineMark + engine.prefix(16),
      srtp: SRTPContext.libraryVersion, opus: LibraryCodecs.opusVersion,
      vpx: LibraryCodecs.vpxVersion, cpu: String(cString: cdtls_cpu_features()),
      openh264: LibraryCodecs.openH264Version, dav1d: LibraryCodecs.dav1dVersion)
  }
}

// MARK: - Toolchain: Use

extension Toolchain {
  /// Removes the versions of optional codecs that encoded or decoded no frame of the take.
  mutating func leaveOutUnused(in connection: borrowing SQLiteConnection) {
    if openh264 != nil, !Toolchain.hasUsed("h264", connection) { openh264 = nil }
    if dav1d != nil, !Toolchain.hasUsed("av1", connection) { dav1d = nil }
  }

  private static func hasUsed(_ codec: String, _ connection: borrowing SQLiteConnection)
    -> Bool
  {
    // If the table cannot be read, the error is reported where the table is needed.
    let found = try? connection.integer(
      """
      SELECT EXISTS (SELECT 1 FROM format WHERE codec = '\(codec)'
        AND outcome IN ('decoded', 'undecodable', 'encoded'))
      """)
    return found != 0
  }
}
