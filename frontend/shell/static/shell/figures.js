// @ts-check
/** A figure from the server gets the inks of the theme: pure, so that it is tested without a browser. */

const TONES = ["candidate", "baseline", "absent", "numeric", "shift", "reading"];
const BAR_WIDTH = 8;

/** How lines and zones of a figure look, by their name. */
const SHAPES = {
  rotation: { ink: "setup", width: 1.5, dash: "dash" },
  onset: { ink: "numeric", width: 1.5, dash: "dash" },
  flip: { ink: "text", width: 2, dash: "solid" },
  "noise-line": { ink: "margin-ink", width: 1.5, dash: "dot" },
};
const ZONES = { noise: "margin-2" };
/** Words in a plot stand in the ink of what they name. */
const WORDS = { rotation: "setup", baseline: "text", expired: "text-2", onset: "numeric", flip: "text", title: "text-2", zone: "text-2", noise: "text-2", past: "text-2", "at-flip-baseline": "text", "at-flip-candidate": "text" };
/** Words that stand among marks have a halo: the ground that they stand on. */
const HALOS = { title: "page", zone: "margin-2", noise: "page", past: "page", "at-flip-baseline": "page", "at-flip-candidate": "page" };

const CLEAR = "rgba(0,0,0,0)";
const MODE_BAR = 26; // pixels above the plot
const LEGEND_ROW = 20; // pixels
const NARROW = 600; // pixels; a plot below it has room for short words only

/** Whether the reader's system sets the colours (forced-colors). */
const isForced = () => typeof matchMedia === "function" && matchMedia("(forced-colors: active)").matches;

const two = (/** @type {number} */ n) => String(n).padStart(2, "0");

