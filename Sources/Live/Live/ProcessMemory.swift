import CProcess

/// What the process holds of the system's memory.
public enum ProcessMemory {
  /// Gives memory that is free back to the system.
  ///
  /// The C library keeps what was freed for later, scattered over the threads' arenas; a recorder
  /// that had many calls at once would look as if it still had them.
  public static func trim() { cprocess_memory_trim() }
}
