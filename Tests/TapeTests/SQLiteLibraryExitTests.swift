import CSQLite
import Testing

@testable import Tape

struct SQLiteLibraryExitTests {
  @Test func aProgramMayLeaveMemoryUncounted() async {
    await #expect(processExitsWith: .success) {
      SQLiteLibrary.countNoMemory()
      let connection = try SQLiteConnection(path: ":memory:", mode: .readWrite)
      try connection.execute("CREATE TABLE a (b)")
      #expect(sqlite3_memory_used() == 0)
    }
  }
}
