import ArgumentParser
import FoundationEssentials
import Glibc
import Queries

/// How wide tables may be, and whether long ones go through a pager.
struct PagerOptions: ParsableArguments {
  @Flag(name: .customLong("no-pager"), help: "Print long tables without a pager ($PAGER).")
  var isOff = false

  @Flag(
    name: .customLong("wide"),
    help: "Print tables whole, wider than the terminal; files and pipes get them so.")
  var isWide = false

  /// How tables look where they are shown.
  var look: TableLook { isWide ? Terminal.standard.look.wide : Terminal.standard.look }

  /// Shows what a body prints, a table of more lines than the terminal has through a pager.
  func show(_ body: (Screen) throws -> Void) throws {
    let screen = Screen(hasPager: !isOff, isWide: isWide)
    do {
      try body(screen)
    } catch let failure as CommandFailure where screen.isPaged && failure.message.isEmpty {
      // Whoever leaves the pager has seen enough.
    } catch {
      // The pager has the terminal until its reader has read enough.
      try? screen.finish()
      throw error
    }
    try screen.finish()
  }

  /// Shows a text.
  func show(_ text: String) throws { try show { try $0.write(text) } }
}

/// Standard output for tables: straight, or through a pager where a terminal is too small.
///
/// It decides with the first text that is written: one that fills the terminal goes through the
/// pager with all that follows, and a shorter one was not worth waiting for.
final class Screen {
  private let rows: Int?
  private let isWide: Bool
  private var isDecided = false
  private var pager: Pager?

  init(hasPager: Bool, isWide: Bool) {
    self.isWide = isWide
    rows = hasPager ? Terminal.standard.size?.rows : nil
  }

  /// Whether somebody reads in a pager.
  var isPaged: Bool { pager != nil }

  /// Writes text.
  ///
  /// - Throws: a failure with status 74, which has no words when the pager was left.
  func write(_ text: String) throws(CommandFailure) {
    if !isDecided, let rows, let program = Pager.program,
      text.utf8.count(where: { $0 == UInt8(ascii: "\n") }) >= rows
    {
      pager = try Pager(isWide && program == Pager.usual ? Pager.scrolling : program)
    }
    isDecided = true
    try Output.write(text)
  }

  /// Waits for the pager's reader.
  func finish() throws(CommandFailure) {
    guard let pager else { return }
    self.pager = nil
    try pager.finish()
  }
}

/// A running pager, into which standard output goes.
private final class Pager {
  private let program: String
  private let process: pid_t

  /// The user's pager; nil when none is wanted or there.
  static let program: String? = {
    let environment = ProcessInfo.processInfo.environment
    if let chosen = environment["PAGER"] {
      return chosen.isEmpty || chosen == "cat" ? nil : chosen
    }
    let folders = (environment["PATH"] ?? "").split(separator: ":")
    let isThere = folders.contains { FileManager.default.isExecutableFile(atPath: "\($0)/less") }
    return isThere ? usual : nil
  }()

  /// Leaves at once what fits, passes colours on, and keeps the screen when it ends.
  static let usual = "less -FRX"
  /// The same with lines that are not wrapped: the arrow keys move to the right.
  static let scrolling = "less -FRXS"

  init(_ program: String) throws(CommandFailure) {
    self.program = program
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { throw Pager.failure(program, errno) }
    // The pager's own input is a copy; with another end it would wait for itself.
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
    // A pager makes something else of Ctrl-C, and would lose the terminal if this ended before it.
    if !Interruption.isNoticed { signal(SIGINT, SIG_IGN) }
    dup2(ends[1], STDOUT_FILENO)
    close(ends[1])
  }

  /// Ends the text and waits until the reader leaves.
  func finish() throws(CommandFailure) {
    // Something must stay open under this number.
    let null = open("/dev/null", O_WRONLY | O_CLOEXEC)
    dup2(null, STDOUT_FILENO)
    close(null)
    var status: Int32 = 0
    while waitpid(process, &status, 0) < 0, errno == EINTR {}
    // The shell's word for a command that is not there or cannot be run.
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

/// What standard output is: a terminal of some size, or a file or pipe.
struct Terminal: Sendable {
  /// The size in characters; nil if it is no terminal.
  let size: (columns: Int, rows: Int)?
  private let hasColours: Bool

  /// The one that was there when the command began: a pager may take its place.
  static let standard = Terminal(STDOUT_FILENO)

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
    // https://no-color.org: whatever it says, as long as it says something.
    hasColours = (environment["NO_COLOR"] ?? "").isEmpty && environment["TERM"] != "dumb"
  }

  /// Of a terminal that does not tell, such as a serial line: those of a VT100.
  private static let usualColumns = 80
  private static let usualRows = 24

  /// How tables look on it.
  var look: TableLook { TableLook(columns: size?.columns, isColoured: hasColours) }

  /// The text in a colour if the terminal has colours, else as it is.
  func paint(_ text: String, _ ink: Ink?) -> String {
    hasColours ? ink?.paint(text) ?? text : text
  }

  /// The control sequence of a mark of colour, where there are colours.
  func sequence(of mark: Unicode.Scalar) -> String? {
    hasColours ? Ink.sequence(of: mark) : nil
  }
}
