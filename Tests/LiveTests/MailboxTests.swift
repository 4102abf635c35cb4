import Live
import Testing

struct MailboxTests {
  @Test func messagesFromManyTasksAllArriveAndEachTasksKeepTheirOrder() async throws {
    let mailbox = try Mailbox<(task: Int, index: Int)>()
    await withTaskGroup(of: Void.self) { group in
      for task in 0..<8 {
        group.addTask {
          for index in 0..<1000 { #expect(mailbox.post((task, index))) }
        }
      }
    }
    let messages = mailbox.removeAll()
    #expect(messages.count == 8000)
    for task in 0..<8 {
      #expect(messages.filter { $0.task == task }.map(\.index) == Array(0..<1000))
    }
    #expect(mailbox.removeAll().isEmpty)
  }

  @Test func aClosedMailboxDeliversWhatWaitsAndAcceptsNothing() throws {
    let mailbox = try Mailbox<Int>()
    #expect(mailbox.post(1))
    #expect(mailbox.close() == [1])
    #expect(!mailbox.post(2))
    #expect(mailbox.removeAll().isEmpty)
  }
}
