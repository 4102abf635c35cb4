import Crypto
import Tape
import Wire

extension PerceptionFacts {
  mutating func readChanges(_ connection: borrowing SQLiteConnection) throws(SQLiteError) {
    let rows = try connection.prepare(
      """
      SELECT at_ns, peer, name, arguments ->> '$.transceiver',
        coalesce(arguments ->> '$.isInbound', 0),
        CASE name WHEN 'setEnabled' THEN arguments ->> '$.isEnabled'
          WHEN 'replaceSource' THEN arguments ->> '$._1' IS NOT NULL ELSE 1 END,
        CASE name
          WHEN 'setParameters' THEN (
            SELECT min(value ->> '$.maxBitrate') FROM json_each(arguments, '$._1.encodings'))
          WHEN 'limitBitrate' THEN arguments ->> '$.maximum' END
      FROM call_request
      WHERE name IN ('setEnabled', 'replaceSource', 'removeTrack', 'setDirection', 'setParameters',
        'limitBitrate', 'noteCapture', 'stopTransceiver', 'addTrack', 'addTransceiver')
        OR name = 'setContentHint' AND arguments ->> '$._1' IN ('text', 'detail')
      UNION ALL
      SELECT at_ns, peer, type, detail ->> '$.transceiver', detail ->> '$.direction' = 'in',
        type IN ('enabled', 'unmute'), NULL
      FROM event WHERE type IN ('mute', 'disabled', 'unmute', 'enabled')
      ORDER BY 1 LIMIT \(CallFacts.most)
      """)
    while try rows.step() {
      changes.append(
        Change(
          at: rows.integer(0), peer: rows.integer(1), name: rows.text(2) ?? "",
          track: rows.isNull(3) ? nil : rows.integer(3), isInbound: rows.integer(4) != 0,
          isOn: rows.integer(5) != 0, limit: rows.isNull(6) ? nil : rows.integer(6)))
    }
  }

  /// Reads when descriptions were set, and which bandwidth limits for video they contain.
  mutating func readDescriptions(_ connection: borrowing SQLiteConnection) throws(SQLiteError) {
    let rows = try connection.prepare(
      """
      SELECT row, at_ns, peer, direction = 'in', CAST(message AS TEXT) FROM signaling
      WHERE type IN ('offer', 'answer', 'pranswer')
      UNION ALL
      SELECT row, at_ns, peer, name = 'setRemoteDescription', arguments ->> '$._0.sdp'
      FROM call_request WHERE name IN ('setLocalDescription', 'setRemoteDescription')
      ORDER BY 1 LIMIT 10000
      """)
    while try rows.step() {
      let (at, peer) = (rows.integer(1), rows.integer(2))
      negotiations.append((peer, at))
      guard let limit = Self.videoLimit(rows.text(4) ?? "") else { continue }
      if rows.integer(3) == 0 {
        receiveLines.append((peer, at, limit))
      } else if lines.last(where: { $0.peer == peer })?.limit != limit {
        lines.append((peer, at, limit))
      }
    }
  }

  /// Returns the bandwidth that a description allows for video, in bits per second (RFC 8866
  /// section 5.8, RFC 3890); nil if it states none.
  private static func videoLimit(_ description: String) -> Int64? {
    let bytes = Array(description.utf8)
    guard let section = place(behind: "m=video ", in: bytes[...]) else { return nil }
    var rest = bytes[section...]
    for ending in ["\r\nm=", "\nm=", "\\nm="] {
      guard let next = place(behind: ending, in: rest) else { continue }
      rest = rest[..<(next - ending.utf8.count)]
      break
    }
    for (name, factor) in [("b=TIAS:", Int64(1)), ("b=AS:", Int64(1000))] {
      guard let place = place(behind: name, in: rest) else { continue }
      let digits = rest[place...].prefix { (0x30...0x39).contains($0) }
      let value = Int64(String(decoding: digits, as: UTF8.self))
      if let value, value < 1 << 40 { return value *| factor }
    }
    return nil
  }

  /// Returns the index after the first occurrence of a string in the bytes; nil if there is none.
  private static func place(behind text: String, in bytes: ArraySlice<UInt8>) -> Int? {
    let wanted = Array(text.utf8)
    var place = bytes.startIndex
    while place + wanted.count <= bytes.endIndex {
      if bytes[place] == wanted[0], bytes[place..<place + wanted.count].elementsEqual(wanted) {
        return place + wanted.count
      }
      place += 1
    }
    return nil
  }

