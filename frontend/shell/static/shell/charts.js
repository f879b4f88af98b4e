// @ts-check
/**
 * Draws the figures of a page with Plotly when they come into view or go on paper, and again when the theme changes.
 * A figure lies in the page as JSON, or in another one (`data-from`) that holds the table of its numbers as well.
 */
import { inkedLayout, inkedTrace, inReadersZone, withLegend } from "./figures.js";

// Where people explore (`data-explore`, the file's name of an export): Plotly's own buttons, and one that saves.
const BUTTONS = ["zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d"];
const AHEAD = "50% 0px"; // a chart is in view for us when it is less than half a window away

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

/** @type {Promise<any> | undefined} */
let loading;

/** Plotly, asked for with the first chart that is seen: until then nobody waits for it. */
function load() {
  loading ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = document.getElementById("plots")?.dataset.plotly ?? "";
    script.onload = () => resolve(/** @type {any} */ (window).Plotly);
    script.onerror = reject;
    document.head.append(script);
  });
  return loading;
}

/** What draws each figure that nobody has seen yet. @type {Map<HTMLElement, () => Promise<void>>} */
const unseen = new Map();

/** @param {HTMLElement} place */
export function mount(place) {
  const { figure: name = "", from } = place.dataset;
  if (!from && !document.getElementById(name)) return;
  /** @type {Promise<any> | undefined} */
  let reading;
  const read = () => (reading ??= from ? fetchFigure(from, name) : Promise.resolve(parseFigure(document, name)));
  const show = async () => {
    view.disconnect();
    unseen.delete(place);
    const [plotly, figure] = await Promise.all([load(), read()]);
    await draw(place, figure, plotly);
  };
  const view = new IntersectionObserver((entries) => {
    if (entries.some((entry) => entry.isIntersecting)) show().catch(() => undefined); // the table has the same numbers
  }, { rootMargin: AHEAD });
  view.observe(place);
  unseen.set(place, show);
  numbersOf(place)?.addEventListener("toggle", () => void read().catch(() => undefined)); // the link in it stays
}

/** @param {HTMLElement} place */
function numbersOf(place) {
  return place.closest("figure")?.querySelector("details");
}

/** @param {Document} page @param {string} name */
function parseFigure(page, name) {
  return JSON.parse(page.getElementById(name)?.textContent ?? "");
}

/**
 * A figure out of the page that holds it; its numbers take the place of the link that leads there.
 * @param {string} address @param {string} name
 */
async function fetchFigure(address, name) {
  const answer = await fetch(address, { headers: { Accept: "text/html" } });
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const figure = parseFigure(page, name); // nothing of a page that says why there is none is taken over
  const numbers = `${name}-numbers`;
  document.getElementById(numbers)?.replaceWith(document.adoptNode(/** @type {HTMLElement} */ (page.getElementById(numbers))));
  return figure;
}

/** Printing from the keyboard waits for what is not drawn yet. From the browser's menu it cannot, so tables stand in. */
function mountPrint() {
  document.addEventListener("keydown", (event) => {
    if (event.key !== "p" || !(event.ctrlKey || event.metaKey) || event.shiftKey || event.altKey || !unseen.size) return;
    event.preventDefault();
    void Promise.allSettled([...unseen.values()].map((show) => show())).then(() => window.print());
  });
  window.addEventListener("beforeprint", () => {
    for (const place of unseen.keys()) numbersOf(place)?.setAttribute("open", "");
  });
}

/** @param {HTMLElement} place @param {any} figure @param {any} plotly */
function draw(place, figure, plotly) {
  const local = inReadersZone(figure);
  const { explore } = place.dataset;
  const paint = async () => {
    const ink = inks();
    const data = local.data.map((/** @type {any} */ trace) => inkedTrace(trace, ink));
    const layout = inkedLayout(local.layout, ink, place.clientWidth, explore !== undefined);
    const buttons = () => [[...BUTTONS, saveButton(place, explore, plotly, ink)]];
    const bar = explore === undefined ? { displayModeBar: false } : { displayModeBar: true, displaylogo: false, modeBarButtons: buttons() };
    return plotly.react(place, data, layout, { ...bar, responsive: true, scrollZoom: false, showTips: false });
  };
  const drawn = paint().then(() => listen(place));
  document.addEventListener("themechange", paint);
  for (const change of ["(prefers-color-scheme: dark)", "(forced-colors: active)", "(max-width: 759px)"]) {
    matchMedia(change).addEventListener("change", paint);
  }
  return drawn;
}

/**
 * What saves a plot as an image, as it is zoomed, with the names that the page has as its key.
 * @param {any} place @param {string | undefined} filename @param {any} plotly @param {(token: string) => string} ink
 */
function saveButton(place, filename, plotly, ink) {
  const click = () => {
    const { room, ...figure } = withLegend(place, ink);
    const size = { width: place.clientWidth, height: place.clientHeight + room };
    plotly.downloadImage(figure, { format: "png", scale: 2, filename, ...size }).catch(() => undefined); // the plot stays
  };
  return { name: "save", title: "Download plot as a PNG", icon: plotly.Icons.camera, click };
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
mountPrint();
