import ArgumentParser
import FoundationEssentials
import Observer
import Tape

/// The format of a file that is imported.
enum ImportFormat: Hashable, ExpressibleByArgument {
  case capture
  case reported(ReportedFormat)

  init?(argument: String) {
    if argument == "capture" {
      self = .capture
    } else if let format = ReportedFormat(rawValue: argument) {
      self = .reported(format)
    } else {
      return nil
    }
  }

  static var allValueStrings: [String] { ["capture"] + ReportedFormat.allCases.map(\.rawValue) }
}

/// A file of reports that is imported.
struct ImportSource {
  let text: SpooledText
  let format: ReportedFormat

  /// Looks at a file; nil for a packet capture, and for what may be one.
  ///
  /// Standard input is a capture unless the format is named, as it can be read once only.
  init?(_ path: String, _ format: ImportFormat?) throws {
    switch format {
    case .capture: return nil
    case .reported(let format):
      text = try SpooledText(path)
      self.format = format
    case nil:
      guard path != "-", let head = try Self.head(of: path), ReportedFormat(head: head) != nil
      else {
        return nil
      }
      text = try SpooledText(path)
      guard let format = ReportedFormat(head: head) else { return nil }
      self.format = format
    }
  }

  /// The first bytes of a file, decompressed; nil where nothing can be read, which the reader of
  /// captures says in its words.
  private static func head(of path: String) throws -> [UInt8]? {
    guard FileBytes.kind(of: path) == .file,
      case .success(let bytes) = FileBytes.read(path, atMost: 64 << 10)
    else { return nil }
    guard let format = Decompression.Format(bytes) else { return bytes }
    var head: [UInt8] = []
    do {
      try Decompression(format).expand(bytes) { head += $0 }
    } catch is Decompression.Damage {
      return head.isEmpty ? nil : head
    }
    return head
  }
}
