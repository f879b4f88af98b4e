// @ts-check
/** Draws the figures of a page with Plotly and draws them again when the theme changes. */
import { inkedLayout, inkedTrace } from "./figures.js";

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
  return (token) => {
    if (token === "sans") return getComputedStyle(document.documentElement).fontFamily;
    probe.style.color = `var(--${token})`;
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
  const draw = () => {
    const ink = inks();
    const data = figure.data.map((/** @type {any} */ trace) => inkedTrace(trace, ink));
    return plotly.react(place, data, inkedLayout(figure.layout, ink), { displayModeBar: false, responsive: true, scrollZoom: false, showTips: false });
  };
  void draw();
  document.addEventListener("themechange", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
}

document.querySelectorAll("[data-figure]").forEach((place) => mount(/** @type {HTMLElement} */ (place)));
