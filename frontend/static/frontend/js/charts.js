// @ts-check
/** Draws the figures of a page with Plotly and draws them again when the theme changes. */
import { inkedLayout, inkedTrace } from "./figures.js";

// Where the system sets the colours, every ink would be that of text: grounds and hairlines have words of their own.
const FORCED = { surface: "Canvas", page: "Canvas", "accent-soft": "Canvas", "margin-2": "Canvas", line: "GrayText", candidate: "LinkText" };

/**
 * Inks as Plotly can read them: the browser resolves `light-dark()` and `oklch()` to plain RGB on a canvas.
 * @returns {(token: string) => string}
 */
function inks() {
  const probe = document.createElement("span");
  document.body.append(probe);
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 1;
  const paint = canvas.getContext("2d", { willReadFrequently: true });
  const isForced = matchMedia("(forced-colors: active)").matches;
  return (token) => {
    if (token === "sans") return getComputedStyle(document.documentElement).fontFamily;
    probe.style.color = (isForced && FORCED[/** @type {"page"} */ (token)]) || `var(--${token})`;
    if (!paint) return getComputedStyle(probe).color;
    paint.clearRect(0, 0, 1, 1);
    paint.fillStyle = getComputedStyle(probe).color;
    paint.fillRect(0, 0, 1, 1);
    const [red, green, blue] = paint.getImageData(0, 0, 1, 1).data;
    return `rgb(${red}, ${green}, ${blue})`;
  };
}

/** @param {HTMLElement} place */
export function mount(place) {
  const source = document.getElementById(place.dataset.figure ?? "");
  const plotly = /** @type {any} */ (window).Plotly;
  if (!source?.textContent || !plotly) return; // the table under the chart has the same numbers
  const figure = JSON.parse(source.textContent);
  const draw = async () => {
    const ink = inks();
    const data = figure.data.map((/** @type {any} */ trace) => inkedTrace(trace, ink));
    return plotly.react(place, data, inkedLayout(figure.layout, ink, place.clientWidth), { displayModeBar: false, responsive: true, scrollZoom: false, showTips: false });
  };
  void draw().then(() => listen(place));
  document.addEventListener("themechange", draw);
  for (const change of ["(prefers-color-scheme: dark)", "(forced-colors: active)", "(max-width: 759px)"]) {
    matchMedia(change).addEventListener("change", draw);
  }
}

/** A click on a mark leads to its page, or says to this one which position it stands for. @param {any} place */
function listen(place) {
  place.on("plotly_click", (/** @type {any} */ event) => {
    const [point] = event.points;
    if (typeof point?.customdata === "string") location.assign(point.customdata);
    else if (point?.customdata !== undefined) place.dispatchEvent(new CustomEvent("pick", { bubbles: true, detail: point.customdata }));
  });
}

document.querySelectorAll("[data-figure]").forEach((place) => mount(/** @type {HTMLElement} */ (place)));
