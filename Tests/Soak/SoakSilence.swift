import ArgumentParser
import Foundation
import Glibc
import Live

/// Checks that requests that start but never end do not block a call.
struct SoakSilence: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "silence", abstract: "Hold half-sent requests, and make a call.")

  @OptionGroup var options: SoakOptions
  @Option(help: "How many requests.")
  var requests = 300

  func run() async throws {
    let folder = try options.prepared()
    let recorder = try await options.recorder(folder, "silence", usesFolder: false)
    guard let port = recorder.url.split(separator: ":").last.flatMap({ UInt16($0) }) else {
      throw SoakFailure("the recorder has no port")
    }
    let sockets = (0..<requests).map { _ in halfSentRequest(port) }
    let begin = Date()
    var caller = Caller(try options.session(), recorder)
    try await caller.call(sounds: false)
    let seconds = Date().timeIntervalSince(begin)
    print(String(format: "a call began in %.3f s beside %d half-sent requests", seconds, requests))
    await caller.hangUp()
    for socket in sockets { close(socket) }
    try await recorder.finish()
    guard seconds < 1 else { throw SoakFailure("it took more than a second") }
  }

  /// Opens a connection and sends half a request.
  private func halfSentRequest(_ port: UInt16) -> Int32 {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    _ = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    let half = "POST /offer HTTP/1.1\r\nHost: localhost\r\nContent-Len"
    _ = half.withCString { send(descriptor, $0, strlen($0), 0) }
    return descriptor
  }
}
