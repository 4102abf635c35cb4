import FoundationEssentials
import Glibc
import Live
import Room
import Signaling
import Synchronization
import Tape
package import Wire

/// The reason that a browser cannot be used, as a sentence.
package struct BrowserError: Error, Hashable, Sendable, CustomStringConvertible {
  package var description: String

  package init(description: String) { self.description = description }
}

/// A headless Chromium with one page, driven over its DevTools protocol.
package final class HeadlessBrowser: Sendable {
  private let process: ChildProcess
  private let profile: String
  private let socket: WebSocket
  /// The number of the last command.
  private let last = Atomic<Int64>(0)

  /// The executables to search for, in order of preference.
  private static let programs = ["chromium", "chromium-browser", "google-chrome"]

  /// Flags for a browser without a display, a camera or background network traffic.
  private static let flags = [
    "--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--mute-audio", "--autoplay-policy=no-user-gesture-required",
    // Pages in an invisible window must not be throttled.
    "--disable-background-timer-throttling", "--disable-renderer-backgrounding",
    "--disable-backgrounding-occluded-windows",
    "--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream",
    "--disable-features=WebRtcHideLocalIpsWithMdns", "--allow-loopback-in-peer-connection",
    "--remote-debugging-port=0",
  ]

  private static let startSeconds = 60

  /// Returns the browser's path: the given one, or the first Chromium in PATH.
  package static func program(_ given: String?) throws(BrowserError) -> String {
    if let given {
      guard access(given, X_OK) == 0 else {
        throw BrowserError(description: "\(given): there is no such browser program")
      }
      return given
    }
    let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
    for name in programs {
      for folder in path.split(separator: ":") where access("\(folder)/\(name)", X_OK) == 0 {
        return "\(folder)/\(name)"
      }
    }
    throw BrowserError(
      description: "none of \(programs.joined(separator: ", ")) is in PATH: install Chromium, or "
        + "name it with --browser")
  }

  /// Starts a browser with an empty profile.
  ///
  /// - Parameter script: runs in every page before its own scripts.
  package init(_ program: String, script: String) async throws(BrowserError) {
    var template = Array("/tmp/retake-browser-XXXXXX".utf8CString)
    guard let made = mkdtemp(&template) else {
      throw BrowserError(description: "no folder for a browser profile can be created in /tmp")
    }
    let profile = String(cString: made)
    let root = geteuid() == 0 ? ["--no-sandbox"] : []
    do throws(SystemError) {
      process = try ChildProcess(
        program, Self.flags + root + ["--user-data-dir=\(profile)", "about:blank"],
        output: .nothing, errors: .nothing)
    } catch {
      Self.remove(profile)
      throw BrowserError(description: "\(program): \(error.description)")
    }
    self.profile = profile
    do {
      let port = try await Self.port(of: profile)
      let address = try await Self.pageAddress(port)
      var limits = WebSocketLimits()
      limits.messageBytes = 32 << 20
      limits.unreadBytes = 64 << 20
      limits.pingSeconds = 3_600
      socket = try await WebSocket.connect(to: address, limits: limits)
    } catch {
      process.end()
      process.waitUntilExit()
      Self.remove(profile)
      throw BrowserError(description: "\(program): \(error)")
    }
    _ = try await command("Page.enable")
    _ = try await command(
      "Page.addScriptToEvaluateOnNewDocument", .members(("source", .text(script))))
  }

  /// Waits for the port, which the browser writes into its profile.
  private static func port(of profile: String) async throws(BrowserError) -> String {
    for _ in 0..<10 * startSeconds {
      if case .success(let bytes) = FileBytes.read("\(profile)/DevToolsActivePort", atMost: 1_000) {
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
        if lines.count > 1 { return String(lines[0]) }
      }
      try? await Task.sleep(for: .milliseconds(100))
    }
    throw BrowserError(description: "the browser did not start within \(startSeconds) s")
  }

  private static func pageAddress(_ port: String) async throws -> String {
    let response = try await HTTPClient().get("http://127.0.0.1:\(port)/json/list")
    let list = try JSONValue(parsing: String(decoding: response.body, as: UTF8.self))
    for entry in list.elements where entry["type"]?.text == "page" {
      if let address = entry["webSocketDebuggerUrl"]?.text { return address }
    }
    throw BrowserError(description: "the browser has no page")
  }

  // MARK: Commands

  /// Opens a page; throws if the browser cannot load it.
  package func open(_ url: String) async throws(BrowserError) {
    let result = try await command("Page.navigate", .members(("url", .text(url))))
    if let error = result["errorText"]?.text, !error.isEmpty {
      throw BrowserError(description: "\(url) cannot be opened: \(error)")
    }
  }

  /// Evaluates an expression in the page and returns its value; if that is a promise, the value to
  /// which it resolves.
  package func evaluate(_ expression: String) async throws(BrowserError) -> JSONValue {
    let result = try await command(
      "Runtime.evaluate",
      .members(
        ("expression", .text(expression)), ("awaitPromise", .flag(true)),
        ("returnByValue", .flag(true))))
    if let failure = result["exceptionDetails"] {
      throw BrowserError(
        description: "the page failed: "
          + (failure["exception"]?["description"]?.text ?? failure["text"]?.text ?? ""))
    }
    return result["result"]?["value"] ?? .null
  }

  private func command(
    _ method: String, _ parameters: JSONValue = .members()
  ) async throws(BrowserError) -> JSONValue {
    let id = last.wrappingAdd(1, ordering: .relaxed).newValue
    let text = JSONValue.members(
      ("id", .integer(id)), ("method", .text(method)), ("params", parameters)
    ).json
    do throws(WebSocketError) {
      try await socket.send(.text(text))
    } catch {
      throw BrowserError(description: "the browser has ended: \(error.reason)")
    }
    while let message = await socket.receive() {
      guard case .text(let text) = message else { continue }
      var limits = JSONValue.Limits()
      limits.values = 1_000_000
      guard let reply = try? JSONValue(parsing: text, limits: limits),
        reply["id"]?.integer == id
      else { continue }
      if let error = reply["error"]?["message"]?.text {
        throw BrowserError(description: "the browser refuses \(method): \(error)")
      }
      return reply["result"] ?? .null
    }
    throw BrowserError(description: "the browser has ended")
  }

  /// Ends the browser and removes its profile.
  package func close() async {
    await socket.close()
    process.terminate()
    for _ in 0..<50 {
      if kill(process.identifier, 0) != 0 { break }
      try? await Task.sleep(for: .milliseconds(100))
    }
    process.end()
    process.waitUntilExit()
    Self.remove(profile)
  }

  private static func remove(_ profile: String) {
    // The browser's processes may still be writing files.
    for _ in 0..<10 where (try? FileManager.default.removeItem(atPath: profile)) == nil {
      usleep(100_000)
    }
  }
}

