import Foundation
import Testing

@testable import Page

struct PageScriptTests {
  @Test func theModulesOfThePageAreJoinedWithoutAProblem() {
    let script = PageScript.page
    #expect(script.problems == [])
    let lines = script.text.split(separator: "\n")
    #expect(!lines.contains { $0.hasPrefix("import ") || $0.hasPrefix("export ") })
    // Anything declared outside a module would be visible to all modules.
    let outside = lines.filter { $0.hasPrefix("const module") || $0 == "})();" }
    #expect(outside.count == 2 * PageScript.modules.count)
    #expect(!script.text.contains("</script"))
  }

  @Test func everyModuleOfTheFolderIsInTheProgram() throws {
    let folder = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "../../Sources/Take/Page/Document").standardizedFileURL
    let files = try FileManager.default.subpathsOfDirectory(atPath: folder.path)
      .filter { $0.hasSuffix(".js") }
    #expect(Set(files) == Set(PageScript.modules.keys))
  }

  @Test func importsAreConstantsOfTheModulesThatExportThem() {
    let script = PageScript(
      of: "main.js",
      in: [
        "main.js": """
        // Not in the script.
        import {
          one, two as second,
        } from "./parts/numbers.js";
        import { Sum } from "./parts/sum.js";
        console.log(new Sum(one, second()));
        """,
        "parts/numbers.js": """
        /** Not in the script either. */
        export const one = 1;
        export async function two() { return 2; }
        const hidden = 3;
        """,
        "parts/sum.js": """
        import { one } from "./numbers.js";
        export class Sum {
          /**
           * Nor this.
           */
          zero = one - 1;
        }
        export function* all() {}
        """,
      ])
    #expect(script.problems == [])
    #expect(
      script.text == """
        const module0 = (() => {
        const one = 1;
        async function two() { return 2; }
        const hidden = 3;
        return { one, two };
        })();
        const module1 = (() => {
        const { one } = module0;
        class Sum {
          zero = one - 1;
        }
        function* all() {}
        return { Sum, all };
        })();
        const module2 = (() => {
        const {  one, two: second,} = module0;
        const { Sum } = module1;
        console.log(new Sum(one, second()));
        })();

        """)
  }

  @Test(arguments: [
    ("import { a } from \"./b.js\";", "main.js imports what imports it"),
    ("import { a } from \"./c.js\";", "there is no module c.js"),
    ("import b from \"./b.js\";", "main.js imports in another form"),
    ("export let a = 1;", "main.js exports in another form"),
    ("export const { a } = {};", "main.js exports in another form"),
    ("export default 1;", "main.js exports in another form"),
  ])
  func modulesThatCannotBeJoinedAreNamed(line: String, problem: String) {
    let script = PageScript(
      of: "main.js",
      in: ["main.js": line + "\n", "b.js": "import { a } from \"./main.js\";\n"])
    #expect(script.problems.contains { $0.hasPrefix(problem) }, "\(script.problems)")
  }
}
