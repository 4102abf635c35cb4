import CSupport
import Foundation

/// Opens a replay in lldb (or gdb, where there is no lldb), stopped just before a step.
struct NativeDebugger {
  let take: String

  /// Replaces this process by the debugger; comes back only by throwing.
  func open(before condition: String) throws -> Never {
    let own = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
    let replay = [own, "replay", take, "--until", condition, "--stop-here"]
    fflush(nil)
    let stop = "csupport_stop_here"
    execute(
      ["lldb", "-o", "breakpoint set --name \(stop)", "-o", "run", "--"] + replay)
    execute(["gdb", "-q", "-ex", "break \(stop)", "-ex", "run", "--args"] + replay)
    throw CommandFailure(.inputOutput, "neither lldb nor gdb can be started; install one of them")
  }

  private func execute(_ arguments: [String]) {
    var pointers = arguments.map { strdup($0) } + [nil]
    pointers.withUnsafeMutableBufferPointer { list in
      if let first = list.first, let program = first, let base = list.baseAddress {
        _ = csupport_execute(program, base)
      }
    }
    for pointer in pointers { free(pointer) }
  }
}
