import assert from "node:assert/strict";
import { test } from "node:test";
import { inkedLayout, inkedTrace } from "../../frontend/static/frontend/js/figures.js";

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
