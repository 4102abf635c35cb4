import Wire

// Reads Janus recordings, rtptools files, rtpproxy recordings, and log lines.

extension PacketRecording {
  // MARK: Janus

  /// Reads a Janus recording: a JSON header, then frames with times relative to the first.
  ///
  /// Recordings from before 2015 have neither header nor times.
  mutating func readJanus(_ file: [UInt8]) {
    file.starts(with: Array("MJR".utf8)) ? readNewJanus(file) : readOldJanus(file)
  }

  private mutating func readNewJanus(_ file: [UInt8]) {
    guard file.count > 10 else { return }
    let length = Int(file[8]) << 8 | Int(file[9])
    guard file.count >= 10 + length,
      let head = try? JSONValue(
        parsing: String(decoding: file[10..<(10 + length)], as: UTF8.self))
    else { return notes.append("its header is damaged, so nothing can be read") }
    let kind = head["t"]?.text ?? ""
    guard kind != "d" else { return notes.append("it contains data, not RTP") }
    // The time in microseconds of the first frame, or of the file's creation.
    let microseconds = head["u"]?.integer ?? head["s"]?.integer ?? 0
    let began = min(max(microseconds, 0), 4_000_000_000_000_000) * 1000
    share(file)
    eachFrame(of: file, from: 10 + length, mark: Array("MEET".utf8)) { recording, body in
      let head = body.lowerBound - 10
      let offset = file[(head + 4)..<(head + 8)].reduce(0) { $0 << 8 | Int64($1) }
      recording.add(shared: body, at: began + offset * 1_000_000, isOutgoing: true)
    }
    let extensions = (head["x"]?.members ?? []).compactMap { member in
      member.value.text.map { (member.name, $0) }
    }
    let stated: MediaKind? = kind == "a" ? .audio : kind == "v" ? .video : nil
    let isEncrypted = head["e"]?.flag == true
    if !isEncrypted, describeContradiction(stated, head["c"]?.text, extensions) { return }
    if let stated {
      describe(stated.rawValue, head["c"]?.text, format: head["f"]?.text, extensions: extensions)
    }
    if isEncrypted {
      notes.append("its payloads are end-to-end encrypted and cannot be decoded")
    }
  }

  /// Describes the packets by their contents if these contradict the header; returns whether they
  /// do.
  private mutating func describeContradiction(
    _ stated: MediaKind?, _ codec: String?, _ extensions: [(String, String)]
  ) -> Bool {
    let codec = codec?.lowercased()
    guard let shown = evidence().contradiction(of: stated, codec) else { return false }
    let words = [stated?.rawValue, codec].compactMap { $0 }.joined(separator: " ")
    notes.append(
      "its header says \(words.isEmpty ? "neither audio nor video" : words), but its packets are "
        + "\(shown.kind.rawValue)\(shown.codec.map { " \($0)" } ?? ""), as which they are read")
    if let codec = shown.codec {
      describe(shown.kind.rawValue, codec, format: nil, extensions: extensions)
    }
    return true
  }

  /// Calls a closure with the range of each frame's body, and skips damage up to the next frame.
  ///
  /// A frame is a head of ten bytes followed by the body; the head begins with a mark and ends with
  /// the body's length.
  private mutating func eachFrame(
    of file: [UInt8], from start: Int, mark: [UInt8],
    _ body: (_ recording: inout Self, _ place: Range<Int>) -> Void
  ) {
    func frame(at place: Int) -> Range<Int>? {
      guard place + 10 <= file.count, file[place..<(place + mark.count)].elementsEqual(mark) else {
        return nil
      }
      let end = place + 10 + (Int(file[place + 8]) << 8 | Int(file[place + 9]))
      return end <= file.count ? (place + 10)..<end : nil
    }
    var place = start
    var damaged = 0
    while place < file.count {
      if let found = frame(at: place) {
        body(&self, found)
        place = found.upperBound
        continue
      }
      // After damage, a frame is accepted only if another frame or the end of the file follows it.
      var next = place + 1
      while next < file.count {
        if file[next] == mark[0], let found = frame(at: next),
          found.upperBound == file.count || frame(at: found.upperBound) != nil
        {
          break
        }
        next += 1
      }
      if next == file.count { return recordCut(file.count - place, damaged) }
      damaged += next - place
      place = next
    }
    if damaged > 0 { recordCut(0, damaged) }
  }