  private struct Name: Hashable {
    var peer: Int64
    var track: Int64
    var isInbound: Bool
  }

  private struct Run {
    var mark: [UInt8]
    var from: Int64
    var to: Int64
    var count: Int64
  }

  /// The minimum duration of a run of equal frames, in nanoseconds.
  private static let leastStill: Int64 = 2_000_000_000

  /// Finds runs of equal frames, decoded or captured, by their digests.
  mutating func readStills(_ connection: borrowing SQLiteConnection) throws(SQLiteError) {
    var runs: [Name: Run] = [:]
    var sizes: [Name: (Int64, Int64)] = [:]
    let rows = try connection.prepare(
      """
      SELECT peer, track, at_ns, digest, width, height
      FROM frame_store JOIN format USING (format)
      WHERE kind = 'video' AND direction = 'in' AND digest IS NOT NULL ORDER BY frame_store.row
      """)
    while try rows.step() {
      let name = Name(peer: rows.integer(0), track: rows.integer(1), isInbound: true)
      add(
        name, rows.integer(2), rows.bytes(3), (rows.integer(4), rows.integer(5)), &runs, &sizes)
    }
    let captures = try connection.prepare(
      """
      SELECT capture.peer, track, at_ns, content.digest, width, height
      FROM capture JOIN content USING (content)
      WHERE kind = 'video' AND capture.peer > 0 ORDER BY capture.row
      """)
    while try captures.step() {
      let name = Name(peer: captures.integer(0), track: captures.integer(1), isInbound: false)
      add(
        name, captures.integer(2), captures.bytes(3), (captures.integer(4), captures.integer(5)),
        &runs, &sizes)
    }
    let names = runs.keys.sorted {
      ($0.peer, $0.track, $0.isInbound ? 1 : 0) < ($1.peer, $1.track, $1.isInbound ? 1 : 0)
    }
    for name in names { end(name, runs[name], sizes[name]) }
    stills.sort { ($0.from, $0.peer, $0.track) < ($1.from, $1.peer, $1.track) }
  }

  private mutating func add(
    _ name: Name, _ at: Int64, _ mark: [UInt8], _ size: (Int64, Int64), _ runs: inout [Name: Run],
    _ sizes: inout [Name: (Int64, Int64)]
  ) {
    if var run = runs[name], run.mark == mark {
      (run.to, run.count) = (at, run.count + 1)
      runs[name] = run
      return
    }
    end(name, runs[name], sizes[name])
    runs[name] = Run(mark: mark, from: at, to: at, count: 1)
    sizes[name] = size
  }

  private mutating func end(_ name: Name, _ run: Run?, _ size: (Int64, Int64)?) {
    guard let run, let size, run.count >= 5, run.to &- run.from >= Self.leastStill,
      stills.count < CallFacts.most
    else { return }
    stills.append(
      Still(
        peer: name.peer, track: name.track, direction: name.isInbound ? .inbound : .outbound,
        from: run.from, to: run.to, pictures: run.count,
        shade: Self.shade(run.mark, size.0, size.1, isDecoded: name.isInbound)))
  }

  /// Finds the luma of a single-shade frame by its digest; nil if no dark shade matches.
  ///
  /// Only dark shades are tried, as from muted cameras, covered lenses and idle capturers.
  private static func shade(
    _ mark: [UInt8], _ width: Int64, _ height: Int64, isDecoded: Bool
  ) -> Int? {
    guard width > 0, height > 0, width *| height <= 1 << 23 else { return nil }
    let luma = Int(width *| height)
    let chroma = 2 *| Int((width +| 1) / 2) *| Int((height +| 1) / 2)
    for shade in 0...24 {
      let picture =
        [UInt8](repeating: UInt8(shade), count: luma) + [UInt8](repeating: 128, count: chroma)
      let digest = isDecoded ? XXH3.hash(picture.span.bytes) : SHA256.hash(picture)
      if digest == mark { return shade }
    }
    return nil
  }

