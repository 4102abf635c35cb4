import CProcess
import Dispatch

/// Starts a detached thread that is left out of signal delivery; the body ends it by returning.
///
/// The name has at most 15 characters and shows in debuggers and `top -H`.
package func startThread(
  named name: String, _ body: sending @escaping () -> Void
) throws(SystemError) {
  final class Start {
    let body: () -> Void
    init(_ body: @escaping () -> Void) { self.body = body }
  }
  let start = Unmanaged.passRetained(Start(body))
  let code = cprocess_thread_start(
    name,
    { argument in
      guard let argument else { return }
      Unmanaged<Start>.fromOpaque(argument).takeRetainedValue().body()
    }, start.toOpaque())
  guard code == 0 else {
    start.release()
    throw SystemError(operation: "start a thread", code: code)
  }
}

/// Starts a thread as `startThread` does, for work that nobody can continue without.
///
/// Where the system has no thread left, one of libdispatch's pool does it.
package func startWorker(named name: String, _ body: @escaping @Sendable () -> Void) {
  do throws(SystemError) {
    try startThread(named: name, body)
  } catch {
    DispatchQueue.global().async(execute: body)
  }
}
