import ArgumentParser
import FoundationEssentials
import Glibc
import Queries

/// The width of tables, and whether long tables are shown in a pager.
struct PagerOptions: ParsableArguments {
  @Flag(name: .customLong("no-pager"), help: "Print long tables without a pager ($PAGER).")
  var isOff = false

  @Flag(
    name: .customLong("wide"),
    help: "Print tables in full width, beyond the terminal, with each text on one line.")
  var isWide = false

  /// The table layout for the current output.
  var look: TableLook { isWide ? Terminal.standard.look.wide : Terminal.standard.look }

  /// Runs a body that prints; a table longer than the terminal goes through a pager.
  func show(_ body: (Screen) throws -> Void) throws {
    let screen = Screen(hasPager: !isOff, isWide: isWide)
    do {
      try body(screen)
    } catch let failure as CommandFailure where screen.isPaged && failure.message.isEmpty {
      // Leaving the pager early is not an error.
    } catch {
      // The pager keeps the terminal until the user leaves the pager.
      try? screen.finish()
      throw error
    }
    try screen.finish()
  }

  func show(_ text: String) throws { try show { try $0.write(text) } }
}

/// Standard output for tables: direct, or through a pager if the terminal is too small.
///
/// If the first text written fills the terminal, all output goes through the pager; otherwise text
/// is written at once.
final class Screen {
  private let rows: Int?
  private let isWide: Bool
  private var isDecided = false
  private var pager: Pager?

  init(hasPager: Bool, isWide: Bool) {
    self.isWide = isWide
    rows = hasPager ? Terminal.standard.size?.rows : nil
  }

  var isPaged: Bool { pager != nil }

  /// Writes text.
  ///
  /// - Throws: a failure with status 74, or with status 0 and no message if the user left the
  ///   pager.
  func write(_ text: String) throws(CommandFailure) {
    if !isDecided, let rows, let program = Pager.program,
      text.utf8.count(where: { $0 == UInt8(ascii: "\n") }) >= rows
    {
      pager = try Pager(isWide && program == Pager.usual ? Pager.scrolling : program)
    }
    isDecided = true
    try Output.write(text)
  }

  /// Waits until the user leaves the pager.
  func finish() throws(CommandFailure) {
    guard let pager else { return }
    self.pager = nil
    try pager.finish()
  }
}

/// A running pager, which receives standard output.
private final class Pager {
  private let program: String
  private let process: pid_t

  /// The user's pager; nil if none is wanted or available.
  static let program: String? = {
    let environment = ProcessInfo.processInfo.environment
    if let chosen = environment["PAGER"] {
      return chosen.isEmpty || chosen == "cat" ? nil : chosen
    }
    let folders = (environment["PATH"] ?? "").split(separator: ":")
    let isThere = folders.contains { FileManager.default.isExecutableFile(atPath: "\($0)/less") }
    return isThere ? usual : nil
  }()

  /// The default pager: exits immediately if the text fits, shows colours, and keeps the screen.
  static let usual = "less -FRX"
  /// The default pager without wrapping: the arrow keys scroll sideways.
  static let scrolling = "less -FRXS"

  init(_ program: String) throws(CommandFailure) {
    self.program = program
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { throw Pager.failure(program, errno) }
    // The pager gets a duplicate of the reading end. If it inherited the writing end as well, its
    // input would never end.
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO)
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var usual = sigset_t()
    sigemptyset(&usual)
    for number in [SIGINT, SIGPIPE] { sigaddset(&usual, number) }
    posix_spawnattr_setsigdefault(&attributes, &usual)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGDEF))
    let words = ["sh", "-c", program].map { (word: String) in strdup(word) }
    defer { for word in words { free(word) } }
    var child: pid_t = 0
    let environment = ProcessInfo.processInfo.environment.map { strdup("\($0.key)=\($0.value)") }
    defer { for variable in environment { free(variable) } }
    let code = posix_spawn(
      &child, "/bin/sh", &actions, &attributes, words + [nil], environment + [nil])
    close(ends[0])
    guard code == 0 else {
      close(ends[1])
      throw Pager.failure(program, code)
    }
    process = child
    // The pager handles Ctrl-C itself and would lose the terminal if this process ended first.
    if !Interruption.isNoticed { signal(SIGINT, SIG_IGN) }
    dup2(ends[1], STDOUT_FILENO)
    close(ends[1])
  }

  /// Closes the pager's input and waits until the user leaves the pager.
  func finish() throws(CommandFailure) {
    // Keep the descriptor number of standard output in use.
    let null = open("/dev/null", O_WRONLY | O_CLOEXEC)
    dup2(null, STDOUT_FILENO)
    close(null)
    var status: Int32 = 0
    while waitpid(process, &status, 0) < 0, errno == EINTR {}
    // A shell returns these statuses for a command that does not exist or cannot be run.
    guard [126, 127].contains((status >> 8) & 0xff), status & 0x7f == 0 else { return }
    throw CommandFailure(
      .inputOutput,
      "the pager \"\(CommandReading.shown(program))\" cannot be run: choose another PAGER, or give "
        + "--no-pager")
  }

  private static func failure(_ program: String, _ code: Int32) -> CommandFailure {
    CommandFailure(
      .inputOutput, "the pager \"\(program)\" cannot be started: \(String(cString: strerror(code)))"
    )
  }
}

// MARK: - Terminal

/// Describes a standard stream: a terminal with its size, or a file or pipe.
struct Terminal: Sendable {
  /// The size in characters; nil if the output is not a terminal.
  let size: (columns: Int, rows: Int)?
  private let hasColours: Bool

  /// Standard output, examined at the first use, before a pager replaces it.
  static let standard = Terminal(STDOUT_FILENO)
  /// Standard error, where progress is shown.
  static let errors = Terminal(STDERR_FILENO)

  private init(_ descriptor: Int32) {
    guard isatty(descriptor) != 0 else {
      (size, hasColours) = (nil, false)
      return
    }
    var window = winsize()
    let isKnown = ioctl(descriptor, UInt(TIOCGWINSZ), &window) == 0 && window.ws_col > 0
    let columns = isKnown ? Int(window.ws_col) : Terminal.usualColumns
    let rows = isKnown && window.ws_row > 0 ? Int(window.ws_row) : Terminal.usualRows
    size = (columns: columns, rows: rows)
    let environment = ProcessInfo.processInfo.environment
    // Any non-empty value of NO_COLOR disables colours (https://no-color.org).
    hasColours = (environment["NO_COLOR"] ?? "").isEmpty && environment["TERM"] != "dumb"
  }

  /// A VT100's size, for terminals that do not report theirs, such as serial lines.
  private static let usualColumns = 80
  private static let usualRows = 24

  /// The table layout for this output.
  var look: TableLook { TableLook(columns: size?.columns, isColoured: hasColours) }

  /// Colours text if the terminal has colours.
  func paint(_ text: String, _ ink: Ink?) -> String {
    hasColours ? ink?.paint(text) ?? text : text
  }

  /// Returns a colour mark's control sequence, if the terminal has colours.
  func sequence(of mark: Unicode.Scalar) -> String? {
    hasColours ? Ink.sequence(of: mark) : nil
  }
}
