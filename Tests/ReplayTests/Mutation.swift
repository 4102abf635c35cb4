import Foundation
import Lab
import Media
import Peer
import SCTP
import Wire

@testable import Tape

/// A recorded step, ready to be changed.
struct LooseStep {
  var head: StepHead
  var rows: RowList
  /// How many of the rows belong to the input.
  var inputRowCount: Int
  /// The step's number before any change.
  var number: Int
}

/// A short call with loss, with generated and application audio and video.
struct MutableTake: Sendable {
  var header: TakeHeader
  var steps: [LooseStep]

  static let shared: Result<MutableTake, any Error> = Result { try MutableTake() }

  private init() throws {
    let folder = FileManager.default.temporaryDirectory.path + "/mutable-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    var link = LinkSettings()
    link.delay = .milliseconds(5)
    link.lossPerMille = 40
    let recorded = try RecordedVirtualCall(
      path: folder + "/base.take", seed: 31, links: [link, link], labels: ["caller", "callee"])
    let call = recorded.call
    call.call(0, .addTrack(kind: .audio, streamIDs: ["s"], source: .application))
    call.call(
      1, .addTrack(kind: .audio, streamIDs: ["s"], source: .tone(hertz: 440, pauseSeconds: 0)))
    call.call(
      0,
      .addTrack(
        kind: .video, streamIDs: ["s"], source: .pattern(width: 64, height: 48, framesPerSecond: 10)
      ))
    call.call(0, .createDataChannel(DataChannelInit(label: "chat")))
    call.negotiate()
    for block in 0..<15 {
      let samples = (0..<960).map { Int16(($0 * (3 + block)) % 4_001 - 2_000) }
      call.step(0, .captured(transceiver: 1, .audio(AudioBlock(samples: samples, channels: 1))))
      recorded.run(for: .milliseconds(20))
    }
    _ = try recorded.finish()
    self = try MutableTake(path: folder + "/base.take")
  }

  init(path: String) throws {
    let reader = try TapeReader(path: path)
    header = reader.header
    steps = []
    while let chunk = try reader.next() {
      for step in chunk.steps {
        var rows = RowList()
        for row in step.rows { rows.append(chunk.rows.table(row), Array(chunk.rows.row(row))) }
        steps.append(
          LooseStep(
            head: step.head, rows: rows, inputRowCount: step.inputRowCount,
            number: step.head.number))
      }
    }
  }

  /// Writes the steps as a take with a valid digest chain.
  func write(to path: String) throws {
    let copy = try TakeCopy(path: path, header: header)
    for step in steps { try copy.append(step.head, step.rows, 0..<step.rows.count) }
    try copy.finish()
  }
}

/// One change to a take, which a replay must report.
struct Mutation: Sendable {
  /// The kinds of changes, all equally frequent.
  enum Kind: CaseIterable, Sendable {
    case output, input, datagramByte, deadline, time, entropy, seed, setting
    case missingRow, doubledRow, missingStep, doubledStep
  }

  var kind: Kind
  /// The changed step, by its number in the original take.
  var step = 0
  /// The layer that must be reported for a changed output.
  var layer: String?
  /// A description of the change.
  var what = ""

  /// Changes a take; the same number always makes the same change.
  init(_ number: Int, of take: inout MutableTake) {
    let chance = Entropy(seed: [UInt8(number & 0xff), UInt8(number >> 8)]).stream("mutation")
    kind = Kind.allCases[number % Kind.allCases.count]
    // If the change does not fit a step, another step is tried.
    while !apply(to: &take, chance) {}
  }

