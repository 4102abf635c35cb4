import CProcess

/// The memory of the process.
public enum ProcessMemory {
  /// Returns free memory to the system.
  ///
  /// The C library keeps freed memory for later, scattered over the threads' arenas; a recorder
  /// that had many calls at once would look as if it still had them.
  public static func trim() { cprocess_memory_trim() }
}
