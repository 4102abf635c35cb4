/// A date and time of day as written by browsers, servers and log collectors.
///
/// It may have the form of ISO 8601, of JavaScript's `Date` or of one of many locales, or consist
/// of a time of day alone.
struct ReportedDate: Hashable, Sendable {
  /// Unix time in milliseconds; for a time of day, since midnight.
  var unixMilliseconds: Double
  /// Whether no time zone is stated, in which case the time is in the writer's zone.
  var isLocal: Bool
  /// Whether a day is stated.
  var hasDay: Bool

  /// The maximum length of a date in bytes.
  private static let longest = 120

  /// Parses a date with nothing but words before or after it; fails for anything else.
  ///
  /// A date with slashes and an upper-case `AM` or `PM` has the month first, as in the United
  /// States: `6/3/2026, 9:09:02 AM`. Other locales write `am` and `pm`, or neither. A number that
  /// cannot be a month is a day in any case.
  init?(_ text: some StringProtocol) {
    guard text.utf8.count <= Self.longest, let parts = Self.parts(of: text) else { return nil }
    guard let clock = Self.clock(in: parts.numbers) else { return nil }
    let (numbers, words) = (parts.numbers, parts.words)
    var hour = numbers[clock].value
    if let isLate = Self.isLate(words), hour <= 12 {
      // 12 AM is midnight, and 12 PM is noon.
      hour = (hour == 12 ? 0 : hour) + (isLate ? 12 : 0)
    }
    let (minute, second) = (numbers[clock + 1].value, numbers[clock + 2].value)
    guard hour < 25, minute < 60, second < 62 else { return nil }
    var rest = numbers[(clock + 3)...]
    var milliseconds = Double((hour * 60 + minute) * 60 + second) * 1000
    if let part = rest.first, part.before == "." || part.before == ",", part.digits <= 12 {
      let unitsPerSecond = (0..<part.digits).reduce(1.0) { units, _ in units * 10 }
      milliseconds += Double(part.value) * 1000 / unitsPerSecond
      rest = rest.dropFirst()
    }
    var zone: Int64? = words.contains { ["z", "utc", "gmt"].contains($0) } ? 0 : nil
    if let part = rest.first, part.before == "+" || part.before == "-" || part.before == "−" {
      guard let offset = Self.offset(rest) else { return nil }
      zone = part.before == "+" ? offset : -offset
      rest = rest.dropFirst(part.digits <= 2 && rest.count > 1 ? 2 : 1)
    }
    let day = clock > 0 ? numbers[..<clock] : rest
    guard clock == 0 || rest.isEmpty else { return nil }
    isLocal = zone == nil
    hasDay = !day.isEmpty
    guard hasDay else {
      unixMilliseconds = milliseconds
      return
    }
    let isAmerican = parts.isUpperHalf && day.dropFirst().first?.before == "/"
    guard let days = Self.days(Array(day), words, isMonthFirst: isAmerican) else { return nil }
    unixMilliseconds = Double(days * 1440 - (zone ?? 0)) * 60_000 + milliseconds
  }

  /// Parses a date as Unix time in milliseconds, or a time of day as milliseconds since midnight;
  /// nil for anything else.
  static func milliseconds(_ text: String) -> Double? { Self(text)?.unixMilliseconds }

  // MARK: Parts

  private struct Number {
    var value: Int64
    var digits: Int
    /// The last character other than a space since the previous number, with `a` standing for any
    /// letter; nil if there is none.
    var before: Character?
  }

  private struct Parts {
    var numbers: [Number] = []
    /// Words in lower case, without dots.
    var words: [String] = []
    /// Whether the half of the day is written in upper case, as `AM` or `PM`.
    var isUpperHalf = false
  }

