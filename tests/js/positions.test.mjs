import assert from "node:assert/strict";
import { test } from "node:test";
import { nextNarrow, walk } from "../../frontend/shell/static/shell/positions.js";

test("arrows stop at both ends", () => {
  assert.equal(walk("ArrowRight", 0, 3), 1);
  assert.equal(walk("ArrowRight", 2, 3), 2);
  assert.equal(walk("ArrowLeft", 0, 3), 0);
  assert.equal(walk("Home", 2, 3), 0);
  assert.equal(walk("End", 0, 3), 2);
});

test("other keys and an empty trace lead nowhere", () => {
  assert.equal(walk("a", 0, 3), null);
  assert.equal(walk("ArrowRight", 0, 0), null);
});

test("brackets go to the next narrow position in their direction", () => {
  assert.equal(nextNarrow([3, 9, 20], 3, 1), 9);
  assert.equal(nextNarrow([3, 9, 20], 10, -1), 9);
  assert.equal(nextNarrow([3, 9, 20], 20, 1), null);
  assert.equal(nextNarrow([], 5, -1), null);
});