  private mutating func readOldJanus(_ file: [UInt8]) {
    share(file)
    var kind = MediaKind.video
    readOldFrames(file, &kind)
    let stated = kind
    // Media times depend on the kind, so the packets are read again if the header is wrong.
    if let shown = evidence().contradiction(of: stated, nil)?.kind, shown != stated {
      removePackets()
      kind = shown
      readOldFrames(file, &kind, isFixed: true)
    }
    let codec = stated == .audio ? "opus" : "vp8"
    if !describeContradiction(stated, codec, []) {
      describe(stated.rawValue, codec, format: nil, extensions: [])
    }
    notes.append(
      "it contains neither arrival times nor a date: media times are used instead")
  }

  /// Reads frames, and derives their missing arrival times from RTP timestamps.
  ///
  /// - Parameter isFixed: whether the kind is known; otherwise the file's first record states it.
  private mutating func readOldFrames(
    _ file: [UInt8], _ kind: inout MediaKind, isFixed: Bool = false
  ) {
    var clock: (last: UInt32, ticks: Int64)?
    var shown = kind
    eachFrame(of: file, from: 0, mark: Array("MEETECHO".utf8)) { recording, body in
      if body.count == 5 {
        if !isFixed { shown = file[body].elementsEqual("audio".utf8) ? .audio : .video }
        return
      }
      guard body.count >= 12 else { return }
      let time = file[(body.lowerBound + 4)..<(body.lowerBound + 8)].reduce(0 as UInt32) {
        $0 << 8 | UInt32($1)
      }
      let before = clock ?? (time, 0)
      let ticks = before.ticks + Int64(Int32(bitPattern: time &- before.last))
      clock = (time, ticks)
      // Timestamps may jump by hours with each packet, so the total is limited.
      let rate: Int64 = shown == .audio ? 48_000 : 90_000
      let seconds = min(max(0, ticks) / rate, 4_000_000_000)
      recording.add(
        shared: body,
        at: seconds * 1_000_000_000 + max(0, ticks) % rate * 1_000_000_000 / rate,
        isOutgoing: true)
    }
    kind = shown
  }

  /// Adds a description of the first packet's stream.
  private mutating func describe(
    _ kind: String, _ codec: String?, format: String?, extensions: [(String, String)]
  ) {
    guard let codec, let head = firstBytes(12), head.count == 12 else { return }
    let ssrc = head[8..<12].reduce(0 as UInt32) { $0 << 8 | UInt32($1) }
    descriptions.append(
      Self.description(
        kind: kind, payloadType: head[1] & 127, codec: codec.lowercased(), format: format,
        ssrc: ssrc, extensions: extensions.map { (id: $0.0, uri: $0.1) }))
  }

  private mutating func recordCut(_ count: Int, _ damaged: Int = 0) {
    if damaged > 0 {
      notes.append("\(counted(UInt64(damaged), "byte")) between its packets are damaged")
    }
    if count > 0 {
      notes.append("\(counted(UInt64(count), "byte")) at its end are damaged or cut off")
    }
  }

  // MARK: rtptools

