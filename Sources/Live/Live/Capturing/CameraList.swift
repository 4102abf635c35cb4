import FoundationEssentials
import Wire

/// The cameras of the system (V4L2), in the order of their numbers.
///
/// Many cameras have a second node for metadata; the system numbers the nodes of a device, and the
/// first one is the camera.
package enum CameraList {
  /// The device files of the cameras: the first is the front one, the second the back one.
  /// - Parameters:
  ///   - system: the folder in which the system lists its devices.
  ///   - devices: the folder of their files.
  package static func paths(
    system: String = "/sys/class/video4linux", devices: String = "/dev"
  ) -> [String] {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: system)) ?? []
    let numbered = names.compactMap { name -> (number: Int, name: String)? in
      guard name.hasPrefix("video"), let number = Int(name.dropFirst(5)) else { return nil }
      return (number, name)
    }
    return numbered.sorted { $0.number < $1.number }.compactMap { entry in
      let index = try? String(contentsOfFile: "\(system)/\(entry.name)/index", encoding: .utf8)
      let isFirst = index.map { $0.trimmed == "0" } ?? true
      let path = "\(devices)/\(entry.name)"
      return isFirst && FileManager.default.fileExists(atPath: path) ? path : nil
    }
  }

  /// The device file for a position; the conventional one if the system lists none.
  package static func path(of position: CameraPosition, in paths: [String]) -> String {
    let number = position == .front ? 0 : 1
    return number < paths.count ? paths[number] : "/dev/video\(number)"
  }
}
