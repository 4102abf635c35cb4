import Foundation

/// A process's resource usage, as counted by the system.
struct ProcessUsage: CustomStringConvertible {
  /// Resident memory in bytes.
  var memory = 0
  var descriptors = 0
  var threads = 0

  /// Reads a running process's usage; counts that cannot be read are 0.
  init(of process: Int32) {
    let status = (try? String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)) ?? ""
    func number(_ name: String) -> Int {
      let line = status.split(separator: "\n").first { $0.hasPrefix(name + ":") }
      return line.flatMap { Int($0.filter(\.isNumber)) } ?? 0
    }
    memory = number("VmRSS") << 10
    threads = number("Threads")
    let open = try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/fd")
    descriptors = open?.count ?? 0
  }

  var description: String {
    "\(memory >> 20) MB, \(descriptors) descriptors, \(threads) threads"
  }
}
