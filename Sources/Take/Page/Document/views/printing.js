// The printed page: in light colours, with every lane of every group.
import { showAllLanes } from "../board/board.js";
import { canvases } from "../lanes/draw.js";

/** Printed pixels are smaller than the pixels of most displays. */
const paperRatio = 2;

/** Shows all lanes in light colours while the page is printed. */
export function listenToPrinting() {
  const root = document.documentElement;
  let former = null;
  window.addEventListener("beforeprint", () => {
    former ??= { scheme: root.style.colorScheme, top: window.scrollY };
    root.style.colorScheme = "light";
    root.classList.add("paper");
    canvases.leastRatio = paperRatio;
    showAllLanes(true);
  });
  window.addEventListener("afterprint", () => {
    if (!former) return;
    root.style.colorScheme = former.scheme;
    root.classList.remove("paper");
    canvases.leastRatio = 1;
    showAllLanes(false);
    window.scrollTo(0, former.top);
    former = null;
  });
}