  private mutating func apply(to take: inout MutableTake, _ chance: EntropyStream) -> Bool {
    let index = chance.index(below: take.steps.count)
    step = take.steps[index].number
    layer = nil
    switch kind {
    case .output: return changeRow(of: &take.steps[index], chance, isInput: false)
    case .input: return changeRow(of: &take.steps[index], chance, isInput: true)
    case .datagramByte: return changeDatagram(of: &take.steps[index], chance)
    case .deadline:
      layer = "timer"
      what = "deadline"
      let shift = Interval(nanoseconds: chance.distance)
      let head = take.steps[index].head
      take.steps[index].head.deadline = (head.deadline ?? head.at) + shift
    case .time:
      guard take.steps[index].head.kind == .deadline else { return false }
      what = "the time of a timer"
      take.steps[index].head.at = take.steps[index].head.at + Interval(nanoseconds: chance.distance)
    case .entropy:
      layer = "entropy"
      what = "entropy counter"
      take.steps[index].head.entropyDrawn &+= 1 + chance.integer(below: 1_000)
    case .seed, .setting: return changeGenesis(of: &take.steps[index], chance)
    case .missingRow, .doubledRow: return changeCount(of: &take.steps[index], chance)
    case .missingStep:
      // Without genesis, a peer does nothing at all, and a missing last step would not be noticed.
      guard take.steps[index].head.kind != .genesis, index + 1 < take.steps.count else {
        return false
      }
      what = "a missing step \(take.steps[index].head.kind)"
      take.steps.remove(at: index)
    case .doubledStep:
      let rows = take.steps[index].rows
      guard (0..<rows.count).allSatisfy({ !rows.table($0).isNumbered }) else { return false }
      what = "a doubled step \(take.steps[index].head.kind)"
      take.steps.insert(take.steps[index], at: index)
    }
    return true
  }

  /// Changes a value in a row; returns false if that is not possible in this step.
  private mutating func changeRow(
    of step: inout LooseStep, _ chance: EntropyStream, isInput: Bool
  ) -> Bool {
    let rows = isInput ? 0..<step.inputRowCount : step.inputRowCount..<step.rows.count
    guard !rows.isEmpty else { return false }
    let row = rows.lowerBound + chance.index(below: rows.count)
    let table = step.rows.table(row)
    let column = chance.index(below: table.columns.count)
    let name = table.columnNames[column]
    // Skips keys, which SQLite itself protects, and the columns that locate a frame's bytes.
    guard column > 0 || !table.isNumbered, table != .frame || name != "size" else { return false }
    layer = isInput ? nil : layerName(step.rows, row)
    what = "\(table.name).\(name)"
    step.rows.replace(row, column, with: step.rows[row, column].changed(chance))
    return true
  }

  /// Changes one bit of a received datagram; returns false if the step has none.
  private mutating func changeDatagram(of step: inout LooseStep, _ chance: EntropyStream) -> Bool {
    guard step.head.kind == .datagram else { return false }
    let row = step.inputRowCount - 1
    guard var bytes = PacketRow(step.rows, row)?.bytes, !bytes.isEmpty,
      let column = Table.packet.column("bytes")
    else { return false }
    let offset = chance.index(below: bytes.count)
    bytes[offset] ^= 1 << UInt8(chance.integer(below: 8))
    what = "byte \(offset) of a received datagram"
    step.rows.replace(row, column, with: .blob(bytes))
    return true
  }

  private mutating func changeGenesis(of step: inout LooseStep, _ chance: EntropyStream) -> Bool {
    guard step.head.kind == .genesis else { return false }
    if kind == .seed {
      what = "seed"
      step.rows.replace(0, 4, with: step.rows[0, 4].changed(chance))
      return true
    }
    guard case .text(let text) = step.rows[0, 6],
      var configuration = CanonicalJSON.value(PeerConfiguration.self, from: text)
    else { return false }
    what = "setting"
    switch chance.integer(below: 3) {
    case 0: configuration.videoBitrateMaximum -= 1_000 * (1 + chance.integer(below: 900))
    case 1: configuration.videoBitrateStart -= 1_000 * (1 + chance.integer(below: 300))
    default: configuration.audioBitrate -= 1_000 * UInt32(1 + chance.integer(below: 20))
    }
    step.rows.replace(0, 6, with: .text(CanonicalJSON.text(configuration)))
    return true
  }