  mutating func readRTPDump(_ file: [UInt8]) {
    guard let end = file.prefix(200).firstIndex(of: UInt8(ascii: "\n")) else { return }
    let headLength = Self.dumpHeadLength(of: file[(end + 1)...])
    var reader = file[(end + 1)...]
    func number(_ count: Int) -> UInt32 {
      let value = reader.prefix(count).reduce(0 as UInt32) { $0 << 8 | UInt32($1) }
      reader = reader.dropFirst(count)
      return value
    }
    guard reader.count >= headLength else { return }
    let seconds = number(4)
    if headLength > 16 { reader = reader.dropFirst(4) }
    let began = Int64(seconds) * 1_000_000_000 + Int64(number(4)) * 1000
    reader = reader.dropFirst(headLength - (headLength > 16 ? 12 : 8))
    share(file)
    var before: UInt32?
    var milliseconds: Int64 = 0
    while reader.count >= 8 {
      let stored = Int(number(2))
      let original = Int(number(2))
      let offset = number(4)
      guard stored >= 8, reader.count >= stored - 8 else { break }
      // The offset overflows after 49 days, and may go back.
      if let before {
        milliseconds += Int64(Int32(bitPattern: offset &- before))
        milliseconds = max(-Self.longest, min(milliseconds, Self.longest))
      } else {
        milliseconds = Int64(offset)
      }
      before = offset
      add(
        shared: reader.startIndex..<(reader.startIndex + stored - 8),
        at: max(0, began + milliseconds * 1_000_000), isOutgoing: false, originalLength: original)
      reader = reader.dropFirst(stored - 8)
    }
    if !reader.isEmpty { recordCut(reader.count) }
    if began == 0 { notes.append("it contains no date") }
  }

  /// The longest recording in milliseconds: a century, so that no sum of offsets overflows.
  private static let longest: Int64 = 3_155_760_000_000

  /// Returns the length of the binary head (`RD_hdr_t`): 16 bytes, or 24 where rtptools before 1.21
  /// wrote a time of two 64-bit numbers.
  private static func dumpHeadLength(of rest: ArraySlice<UInt8>) -> Int {
    func isPacket(at offset: Int) -> Bool {
      let record = rest.dropFirst(offset)
      guard record.count >= 12 else { return false }
      let start = record.startIndex
      let stored = Int(record[start]) << 8 | Int(record[start + 1])
      return stored >= 12 && stored <= record.count && record[start + 8] >> 6 == 2
    }
    return !isPacket(at: 16) && isPacket(at: 24) ? 24 : 16
  }

  // MARK: rtpproxy

  /// Reads an rtpproxy recording, which is a sequence of records.
  mutating func readProxy(_ file: [UInt8]) {
    var place = 0
    share(file)
    while let record = ProxyRecord(file, at: place), record.end <= file.count {
      // Anything that is not a packet is skipped, as extractaudio does.
      if record.packet.count >= 12 {
        add(shared: record.packet, at: record.unixNanoseconds, isOutgoing: false)
      }
      place = record.end
    }
    if place < file.count { recordCut(file.count - place) }
    notes.append("it contains one side of a call; the other side is in another file")
  }

  // MARK: Log lines

  /// Reads packets in text2pcap's form `I 12:34:56.789000 000000 80 60 ... # RTP_DUMP`, which may
  /// begin anywhere in a line.
  mutating func readDumpLines(_ file: [UInt8]) {
    var midnight: Int64 = 0
    var last: Int64 = 0
    for line in file.split(separator: UInt8(ascii: "\n")) {
      guard let parsed = Self.dumpLine(line) else { continue }
      // The lines have no date: a much earlier time means the next day.
      let isNextDay = parsed.time + midnight < last - 43_200_000_000_000
      if isNextDay, midnight < Self.longest * 1_000_000 { midnight += 86_400_000_000_000 }
      last = max(last, parsed.time + midnight)
      add(parsed.bytes, at: parsed.time + midnight, isOutgoing: parsed.isOutgoing)
    }
    notes.append("its lines have no date: the take begins in 1970")
  }

  /// Returns whether one of the first lines is an RTP or RTCP packet, judging by its version.
  static func hasDumpLine(_ head: [UInt8]) -> Bool {
    head.split(separator: UInt8(ascii: "\n"), maxSplits: 100).prefix(100).contains { line in
      dumpLine(line).map { $0.bytes.count >= 8 && $0.bytes[0] >> 6 == 2 } ?? false
    }
  }