// MARK: - BrowserTrial

/// A re-enactment whose client is a headless browser.
///
/// It opens the page, waits for the call to end, and reads the statistics.
package struct BrowserTrial: Sendable {
  /// The browser's executable.
  package var program: String
  /// The address to open.
  package var page: String
  /// A further script that runs in the page before its own scripts.
  package var script: String
  /// The time limit for the page to connect.
  package var connectionLimit: Duration

  package init(
    program: String, page: String, script: String = "", connectionLimit: Duration
  ) {
    self.program = program
    self.page = page
    self.script = script
    self.connectionLimit = connectionLimit
  }

  /// The delay between the last packet and the reading of the statistics.
  package static let settling = Duration.milliseconds(1_500)

  /// Runs the trial; returns the stats objects of all of the page's connections.
  package func run(
    _ service: some Reenacting
  ) async throws(BrowserError) -> [JSONValue] {
    let browser = try await HeadlessBrowser(program, script: StatScript.text + "\n" + script)
    do throws(BrowserError) {
      try await browser.open(page)
      await wait(for: service)
      try? await Task.sleep(for: Self.settling)
      let objects = try await browser.evaluate(StatScript.question).elements
      await browser.close()
      return objects
    } catch {
      await browser.close()
      throw error
    }
  }

  /// Waits until everything has been played, or until the time limit passes without a client.
  private func wait(for service: some Reenacting) async {
    let limit = connectionLimit
    await withTaskGroup(of: Void.self) { group in
      group.addTask { for await _ in service.finished { return } }
      group.addTask {
        try? await Task.sleep(for: limit)
        // Once the client is connected, the time limit no longer applies.
        while await service.outcome?.player.hasBegun == true, !Task.isCancelled {
          try? await Task.sleep(for: .milliseconds(200))
        }
      }
      _ = await group.next()
      group.cancelAll()
    }
  }
}
