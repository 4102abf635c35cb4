import Foundation
import Tape

/// A folder for takes of machines used only in these tests.
final class MachineFolder {
  let path = FileManager.default.temporaryDirectory.path + "/machine-" + UUID().uuidString

  init() throws {
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  func file(_ name: String) -> String { path + "/" + name }

  func writer(_ name: String) throws -> TapeWriter {
    var options = TapeWriter.Options()
    options.waitsForDisk = true
    options.toolchain = try Toolchain.current(for: name)
    return try TapeWriter(path: file(name), options: options)
  }

  /// Records a counter with a few steps; returns the take's path.
  func recordCounter(_ name: String, label: String = "sum") throws -> String {
    let driver = CounterDriver(try writer(name))
    let counter = driver.add(label, limit: 10)
    for number in [1, 2, 3] { driver.step(counter, .add(number)) }
    driver.wait()
    for number in [4, 5] { driver.step(counter, .add(number)) }
    _ = try driver.writer.finish()
    return file(name)
  }
}
