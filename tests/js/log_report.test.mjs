import assert from "node:assert/strict";
import { test } from "node:test";
import { walk } from "../../frontend/compare/static/compare/log_report.js";

test("p and n walk the list, begin at an end and stop at the other", () => {
  assert.equal(walk(-1, 3, 1), 0);
  assert.equal(walk(-1, 3, -1), 2);
  assert.equal(walk(0, 3, 1), 1);
  assert.equal(walk(2, 3, 1), null);
  assert.equal(walk(0, 3, -1), null);
  assert.equal(walk(-1, 0, 1), null);
});
