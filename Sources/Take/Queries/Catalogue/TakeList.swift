import Glibc
package import Tape
import Wire

/// The takes named by paths: files, and all `.take` files below folders, without duplicates.
///
/// Every subcommand that works on several takes uses this list.
package struct TakeList: Sendable {
  /// A take in the list, with the path that the user named and the path that its catalogue stores.
  package struct Entry: Sendable, Hashable {
    /// The path that opens the take: the path that the user named, or a path below the folder that
    /// the user named.
    package var path: String
    /// The folder that the user named, or the file's folder; `.` for the working directory.
    package var folder: String
    /// The path relative to `folder`.
    package var name: String
  }

  package private(set) var entries: [Entry] = []
  /// Folders that are listed completely; any other entries in their catalogues are obsolete.
  package private(set) var wholeFolders: [String] = []
  /// The paths as the user named them, for messages.
  package let title: String

  /// Lists the takes that paths name.
  ///
  /// - Throws: if a path does not exist or no take is found.
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

  /// Lists takes without checking whether the named paths exist; there may be none.
  ///
  /// - Parameter limit: the maximum number of takes per folder.
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

  /// The entries grouped by folder, in order.
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

/// Detects changes to a file by the size, times and inode of the file and its write-ahead log.
///
/// A file's author cannot set the time of the last status change, so a catalogue that was copied
/// along with its takes is not trusted.
package struct TakeStamp: Hashable, Sendable {
  /// One line; `|` if neither the file nor its log exists.
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
