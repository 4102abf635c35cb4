import FoundationEssentials
import Page
import Queries
import Stats
import Tape
import Wire

/// The takes and folders that a server was started with.
struct ServedTakes: Sendable {
  let paths: [String]

  private static let maximum = 5_000
  /// How long a take counts as growing after its last write, in seconds; a recorder writes ten
  /// times a second.
  static let liveSeconds = 5.0

  /// Checks that each path is a folder or a take, and stores the paths.
  init(paths: [String]) throws(TapeError) {
    self.paths = paths
    for path in paths where !Self.isFolder(path) {
      guard FileBytes.kind(of: path) != nil else {
        throw TapeError(
          path: path, place: "", reason: "there is no such file or folder", kind: .missing)
      }
      _ = try TakeFile.open(path)
    }
  }

  private static func isFolder(_ path: String) -> Bool {
    FileBytes.kind(of: path) == .folder
  }

  /// The take, if the server was started with a single one; nil if the user can choose among
  /// several.
  var only: String? { paths.count == 1 && !Self.isFolder(paths[0]) ? paths[0] : nil }

  var list: TakeList { TakeList(present: paths, limit: Self.maximum) }

  /// The takes with the names that the page shows, in the order of the given paths.
  var files: [(name: String, path: String)] {
    // If two takes have the same name, show the second one's path instead.
    var seen: Set<String> = []
    return list.entries.map { entry in
      (seen.insert(entry.name).inserted ? entry.name : entry.path, entry.path)
    }
  }

  /// Returns whether a take was written to within the last `liveSeconds`.
  static func isLive(_ path: String) -> Bool {
    [path + "-wal", path].contains { path in
      let attributes = try? FileManager.default.attributesOfItem(atPath: path)
      let changed = attributes?[.modificationDate] as? Date
      return changed.map { -$0.timeIntervalSinceNow < liveSeconds } ?? false
    }
  }
}

// MARK: - ServedCatalogue

/// What a server's page shows about each take before the user chooses one.
actor ServedCatalogue {
  /// One batch of the catalogue.
  private struct Piece: Sendable {
    var stamps: [(path: String, stamp: TakeStamp)]
    var entries: [String: PageCatalogue]
    var isWhole: Bool
  }

  private let takes: ServedTakes
  private let work: FileWork
  /// Entries by path, and when each was read.
  private var entries:
    [String: (stamp: TakeStamp, at: ContinuousClock.Instant, entry: PageCatalogue)] = [:]
  private var isReading = false

  /// How many takes are read before the first result is shown, and how many times a page waits 50
  /// ms for it.
  private static let takesAtOnce = 100
  private static let patienceTicks = 30

  init(_ takes: ServedTakes, _ work: FileWork) {
    self.takes = takes
    self.work = work
  }

  /// Returns the catalogue; its `isFolder` is false for a single take, which leaves nothing to
  /// choose.
  ///
  /// Takes that are not in the catalogue yet are read in the background and included in a later
  /// answer.
  func json() async -> String {
    let files = takes.files
    let isOne = files.count == 1 && takes.only != nil
    if !isOne { await read() }
    let objects = files.map { name, path in
      entries[path]?.entry.json(name: name, isLive: ServedTakes.isLive(path))
        ?? PageCatalogue.waiting(name: name)
    }
    let title = takes.paths.map { FileBytes.name(of: $0) }.joined(separator: ", ")
    return "{\"isFolder\":\(!isOne),\"folder\":\(jsonString(title)),"
      + "\"takes\":[\(objects.joined(separator: ",\n"))]}"
  }

  /// Starts reading new takes, and waits briefly for the result.
  private func read() async {
    let list = takes.list
    let isNew = list.entries.contains { entry in
      guard let known = entries[entry.path] else { return true }
      // A growing take looks new each time, so recent entries are kept.
      let isRecent = ContinuousClock.now - known.at < .seconds(ServedTakes.liveSeconds)
      return !isRecent && known.stamp != TakeStamp(path: entry.path)
    }
    if isNew, !isReading {
      isReading = true
      Task { await self.readParts(of: list) }
    }
    for _ in 0..<Self.patienceTicks where isReading {
      try? await Task.sleep(for: .milliseconds(50))
    }
  }

  /// Reads the takes in batches, so that the first can be shown before the last are read.
  private func readParts(of list: TakeList) async {
    defer { isReading = false }
    // Takes that grow look new each time, so limit the number of rounds.
    for _ in 0...(list.entries.count / Self.takesAtOnce) {
      let part = await work.run { () -> Piece in
        let stamps = list.entries.map { ($0.path, TakeStamp(path: $0.path)) }
        do throws(TapeError) {
          let catalogue = try TakeCatalogue(list, jobs: 2, readMaximum: Self.takesAtOnce)
          return Piece(
            stamps: stamps, entries: try PageCatalogue.entries(catalogue),
            isWhole: catalogue.waitingCount == 0)
        } catch {
          let entry = PageCatalogue(failure: error)
          return Piece(
            stamps: stamps,
            entries: Dictionary(stamps.map { ($0.0, entry) }, uniquingKeysWith: { $1 }),
            isWhole: true)
        }
      }
      guard let part else { return }
      for (path, stamp) in part.stamps {
        guard let entry = part.entries[path] else { continue }
        entries[path] = (stamp, .now, entry)
      }
      if part.isWhole { return }
    }
  }
}
