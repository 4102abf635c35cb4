import Testing

struct PurityTests {
  /// Expressions that the core must not use, because their values differ between runs or machines.
  static let impure: [(expression: String, meaning: String)] = [
    (#"\b(?:ContinuousClock|SuspendingClock)\b"#, "a clock"),
    (#"(?<![\w.])(?<!func )(?:time|clock_gettime|gettimeofday|clock)\("#, "a clock"),
    (#"\bSystemRandomNumberGenerator\b"#, "randomness"),
    (#"\.(?:random|randomElement|shuffled|shuffle)\("#, "randomness"),
    (
      #"(?<![\w.])(?<!func )(?:rand|srand|random|arc4random\w*|getrandom|RAND_(?:priv_)?bytes)\("#,
      "randomness"
    ),
    (#"\bTask\b(?=\s*[.({])|\bawait\b|\bactor\b(?=\s+\w)|\basync\b"#, "concurrency"),
    (#"\b(?:pthread_\w+|Thread|DispatchQueue|Mutex)\b"#, "a thread"),
    (#"(?<![\w.])(?<!func )(?:print|debugPrint|dump|readLine|printf|fopen|puts)\("#, "I/O"),
    (#"\bCommandLine\b|(?<![\w.])(?:getenv|getpid|gethostname)\("#, "the process's identity"),
    (#"\.hashValue\b|\bHasher\(|\bObjectIdentifier\("#, "a value that each process makes anew"),
    (
      #"(?<![\w.])(?<!func )"#
        + #"(?:exp2?|expm1|log(?:2|10|1p)?|pow|sin|cos|tan|atan2?|tanh|cbrt|hypot)\("#,
      "a function that libraries round differently"
    ),
  ]

  @Test func theCoreIsPure() throws {
    let patterns = try Self.impure.map { try Pattern($0.expression, $0.meaning) }
    let files = Layers.core.flatMap(SourceTree.swift(of:))
    let findings = files.flatMap { file in patterns.flatMap { $0.findings(in: file) } }
    expectNone(findings, allowing: Exceptions.impurities)
  }

  @Test(arguments: [
    "let now = ContinuousClock.now", "let at = time(nil)", "Int.random(in: 0..<9)",
    "list.shuffled()", "Task { work() }", "let a = await b", "print(1)", "pow(2, x)",
    "let id = a.hashValue", "getenv(\"HOME\")", "RAND_bytes(&buffer, 4)", "x = log10(y)",
  ])
  func impuritiesAreFound(line: String) throws {
    let file = SourceFile(path: "Sources/Wire/A.swift", text: line)
    let patterns = try Self.impure.map { try Pattern($0.expression, $0.meaning) }
    #expect(patterns.contains { !$0.findings(in: file).isEmpty })
  }

  @Test(arguments: [
    "let time = frame.time(at: 3)", "timer.log(entry)", "func print(_ text: String)",
    "// print(1)", "\"await \\(name)\"", "value.squareRoot()", "let asynchronous = true",
    "entropy.randomBytes(4)", "let taskCount = 3",
  ])
  func harmlessCodeIsLeftAlone(line: String) throws {
    let file = SourceFile(path: "Sources/Wire/A.swift", text: line)
    let patterns = try Self.impure.map { try Pattern($0.expression, $0.meaning) }
    #expect(patterns.flatMap { $0.findings(in: file) } == [])
  }
}
