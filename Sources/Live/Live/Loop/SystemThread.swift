import CProcess
import Glibc

/// Starts a detached thread that is left out of signal delivery; the body ends it by returning.
///
/// The name has at most 15 characters and shows in debuggers and `top -H`.
func startThread(named name: String, _ body: sending @escaping () -> Void) throws(SystemError) {
  final class Start {
    let name: String
    let body: () -> Void
    init(_ name: String, _ body: @escaping () -> Void) {
      self.name = name
      self.body = body
    }
  }
  let start = Unmanaged.passRetained(Start(name, body))
  var attributes = pthread_attr_t()
  pthread_attr_init(&attributes)
  defer { pthread_attr_destroy(&attributes) }
  pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
  var thread = pthread_t()
  let code = pthread_create(
    &thread, &attributes,
    { argument in
      guard let argument else { return nil }
      let start = Unmanaged<Start>.fromOpaque(argument).takeRetainedValue()
      var signals = sigset_t()
      sigfillset(&signals)
      pthread_sigmask(SIG_BLOCK, &signals, nil)
      cprocess_name_thread(start.name)
      start.body()
      return nil
    }, start.toOpaque())
  guard code == 0 else {
    start.release()
    throw SystemError(operation: "start a thread", code: code)
  }
}