  /// Removes or duplicates an output row; returns false if that is not possible in this step.
  private mutating func changeCount(of step: inout LooseStep, _ chance: EntropyStream) -> Bool {
    let rows = step.inputRowCount..<step.rows.count
    guard !rows.isEmpty else { return false }
    let row = rows.lowerBound + chance.index(below: rows.count)
    let table = step.rows.table(row)
    // Numbers are keys, so SQLite rejects a second row with the same number.
    guard !table.isNumbered || kind == .missingRow else { return false }
    layer = nil
    what = "\(table.name) row"
    step.rows.replace(row, withCopies: kind == .missingRow ? 0 : 2)
    return true
  }
}

/// The layer of each event type.
private let eventLayers: [(layer: String, types: [String])] = [
  ("dtls", ["secured", "keylog", "certificate"]),
  ("jsep", ["track", "trackended", "addstream", "removestream", "negotiationneeded"]),
  ("ice", ["icecandidate"]), ("media", ["speaker"]),
  ("sctp", ["bufferedamountlow", "datachannelerror"]),
]

/// Returns the layer that produces a table's rows.
private func layerName(_ rows: RowList, _ row: Int) -> String? {
  switch rows.table(row) {
  case .packet:
    guard let bytes = PacketRow(rows, row)?.bytes, bytes.count > 1 else { return nil }
    switch bytes[0] {
    case 0..<4: return "ice"
    case 20..<64: return "dtls"
    case 128..<192: return (192..<224).contains(bytes[1]) ? "rtcp" : "rtp"
    default: return nil
    }
  case .state:
    return StateRow(rows, row)?.machine
  case .path, .network, .candidate, .candidatePair: return "ice"
  case .callReply: return "api"
  case .event:
    guard let type = EventRow(rows, row)?.type else { return nil }
    return eventLayers.first { $0.types.contains(type) }?.layer ?? "api"
  case .channel, .message: return "sctp"
  case .rtcp: return "rtcp"
  case .track: return "jsep"
  case .format, .frame: return "media"
  case .stat: return "stats"
  default: return nil
  }
}

extension EntropyStream {
  fileprivate func index(below count: Int) -> Int { Int(integer(below: UInt64(count))) }

  /// A short time, positive or negative but not zero.
  fileprivate var distance: Int64 {
    let length = Int64(1_000) << Int64(integer(below: 14))
    return integer(below: 2) == 0 ? length : -length
  }
}

extension Value {
  /// Returns another value, of the same type if possible.
  fileprivate func changed(_ chance: EntropyStream) -> Value {
    switch self {
    // A column converts numbers and strings to its own type, but never bytes.
    case .null: return .blob([1])
    case .integer(let value): return .integer(value ^ 1 << Int64(chance.integer(below: 7)))
    case .real(let value): return .real(value + 0.25)
    case .text(let text):
      guard let last = text.unicodeScalars.last else { return .text("x") }
      let other: Character = last == "x" ? "y" : "x"
      return .text(String(text.unicodeScalars.dropLast()) + String(other))
    case .blob(var bytes):
      guard !bytes.isEmpty else { return .blob([1]) }
      bytes[chance.index(below: bytes.count)] ^= 1 << UInt8(chance.integer(below: 8))
      return .blob(bytes)
    }
  }
}

extension RowList {
  fileprivate mutating func replace(_ row: Int, _ column: Int, with value: Value) {
    rebuild { index, table, values in
      var values = values
      if index == row { values[column] = value }
      return [(table, values)]
    }
  }

  fileprivate mutating func replace(_ row: Int, withCopies count: Int) {
    rebuild { index, table, values in
      Array(repeating: (table, values), count: index == row ? count : 1)
    }
  }

  private mutating func rebuild(_ body: (Int, Table, [Value]) -> [(Table, [Value])]) {
    var rebuilt = RowList()
    for index in 0..<count {
      for (table, values) in body(index, table(index), Array(row(index))) {
        rebuilt.append(table, values)
      }
    }
    self = rebuilt
  }
}
