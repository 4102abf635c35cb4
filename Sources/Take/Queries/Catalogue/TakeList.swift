import Glibc
package import Tape
import Wire

/// The takes that paths name: files, and all `.take` files below folders, each once.
///
/// Every verb that works on several takes lists them here.
package struct TakeList: Sendable {
  /// One take.
  package struct Entry: Sendable, Hashable {
    /// The take as a command finds it from where it runs.
    package var path: String
    /// The folder that was named, or that of the file; `.` for the present one.
    package var folder: String
    /// The take's name below that folder.
    package var name: String
  }

  package private(set) var entries: [Entry] = []
  /// Folders that are listed whole, so that what a catalogue knows besides is gone.
  package private(set) var wholeFolders: [String] = []
  /// The paths that were named, for sentences about all of them.
  package let title: String

  /// Lists takes.
  ///
  /// - Throws: where a path leads nowhere, or no take is there.
  package init(_ paths: [String]) throws(TapeError) {
    self.init(present: paths)
    for path in paths where FileBytes.kind(of: path) == nil {
      throw TapeError(
        path: path, place: "", reason: "there is no such file or folder", kind: .missing)
    }
    guard !entries.isEmpty else {
      throw TapeError(
        path: title, place: "", reason: "there is no take in it; takes end in .take", kind: .missing
      )
    }
  }

  /// Lists what is there at this moment, which may be nothing.
  ///
  /// - Parameter limit: how many takes of each folder are listed.
  package init(present paths: [String], limit: Int = .max) {
    title = paths.joined(separator: " ")
    var seen: Set<String> = []
    for path in paths {
      guard FileBytes.kind(of: path) == .folder else {
        let folder = FileBytes.folder(of: path)
        let entry = Entry(
          path: path, folder: folder.isEmpty ? "." : folder, name: FileBytes.name(of: path))
        if seen.insert(path).inserted { entries.append(entry) }
        continue
      }
      var folder = path[...]
      while folder.hasSuffix("/"), folder != "/" { folder.removeLast() }
      let prefix = folder == "/" ? "/" : folder + "/"
      let names = FileBytes.names(below: path).filter { $0.hasSuffix(".take") }
      if names.count <= limit { wholeFolders.append(String(folder)) }
      for name in names.prefix(limit) where seen.insert(prefix + name).inserted {
        entries.append(Entry(path: prefix + name, folder: String(folder), name: name))
      }
    }
  }

  /// The folders of the entries, each once and in their order, with the entries of each.
  var groups: [(folder: String, entries: [Entry])] {
    var groups: [(folder: String, entries: [Entry])] = []
    var places: [String: Int] = [:]
    for entry in entries {
      if let place = places[entry.folder] {
        groups[place].entries.append(entry)
      } else {
        places[entry.folder] = groups.count
        groups.append((entry.folder, [entry]))
      }
    }
    return groups
  }
}

/// What tells that a file is another one than before: its size, its times and its number, with
/// those of the log beside it.
///
/// The time of its last change of any kind cannot be set by whoever made the file, so that a
/// catalogue that came from elsewhere with its takes is believed nothing.
package struct TakeStamp: Hashable, Sendable {
  /// One line; empty where there is no such file.
  package let text: String

  package init(path: String) {
    text = [path, path + "-wal"].map { path in
      var status = stat()
      guard stat(path.systemPath, &status) == 0 else { return "" }
      let (written, changed) = (status.st_mtim, status.st_ctim)
      return "\(status.st_size) \(written.tv_sec).\(written.tv_nsec) "
        + "\(changed.tv_sec).\(changed.tv_nsec) \(status.st_dev) \(status.st_ino)"
    }.joined(separator: "|")
  }
}