  private static func dumpLine(_ line: ArraySlice<UInt8>) -> (
    isOutgoing: Bool, time: Int64, bytes: [UInt8]
  )? {
    let text = String(decoding: line, as: UTF8.self)
    guard text.contains(" 0000"), !text.contains("SCTP_PACKET") else { return nil }
    let words = text.split { $0 == " " || $0 == "\t" || $0 == "\r" || $0 == "|" }
    guard
      let start = words.indices.first(where: { place in
        (words[place] == "I" || words[place] == "O") && place + 2 < words.count
          && words[place + 2].allSatisfy { $0 == "0" } && words[place + 2].count >= 4
      }), let time = clockTime(words[start + 1])
    else { return nil }
    var bytes: [UInt8] = []
    for word in words[(start + 3)...] {
      guard word.utf8.count == 2, let byte = UInt8(word, radix: 16) else { break }
      bytes.append(byte)
    }
    return bytes.count >= 4 ? (words[start] == "O", time, bytes) : nil
  }

  /// Parses `12:34:56.789` as nanoseconds since midnight; nil if it is not a time.
  private static func clockTime(_ text: Substring) -> Int64? {
    let parts = text.split(separator: ":")
    guard parts.count == 3, let hours = Int64(parts[0]), let minutes = Int64(parts[1]),
      let seconds = Double(parts[2]), (0..<24).contains(hours), (0..<60).contains(minutes),
      seconds >= 0, seconds < 62
    else { return nil }
    return (hours * 3600 + minutes * 60) * 1_000_000_000 + Int64(seconds * 1e9)
  }
}

/// The head before each packet in an rtpproxy recording (`struct pkt_hdr_adhoc`).
///
/// It has the source address in 20 bytes, the Unix time in seconds as a double, and the packet
/// length in two bytes, without gaps. Its byte order depends on the recording machine, which is
/// assumed to be little-endian.
struct ProxyRecord {
  private(set) var unixNanoseconds: Int64
  private(set) var packet: Range<Int>
  var end: Int { packet.upperBound }

  private static let headBytes = 30
  /// AF_INET, and AF_INET6 on Linux and FreeBSD; on FreeBSD, the family is a single byte.
  private static let families: Set<UInt8> = [2, 10, 28]

  /// Parses the head at an offset; fails if the bytes cannot be a head.
  init?(_ bytes: [UInt8], at place: Int) {
    guard place + Self.headBytes <= bytes.count, Self.families.contains(bytes[place]),
      bytes[place + 1] == 0
    else { return nil }
    let bits = bytes[(place + 20)..<(place + 28)].reversed().reduce(0 as UInt64) {
      $0 << 8 | UInt64($1)
    }
    let seconds = Double(bitPattern: bits)
    // Times from 2001 to 2096; the comparison also excludes NaN.
    guard seconds > 1e9, seconds < 4e9 else { return nil }
    // A double cannot represent today's times to the nanosecond.
    let whole = seconds.rounded(.down)
    unixNanoseconds = Int64(whole) * 1_000_000_000 + Int64(((seconds - whole) * 1e9).rounded())
    let length = Int(bytes[place + 28]) | Int(bytes[place + 29]) << 8
    packet = (place + Self.headBytes)..<(place + Self.headBytes + length)
  }

  /// Returns whether a file begins with a record of an RTP packet, followed by another if the head
  /// is long enough.
  static func areAt(theBeginOf head: [UInt8]) -> Bool {
    guard let first = ProxyRecord(head, at: 0), first.packet.count >= 12,
      first.packet.lowerBound < head.count, head[first.packet.lowerBound] >> 6 == 2
    else { return false }
    return first.end + headBytes > head.count || ProxyRecord(head, at: first.end) != nil
  }
}
