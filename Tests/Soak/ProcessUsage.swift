import Foundation

/// What a process holds, as the system counts it.
struct ProcessUsage: CustomStringConvertible {
  /// Resident memory in bytes.
  var memory = 0
  var descriptors = 0
  var threads = 0

  /// Reads the counts of a running process.
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
