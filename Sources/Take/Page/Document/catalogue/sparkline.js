// Traffic over time as a sparkline.

const svgSpace = "http://www.w3.org/2000/svg";

export function sparkline(values) {
  const svg = document.createElementNS(svgSpace, "svg");
  svg.setAttribute("viewBox", "0 0 120 22");
  svg.setAttribute("width", "120");
  svg.setAttribute("height", "22");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", "Bytes on the wire over time");
  if (!values) return svg;
  const most = Math.max(1, ...values);
  const path = document.createElementNS(svgSpace, "path");
  path.setAttribute("d", values.map((value, index) =>
    `${index ? "L" : "M"}${(index * 120) / (values.length - 1)} ${20 - (value / most) * 18}`).join(""));
  path.setAttribute("class", "spark");
  svg.append(path);
  return svg;
}
