import Stats
import Tape

/// The answer of a query as the page's script reads it: curves or lanes by peer and name.
struct PageParts {
  private struct Part {
    var peer: Int64
    var name: String
    var items: [String] = []
  }

  private let form: PageQuery.Form
  private var parts: [Part] = []

  init(_ form: PageQuery.Form) { self.form = form }

  /// Adds the row that a statement stands on; rows of one peer and name follow each other.
  mutating func add(_ row: borrowing SQLiteStatement) {
    let (peer, name, from) = row.values(Int64.self, String.self, Double.self)
    if parts.last?.peer != peer || parts.last?.name != name {
      parts.append(Part(peer: peer, name: name))
    }
    let first = number(from)
    switch form {
    case .curves:
      guard let value = row.values(from: 3, Double?.self) else { return }
      parts[parts.count - 1].items.append("[\(first),\(number(value))]")
    case .lanes:
      let (to, text) = row.values(from: 3, Double.self, String.self)
      parts[parts.count - 1].items.append("[\(first),\(number(to)),\(jsonString(text))]")
    }
  }

  /// To thousandths, which is more than a page can show.
  private func number(_ value: Double) -> String {
    StatsValue.number((value * 1e3).rounded() / 1e3).json
  }

  /// The members of a JSON object; nil when there is nothing to draw.
  var json: String? {
    let drawn = parts.filter { !$0.items.isEmpty }
    guard !drawn.isEmpty else { return nil }
    let list = drawn.map {
      """
      {"peer":\($0.peer),"name":\(jsonString($0.name)),"items":[\($0.items.joined(separator: ","))]}
      """
    }
    let parts = "\"parts\":[" + list.joined(separator: ",") + "]"
    switch form {
    case .lanes: return "\"form\":\"lanes\"," + parts
    case .curves(let unit, let isCounted):
      return "\"form\":\"curves\",\"unit\":\(jsonString(unit)),\"isCounted\":\(isCounted)," + parts
    }
  }
}
