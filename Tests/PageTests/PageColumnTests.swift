import Testing

@testable import Page

struct PageColumnTests {
  @Test(arguments: [PageColumn.Coding.values, .steps])
  func numbersComeBack(coding: PageColumn.Coding) {
    let numbers: [Int64] = [0, 1, -1, 63, 64, -65, 1 << 20, -(1 << 40), .max, .min, .max, 0, 7]
    var column = PageColumn(coding)
    for number in numbers { column.append(number) }
    let series = PageData.Series(
      what: "", count: numbers.count, columns: ["a": [0, column.bytes.count, coding.rawValue]])
    #expect(PageData.numbers(series, "a", in: column.bytes) == numbers)
  }

  @Test func aDrainedColumnRestarts() {
    var column = PageColumn(.steps)
    column.append(1000)
    let drained = column.drain()
    #expect(drained.count == 1)
    column.append(1000)
    #expect(column.count == 1 && column.bytes == [0xd0, 0x0f])
  }

  @Test func compressedBytesAreARawStream() throws {
    let bytes = [UInt8](repeating: 7, count: 100_000)
    let packed = try #require(Deflate.compressed(bytes))
    #expect(packed.count < 1000)
    #expect(Deflate.compressed([]) != nil)
  }
}

struct LossLogTests {
  private func fates(_ log: LossLog) -> [(sequence: Int64, fate: Int64)] {
    let columns = log.columns
    func numbers(_ index: Int) -> [Int64] {
      let column = columns[index].column
      let series = PageData.Series(
        what: "", count: column.count,
        columns: ["a": [0, column.bytes.count, column.coding.rawValue]])
      return PageData.numbers(series, "a", in: column.bytes)
    }
    return zip(numbers(1), numbers(2)).map { ($0, $1) }
  }

  @Test func aGapIsLostUntilSomethingFillsIt() {
    var log = LossLog()
    for (sequence, time) in [(10, 0), (11, 0), (15, 6000)] as [(Int64, Int64)] {
      log.came(sequence: sequence, rtpTime: time, at: sequence)
    }
    #expect(fates(log).map(\.fate) == [0, 0, 0])
    log.came(sequence: 13, rtpTime: 3000, at: 20)
    #expect(fates(log).map(\.fate) == [0, 2, 0])
    let isRepaired = log.repaired(rtpTime: 3000)
    #expect(isRepaired)
    #expect(fates(log).map(\.fate) == [0, 2, 1])
    let isOther = log.repaired(rtpTime: 9000)
    #expect(!isOther)
  }

  @Test func numbersAndTimesContinueAcrossWraps() {
    var log = LossLog()
    log.came(sequence: 65_534, rtpTime: 4_294_966_000, at: 1)
    log.came(sequence: 1, rtpTime: 1704, at: 2)
    #expect(fates(log).map(\.sequence) == [65_535, 0])
    let isRepaired = log.repaired(rtpTime: 200)
    #expect(isRepaired)
    log.came(sequence: 65_535, rtpTime: 4_294_966_000, at: 3)
    #expect(fates(log).map(\.fate) == [2, 1])
  }

  /// Losses before and after a small restart are counted; the repeated numbers fill no gap.
  @Test func aRestartByAFewNumbersIsNoLoss() {
    var log = LossLog()
    let numbers = [Int64](0..<100) + [Int64](40..<160)
    for (place, number) in numbers.enumerated() where place != 50 && place != 130 {
      log.came(sequence: number, rtpTime: Int64(place) * 160, at: Int64(place))
    }
    #expect(fates(log).map(\.sequence) == [50, 70] && fates(log).map(\.fate) == [0, 0])
  }

  @Test func anotherBeginningIsNoLoss() {
    var log = LossLog()
    log.came(sequence: 100, rtpTime: 0, at: 1)
    log.came(sequence: 20_000, rtpTime: 0, at: 2)
    log.came(sequence: 20_001, rtpTime: 0, at: 3)
    #expect(fates(log).isEmpty)
    // Jumps back and forth do not fill memory.
    for turn in 0..<200 as Range<Int64> {
      log.came(sequence: turn * 2_900 & 0xffff, rtpTime: turn, at: turn)
    }
    #expect(fates(log).count <= 100_000 + 3_000)
  }
}