  /// Splits text into numbers and words; nil if it has too many of them to be a date.
  private static func parts(of text: some StringProtocol) -> Parts? {
    var parts = Parts()
    var (word, before) = ("", Character?.none)
    var number: Number?
    func close() {
      if let number { parts.numbers.append(number) }
      number = nil
      guard !word.isEmpty else { return }
      if word == "AM" || word == "PM" { parts.isUpperHalf = true }
      parts.words.append(word.lowercased())
      word = ""
    }
    for scalar in text.unicodeScalars {
      if let digit = digit(scalar) {
        if !word.isEmpty { close() }
        var open = number ?? Number(value: 0, digits: 0, before: before)
        guard open.digits < 18 else { return nil }
        (open.value, open.digits) = (open.value * 10 + digit, open.digits + 1)
        number = open
        before = nil
        continue
      }
      // Some locales put writing direction marks between the numbers.
      if ["\u{200e}", "\u{200f}"].contains(scalar) { continue }
      if number != nil { close() }
      if scalar.properties.isAlphabetic {
        word.unicodeScalars.append(scalar)
        before = "a"
      } else if scalar == ".", !word.isEmpty {
        // `a.m.` is one word.
        before = "."
      } else {
        if !scalar.properties.isWhitespace { before = Character(scalar) }
        if !(word == "a" || word == "p") { close() }
      }
      guard parts.numbers.count <= 9, parts.words.count <= 9 else { return nil }
    }
    close()
    return parts
  }

  /// Returns the value of a decimal digit of any script; nil for other characters.
  private static func digit(_ scalar: Unicode.Scalar) -> Int64? {
    guard scalar.properties.numericType == .decimal, let value = scalar.properties.numericValue
    else { return nil }
    return Int64(value)
  }

  /// Returns the index of the hour, after which minutes and seconds follow colons or, in a few
  /// locales, dots; nil if there is no time.
  private static func clock(in numbers: [Number]) -> Int? {
    guard numbers.count >= 3 else { return nil }
    func follows(_ place: Int, _ mark: Character) -> Bool {
      numbers[place + 1].before == mark && numbers[place + 2].before == mark
        && numbers[place].digits <= 2 && numbers[place + 1].digits == 2
        && numbers[place + 2].digits == 2
    }
    if let place = (0...(numbers.count - 3)).first(where: { follows($0, ":") }) { return place }
    return numbers.count >= 6 && follows(3, ".") ? 3 : nil
  }

  /// Returns whether words name the second half of the day; nil if they name none.
  private static func isLate(_ words: [String]) -> Bool? {
    if words.contains(where: { ["pm", "下午", "午後", "오후", "م"].contains($0) }) { return true }
    return words.contains { ["am", "上午", "午前", "오전", "ص"].contains($0) } ? false : nil
  }

  /// Converts a zone's offset, such as `0200`, `02:00` or `2`, to minutes; nil if it exceeds a day.
  private static func offset(_ parts: ArraySlice<Number>) -> Int64? {
    guard let first = parts.first else { return nil }
    let minutes =
      first.digits > 2
      ? first.value / 100 * 60 + first.value % 100
      : first.value * 60 + (parts.dropFirst().first?.value ?? 0)
    return minutes <= 24 * 60 ? minutes : nil
  }

  // MARK: Days

  private static let months = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
  ]

  /// Converts a date's numbers to days since 1970; nil if they are not a date.
  private static func days(
    _ parts: [Number], _ words: [String], isMonthFirst: Bool
  ) -> Int64? {
    let values = parts.map(\.value)
    let name = words.compactMap { word in months.firstIndex(of: String(word.prefix(3))) }.first
    if values.count == 2, let name {
      // A month by name: `Wed Jun 03 2026`, as JavaScript writes it in every locale, or with the
      // day or the year first.
      let isYearFirst = parts[0].digits == 4
      return days(values[isYearFirst ? 0 : 1], Int64(name) + 1, values[isYearFirst ? 1 : 0])
    }
    guard values.count == 3 else { return nil }
    if parts[0].digits == 4 { return days(values[0], values[1], values[2]) }
    var (day, month) = (values[0], values[1])
    if month > 12 || (isMonthFirst && day <= 12) { (day, month) = (month, day) }
    return days(parts[2].digits == 2 ? 2000 + values[2] : values[2], month, day)
  }

  /// Converts a Gregorian date, counting years from March so that leap days come last.
  private static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64? {
    guard (1970...2200).contains(year), (1...12).contains(month), (1...31).contains(day) else {
      return nil
    }
    let years = month > 2 ? year : year - 1
    let monthFromMarch = (month + 9) % 12
    return years * 365 + years / 4 - years / 100 + years / 400 + (monthFromMarch * 153 + 2) / 5
      + day - 719_469
  }
}
