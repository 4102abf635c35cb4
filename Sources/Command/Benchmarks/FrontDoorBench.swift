import FoundationEssentials
import Glibc
import Page
import RetakeCommand
import Tape

/// What a user meets first: how large the executable and a page are, and how soon it starts.
struct FrontDoorBench {
  /// The take whose page is measured.
  let path: String

  private static let starts = 41
  /// In megabytes and seconds.
  private static let executableGoal = 40.0
  private static let startGoal = 0.020
  private static let pageGoal = 1.0

  /// Adds the rows.
  func measure(_ table: inout BenchTable) throws {
    try table.add(
      "executable as installed", try executableMegabytes(), floor: Self.executableGoal, "MB",
      .atMost, 1)
    try table.add(
      "start, median of retake --help", try startSeconds(), floor: Self.startGoal, "s", .atMost, 1)
    let page = try reading { () throws(TapeError) in try TakePage(path: path) }
    try table.add(
      "page of the call", Double(page.html.utf8.count) / 1e6, floor: Self.pageGoal, "MB", .atMost, 1
    )
  }

  private static let executable = BenchCommand.retake

  /// What is loaded of the file.
  ///
  /// `make install` and `make deb` take the rest out of it: symbols, and what debuggers read.
  private func executableMegabytes() throws -> Double {
    guard case .success(let descriptor) = FileBytes.open(Self.executable) else {
      throw CommandFailure(.noSuchFile, "\(Self.executable): it cannot be read")
    }
    let file = FileDescriptor(descriptor)
    let header = file.read(atMost: 64, from: 0)
    guard header.count == 64, header.starts(with: [0x7f, 0x45, 0x4c, 0x46, 2, 1]) else {
      throw CommandFailure(.inputOutput, "\(Self.executable): it is not a 64-bit ELF file")
    }
    func number(in data: [UInt8], at offset: Int, bytes: Int) -> UInt64 {
      data.dropFirst(offset).prefix(bytes).reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }
    // The program headers: where they are, their size, how many; of each its type (1 is what is
    // loaded), its place in the file, and its size there.
    let (first, size) = (number(in: header, at: 32, bytes: 8), number(in: header, at: 54, bytes: 2))
    var end: UInt64 = 0
    for place in 0..<number(in: header, at: 56, bytes: 2) {
      let entry = file.read(atMost: Int(size), from: first + place * size)
      guard entry.count >= 56, number(in: entry, at: 0, bytes: 4) == 1 else { continue }
      end = max(end, number(in: entry, at: 8, bytes: 8) + number(in: entry, at: 32, bytes: 8))
    }
    return Double(end) / 1e6
  }

  /// The median, because a start takes long now and then and never shorter than it takes.
  private func startSeconds() throws -> Double {
    var seconds: [Double] = []
    for _ in 0..<Self.starts {
      let watch = Stopwatch()
      try start()
      seconds.append(watch.elapsed.wall)
    }
    return seconds.sorted()[Self.starts / 2]
  }

  /// Runs `retake --help` to its end, whose text nobody reads.
  private func start() throws {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0)
    let words = ["retake", "--help"].map { (word: String) in strdup(word) }
    defer { for word in words { free(word) } }
    let path = Self.executable
    var child: pid_t = 0
    var status: Int32 = 0
    guard posix_spawn(&child, path, &actions, nil, words + [nil], nil) == 0,
      waitpid(child, &status, 0) == child, status == 0
    else { throw CommandFailure(.inputOutput, "\(path): it does not start") }
  }
}
