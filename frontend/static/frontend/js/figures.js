// @ts-check
/** A figure from the server gets the inks of the theme: pure, so that it is tested without a browser. */

const TONES = ["candidate", "baseline", "numeric", "shift", "reading", "absent"];
const BAR_WIDTH = 8;

/** @typedef {(token: string) => string} Ink the value of a CSS custom property, without its dashes */

/**
 * @param {any} trace @param {Ink} ink
 */
export function inkedTrace(trace, ink) {
  const colour = ink(TONES[trace.meta.tone % TONES.length]);
  if (trace.meta.role === "bar") {
    return { ...trace, line: { color: colour, width: BAR_WIDTH }, opacity: 0.25 };
  }
  const symbol = trace.meta.symbol;
  return { ...trace, marker: { symbol, size: 8, color: colour, line: { color: colour, width: symbol === "x-thin" ? 1.75 : symbol.endsWith("-open") ? 1.75 : 0 } } };
}

/**
 * @param {any} layout @param {Ink} ink
 */
export function inkedLayout(layout, ink) {
  const axis = { gridcolor: ink("line"), linecolor: ink("line-strong"), tickcolor: ink("line-strong"), zeroline: false, automargin: false, fixedrange: true };
  return {
    ...layout,
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: ink("sans"), size: 11, color: ink("text-3") },
    margin: { l: 0, r: 0, t: 24, b: 40 },
    showlegend: false,
    dragmode: false,
    hovermode: "closest",
    hoverlabel: { bgcolor: ink("surface"), bordercolor: ink("line-strong"), font: { color: ink("text"), family: ink("sans"), size: 12 }, align: "left" },
    xaxis: { ...axis, ...layout.xaxis, showgrid: false, showline: true, ticks: "inside", nticks: 7 },
    yaxis: { ...axis, ...layout.yaxis, showgrid: true, showline: false, ticks: "", ticklabelposition: "inside top", nticks: 7, ticksuffix: " points", showticksuffix: "last", tickfont: { color: ink("text-3"), size: 11 } },
    shapes: (layout.shapes ?? []).map((/** @type {any} */ shape) => ({ ...shape, line: { color: ink("setup"), width: 1.5, dash: "dash" } })),
    annotations: (layout.annotations ?? []).map((/** @type {any} */ words) => ({
      ...words,
      showarrow: false,
      font: { size: 12, color: words.name === "rotation" ? ink("setup") : ink("text-2") },
    })),
  };
}