/** A time, naive in UTC as figures have it, in the reader's zone. @param {any} text */
function toLocal(text) {
  if (typeof text !== "string") return text;
  const at = new Date(`${text.replace(" ", "T")}Z`);
  const clock = [at.getHours(), at.getMinutes(), at.getSeconds()].map(two).join(":");
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${clock}`;
}

/**
 * A figure over time, in the reader's zone: its marks, lines and words.
 * `time` of words is what they say of a time: it in UTC, and the text of it.
 * @param {any} figure
 */
export function inReadersZone({ data, layout }) {
  if (layout.xaxis?.type !== "date") return { data, layout };
  const place = (/** @type {any} */ { time, ...words }) => {
    const local = time && toLocal(time[0]).slice(5, 5 + time[1].length);
    const say = (/** @type {string} */ text) => (time ? text.replaceAll(time[1], local) : text);
    return { ...words, x: toLocal(words.x), text: say(words.text), ...(words.narrow && { narrow: say(words.narrow) }) };
  };
  return {
    data: data.map((/** @type {any} */ trace) => ({ ...trace, x: trace.x.map(toLocal) })),
    layout: {
      ...layout,
      xaxis: { ...layout.xaxis, range: layout.xaxis.range.map(toLocal) },
      shapes: layout.shapes.map((/** @type {any} */ shape) => ({ ...shape, x0: toLocal(shape.x0), x1: toLocal(shape.x1) })),
      annotations: layout.annotations.map(place),
    },
  };
}

/** @typedef {(token: string) => string} Ink the value of a CSS custom property, without its dashes */

/**
 * @param {any} trace @param {Ink} ink
 */
export function inkedTrace(trace, ink) {
  if (trace.meta.role === "band" || trace.meta.role === "expired") return inkedBand(trace, ink);
  if (trace.meta.ink) return inkedPart(trace, ink);
  const colour = ink(TONES[trace.meta.tone % TONES.length]);
  if (trace.meta.role === "bar") {
    return { ...trace, line: { color: colour, width: BAR_WIDTH }, opacity: 0.25 };
  }
  const symbol = trace.meta.symbol;
  return { ...trace, marker: { symbol, size: 8, color: colour, line: { color: colour, width: symbol === "x-thin" ? 1.75 : symbol.endsWith("-open") ? 1.75 : 0 } } };
}

/**
 * A baseline's noise floor: filled while it counts, hatched once it has expired. Where the system sets the colours it
 * has a border instead, which no fill could stand out against.
 * @param {any} trace @param {Ink} ink
 */
function inkedBand(trace, ink) {
  const isExpired = trace.meta.role === "expired";
  const line = { color: ink("band-border"), width: isForced() ? 1 : 0, dash: isExpired ? "dash" : "solid" };
  if (!isExpired) return { ...trace, line, fillcolor: ink(trace.meta.ink) };
  const fillpattern = { shape: "/", size: 8, solidity: 0.12, fgcolor: ink(trace.meta.ink), fgopacity: 0.35, bgcolor: CLEAR };
  return { ...trace, line, fillcolor: CLEAR, fillpattern };
}

/**
 * A part that names its own ink: points, stems under them, and what is hatched because it may not be compared.
 * @param {any} trace @param {Ink} ink
 */
function inkedPart(trace, ink) {
  const colour = ink(trace.meta.ink);
  if (trace.meta.role === "stems") return { ...trace, line: { color: colour, width: 1 }, opacity: 0.5 };
  if (trace.meta.role === "mean") return { ...trace, line: { color: colour, width: 1.5 } };
  if (trace.meta.role === "expired-mean") return { ...trace, line: { color: colour, width: 1, dash: "dot" } };
  if (trace.meta.role === "past") return { ...trace, line: { color: colour, width: 1 }, opacity: 0.3 };
  const { symbol, size = 7 } = trace.meta;
  const isOpen = symbol.endsWith("-open") || symbol.endsWith("-thin");
  return { ...trace, marker: { symbol, size, color: colour, line: { color: colour, width: isOpen ? 1.5 : 0 } } };
}

/** @param {any} shape @param {Ink} ink */
function inkedShape(shape, ink) {
  const zone = ZONES[/** @type {"noise"} */ (shape.name)];
  if (zone) return { ...shape, fillcolor: ink(zone), line: { width: 0 } };
  const look = SHAPES[/** @type {"flip"} */ (shape.name)];
  return { ...shape, line: { color: ink(look.ink), width: look.width, dash: look.dash } };
}

/**
 * @param {any} layout @param {Ink} ink @param {number} [width] of the plot, in pixels
 * @param {boolean} [canExplore] whether the reader may zoom and pan; Plotly's buttons are above the plot then
 */
export function inkedLayout(layout, ink, width = Infinity, canExplore = false) {
  const axis = { gridcolor: ink("line"), linecolor: ink("line-strong"), tickcolor: ink("line-strong"), zeroline: false, automargin: false, fixedrange: !canExplore };
  const upright = { ...axis, showgrid: true, showline: false, ticks: "", ticklabelposition: "inside top", nticks: 7, tickfont: { color: ink("text-3"), size: 11 } };
  return {
    ...layout,
    paper_bgcolor: CLEAR,
    plot_bgcolor: CLEAR,
    font: { family: ink("sans"), size: 11, color: ink("text-3") },
    margin: { l: 0, r: 0, b: 40, ...layout.margin, t: (layout.margin?.t ?? 24) + (canExplore ? MODE_BAR : 0) },
    modebar: { bgcolor: CLEAR, color: ink("text-3"), activecolor: ink("text") },
    showlegend: false,
    uirevision: "kept", // a change of theme keeps what was zoomed
    dragmode: canExplore && width >= NARROW ? "zoom" : false, // a finger scrolls the page
    hovermode: "closest",
    hoverlabel: { bgcolor: ink("surface"), bordercolor: ink("line-strong"), font: { color: ink("text"), family: ink("sans"), size: 12 }, align: "left" },
    xaxis: { ...axis, showgrid: false, showline: true, ticks: "inside", nticks: width < NARROW ? 4 : 7, tickangle: 0, ...layout.xaxis },
    ...Object.fromEntries(Object.keys(layout).filter((name) => name.startsWith("yaxis")).map((name) => [name, { ...upright, ...layout[name] }])),
    shapes: (layout.shapes ?? []).map((/** @type {any} */ shape) => inkedShape(shape, ink)),
    annotations: (layout.annotations ?? []).map((/** @type {any} */ { narrow, ...words }) => ({
      ...words,
      text: width < NARROW ? narrow ?? words.text : words.text,
      showarrow: false,
      ...(words.name in HALOS ? { bgcolor: ink(HALOS[/** @type {"zone"} */ (words.name)]), borderpad: 1 } : {}),
      font: { size: 12, color: ink(WORDS[/** @type {"flip"} */ (words.name)] ?? "text-2") },
    })),
  };
}

/**
 * A drawn figure as an image has it: on the page's ground, with a row below for each name that the page has as its key.
 * `room`: the pixels that the rows take.
 * @param {{ data: any[], layout: any }} drawn @param {Ink} ink
 */
export function withLegend({ data, layout }, ink) {
  const room = LEGEND_ROW * data.filter((trace) => trace.name).length;
  const legend = { orientation: "v", yref: "container", y: 0, yanchor: "bottom", x: 0, xanchor: "left", bgcolor: CLEAR, font: { size: 12, color: ink("text") } };
  return {
    data: data.map((trace) => ({ ...trace, showlegend: Boolean(trace.name) })),
    layout: { ...layout, paper_bgcolor: ink("page"), showlegend: room > 0, margin: { ...layout.margin, b: layout.margin.b + room }, legend },
    room,
  };
}
