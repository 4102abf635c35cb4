import CProcess
import FoundationEssentials
import Glibc
import Live
import Wire

/// Opens a replay in lldb (or gdb, where lldb does not start), stopped just before a step.
struct NativeDebugger {
  let take: String
  /// Further options of the replay.
  var options: [String] = []

  /// Replaces this process by the debugger; comes back only by throwing.
  func open(before condition: String) throws -> Never {
    let own = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
    let replay = [own, "replay", take, "--until", condition, "--stop-here"] + options
    // The debugger and what it runs end by a closed pipe as they always would.
    signal(SIGPIPE, SIG_DFL)
    let stop = "cprocess_stop_here"
    if starts("lldb") {
      execute(["lldb", "-o", "breakpoint set --name \(stop)", "-o", "run", "--"] + replay)
    }
    if starts("gdb") {
      // Swift names modules that gdb does not know, and it would complain of each.
      let quiet = ["-q", "-iex", "set complaints 0"]
      execute(["gdb"] + quiet + ["-ex", "break \(stop)", "-ex", "run", "--args"] + replay)
    }
    throw CommandFailure(
      .inputOutput,
      "neither lldb nor gdb starts here; install one of them, or run "
        + "\(replay.map(ShellText.word).joined(separator: " ")) "
        + "under another debugger with a breakpoint on \(stop)")
  }

  /// Whether a debugger is there and runs: one that lacks a library is found and does not.
  private func starts(_ name: String) -> Bool {
    let process = try? ChildProcess(
      "/usr/bin/env", [name, "--version"], output: .nothing, errors: .nothing)
    return process?.waitUntilExit().status == 0
  }

  private func execute(_ arguments: [String]) {
    var pointers = arguments.map { strdup($0) } + [nil]
    pointers.withUnsafeMutableBufferPointer { list in
      if let first = list.first, let program = first, let base = list.baseAddress {
        _ = cprocess_execute(program, base)
      }
    }
    for pointer in pointers { free(pointer) }
  }
}