  mutating func readCaptures(_ connection: borrowing SQLiteConnection) throws(SQLiteError) {
    var open: [Name: Captured] = [:]
    let rows = try connection.prepare(
      """
      SELECT peer, track, at_ns, kind <> 'audio' FROM capture
      WHERE peer > 0 AND kind IN ('audio', 'video', 'h264') ORDER BY row
      """)
    while try rows.step() {
      let isVideo = rows.integer(3) != 0
      let name = Name(peer: rows.integer(0), track: rows.integer(1), isInbound: isVideo)
      let at = rows.integer(2)
      if var run = open[name] {
        let gap = at &- run.to
        if gap < 1_000_000_000 {
          run.longestGap = max(run.longestGap, gap)
          (run.to, run.count) = (at, run.count + 1)
          open[name] = run
          continue
        }
        if captured.count < CallFacts.most { captured.append(run) }
      }
      open[name] = Captured(
        peer: name.peer, track: name.track, isVideo: isVideo, from: at, to: at, count: 1,
        longestGap: 0)
    }
    captured += open.values
    captured.sort {
      ($0.from, $0.peer, $0.track, $0.to) < ($1.from, $1.peer, $1.track, $1.to)
    }
  }

  /// Reads runs of concealed audio that last 150 ms or more (W3C interruptionCount, as proposed).
  ///
  /// The time from the first block's start to the last block's start is one block of 10 or 20 ms
  /// shorter than the run, so 130 ms suffice.
  mutating func readConcealments(_ connection: borrowing SQLiteConnection) throws(SQLiteError) {
    var open: [Name: Concealment] = [:]
    func isLong(_ run: Concealment) -> Bool { run.to &- run.from >= 130_000_000 }
    let rows = try connection.prepare(
      """
      SELECT peer, track, at_ns FROM frame_store JOIN format USING (format)
      WHERE kind = 'audio' AND direction = 'in' AND outcome = 'concealed'
      ORDER BY frame_store.row LIMIT 1000000
      """)
    while try rows.step() {
      let name = Name(peer: rows.integer(0), track: rows.integer(1), isInbound: true)
      let at = rows.integer(2)
      if var run = open[name], at &- run.to <= 25_000_000 {
        run.to = at
        open[name] = run
        continue
      }
      if let run = open[name], isLong(run) { concealments.append(run) }
      open[name] = Concealment(peer: name.peer, track: name.track, from: at, to: at)
    }
    concealments += open.values.filter { isLong($0) }
    concealments.sort { ($0.from, $0.peer, $0.track) < ($1.from, $1.peer, $1.track) }
  }

  mutating func readCodecs(_ connection: borrowing SQLiteConnection) throws(SQLiteError) {
    let rows = try connection.prepare(
      """
      SELECT peer, track, direction, kind, codec,
        (SELECT min(at_ns) FROM frame_store WHERE frame_store.format = format.format
          AND frame_store.row BETWEEN format.row AND format.row | 65535)
      FROM format
      WHERE kind IN ('audio', 'video') AND outcome NOT IN ('concealed', 'recovered') AND ssrc <> 0
      ORDER BY format LIMIT \(CallFacts.most)
      """)
    var last: [Name: String] = [:]
    while try rows.step() {
      guard !rows.isNull(5), let direction = WireDirection(rawValue: rows.text(2) ?? "") else {
        continue
      }
      let name = Name(
        peer: rows.integer(0), track: rows.integer(1), isInbound: direction == .inbound)
      let codec = rows.text(4) ?? ""
      if let former = last[name], former != codec {
        codecChanges.append(
          CodecChange(
            peer: name.peer, track: name.track, direction: direction, kind: rows.text(3) ?? "",
            at: rows.integer(5), from: former, to: codec))
      }
      last[name] = codec
    }
  }

  mutating func readNames(_ connection: borrowing SQLiteConnection) throws(SQLiteError) {
    let rows = try connection.prepare(
      """
      SELECT DISTINCT chunk.value ->> '$.ssrc', chunk.value ->> '$.cname'
      FROM rtcp, json_each(fields, '$.chunks') AS chunk WHERE rtcp.type = 'sdes' LIMIT 10000
      """)
    while try rows.step() {
      if let name = rows.text(1) { names[rows.integer(0) & 0xffff_ffff] = name }
    }
  }
}
