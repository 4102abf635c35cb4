import Testing

struct SwiftTextTests {
  @Test(arguments: [
    ("let a = 1 // b", "let a = 1     "),
    ("a /* b /* c */ d */ e", "a                   e"),
    ("a /* b\nc */ d", "a     \n     d"),
    (#"f("x // y") + 1"#, #"f(        ) + 1"#),
    (#"f("a\(g("b", c))d")"#, #"f(   (g(   , c))  )"#),
    (##"f(#"a\(b)"c"# , d)"##, ##"f(            , d)"##),
    (##"f(#"a\#(b)"#)"##, ##"f(     (b)  )"##),
    ("x = \"\"\"\n  a \"b\" c\n  \"\"\" + y", "x =    \n         \n      + y"),
    (#"a = "\"" + b"#, #"a =      + b"#),
    (#"a = "" + b"#, #"a =    + b"#),
    ("#if os(Linux)\n#endif", "#if os(Linux)\n#endif"),
    ("a = \"open\nb", "a =      \nb"),
  ])
  func onlyCodeIsKept(text: String, code: String) {
    #expect(SwiftText.code(of: text) == code)
  }

  @Test func linesStayInPlaceInEveryFile() {
    for file in SourceTree.sources where file.ending == "swift" {
      #expect(file.code.utf8.count { $0 == 10 } == file.text.utf8.count { $0 == 10 })
    }
  }
}
