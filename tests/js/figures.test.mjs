import assert from "node:assert/strict";
import { test } from "node:test";
import { inkedLayout, inkedTrace, inReadersZone, withLegend } from "../../frontend/shell/static/shell/figures.js";

const ink = (token) => `ink of ${token}`;

test("a bucket keeps its tone in bar and marks", () => {
  const bar = inkedTrace({ meta: { tone: 1, role: "bar", symbol: "circle-open" } }, ink);
  const marks = inkedTrace({ meta: { tone: 1, role: "marks", symbol: "circle-open" } }, ink);
  assert.equal(bar.line.color, "ink of baseline");
  assert.equal(marks.marker.color, "ink of baseline");
  assert.equal(marks.marker.symbol, "circle-open");
});

test("the layout keeps what the server said and never shows a legend", () => {
  const layout = inkedLayout({ xaxis: { range: [1, 2] }, yaxis: { range: [3, 4] }, shapes: [{ name: "rotation" }] }, ink);
  assert.deepEqual(layout.xaxis.range, [1, 2]);
  assert.deepEqual(layout.yaxis.range, [3, 4]);
  assert.equal(layout.showlegend, false);
  assert.equal(layout.shapes[0].line.color, "ink of setup");
});

test("an image of a plot names what the key of the page names, below the plot and on the page's ground", () => {
  const { data, layout, room } = withLegend({ data: [{ meta: {} }, { name: "near tie" }], layout: inkedLayout({}, ink) }, ink);
  assert.deepEqual(data.map((trace) => trace.showlegend), [false, true]);
  assert.equal(layout.showlegend, true);
  assert.equal(layout.margin.b, 40 + room);
  assert.equal(layout.paper_bgcolor, "ink of page");
  assert.equal(withLegend({ data: [{}], layout: inkedLayout({}, ink) }, ink).layout.showlegend, false);
});

test("a part that names its ink is drawn in it, hatching faintly and stems behind their points", () => {
  const points = inkedTrace({ meta: { role: "points", ink: "setup", symbol: "x-thin", size: 4 } }, ink);
  assert.equal(points.marker.color, "ink of setup");
  assert.equal(points.marker.size, 4);
  assert.ok(points.marker.line.width > 0, "a thin cross is all line");
  assert.equal(inkedTrace({ meta: { role: "points", ink: "setup", symbol: "circle" } }, ink).marker.line.width, 0);
  assert.ok(inkedTrace({ meta: { role: "past", ink: "hatch" } }, ink).opacity < 0.5);
  assert.equal(inkedTrace({ meta: { role: "stems", ink: "numeric" } }, ink).line.color, "ink of numeric");
});

test("onset and flip differ by more than colour, and the noise is a zone without a line", () => {
  const shapes = [{ name: "onset" }, { name: "flip" }, { name: "noise" }];
  const [onset, flip, noise] = inkedLayout({ shapes, yaxis: {}, yaxis2: { domain: [0, 1] } }, ink).shapes;
  assert.notEqual(onset.line.dash, flip.line.dash);
  assert.equal(flip.line.width, 2);
  assert.equal(noise.line.width, 0);
  assert.equal(noise.fillcolor, "ink of margin-2");
});

test("every upright axis of a figure gets the same look", () => {
  const layout = inkedLayout({ yaxis: { domain: [0.5, 1] }, yaxis2: { domain: [0, 0.4] } }, ink);
  assert.deepEqual(layout.yaxis2.domain, [0, 0.4]);
  assert.equal(layout.yaxis2.gridcolor, layout.yaxis.gridcolor);
});

test("a baseline is filled while it counts and hatched once it has expired", () => {
  const band = inkedTrace({ meta: { role: "band", ink: "accent-soft" } }, ink);
  const expired = inkedTrace({ meta: { role: "expired", ink: "hatch" } }, ink);
  assert.equal(band.fillcolor, "ink of accent-soft");
  assert.equal(band.fillpattern, undefined);
  assert.equal(expired.fillpattern.fgcolor, "ink of hatch");
  assert.equal(expired.fillcolor, "rgba(0,0,0,0)");
  assert.equal(inkedTrace({ meta: { role: "mean", ink: "baseline" } }, ink).line.dash, undefined);
  assert.equal(inkedTrace({ meta: { role: "expired-mean", ink: "absent" } }, ink).line.dash, "dot");
});

test("a narrow plot gets the short words, a wide one all of them", () => {
  const annotations = [{ name: "rotation", text: "rotation 03-18", narrow: "03-18" }, { name: "run", text: "run 7" }];
  const words = (width) => inkedLayout({ annotations }, ink, width).annotations.map((each) => each.text);
  assert.deepEqual(words(390), ["03-18", "run 7"]);
  assert.deepEqual(words(1136), ["rotation 03-18", "run 7"]);
  assert.equal(inkedLayout({ annotations }, ink, 390).annotations[0].narrow, undefined);
});

test("only where people explore may a plot be zoomed, and by drag only where it is wide", () => {
  const plain = inkedLayout({ yaxis: {} }, ink, 1200);
  assert.deepEqual([plain.dragmode, plain.xaxis.fixedrange, plain.yaxis.fixedrange], [false, true, true]);
  const wide = inkedLayout({ yaxis: {}, margin: { t: 34 } }, ink, 1200, true);
  assert.deepEqual([wide.dragmode, wide.xaxis.fixedrange, wide.yaxis.fixedrange], ["zoom", false, false]);
  assert.ok(wide.margin.t > 34, "the buttons are above the words");
  assert.equal(inkedLayout({ yaxis: {} }, ink, 350, true).dragmode, false);
});

test("a figure over time is in the reader's zone, and so are its words", () => {
  process.env.TZ = "Asia/Kolkata";
  const at = "2026-03-18 20:00:00";
  const figure = {
    data: [{ x: [at, at, null], y: [1, 2, null] }],
    layout: {
      xaxis: { type: "date", range: [at, at] },
      shapes: [{ x0: at, x1: at }],
      annotations: [{ x: at, text: "rotation 03-18 20:00, A to B", narrow: "03-18 20:00", time: [at, "03-18 20:00"] }, { x: at, text: "run 7" }],
    },
  };
  const { data, layout } = inReadersZone(figure);
  const local = "2026-03-19 01:30:00";
  assert.deepEqual(data[0].x, [local, local, null]);
  assert.deepEqual([layout.xaxis.range[0], layout.shapes[0].x1], [local, local]);
  assert.equal(layout.annotations[0].text, "rotation 03-19 01:30, A to B");
  assert.equal(layout.annotations[0].narrow, "03-19 01:30");
  assert.deepEqual(layout.annotations[1], { x: local, text: "run 7" });
  const numbers = { data: [{ x: [1] }], layout: { xaxis: { range: [0, 1] } } };
  assert.deepEqual(inReadersZone(numbers), numbers);
});
