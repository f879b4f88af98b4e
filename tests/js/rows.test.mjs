import assert from "node:assert/strict";
import { test } from "node:test";
import { next } from "../../frontend/compare/static/compare/rows.js";

test("j and k move by a row, begin at an end and stop at the other", () => {
  assert.equal(next("j", -1, 3), 0);
  assert.equal(next("k", -1, 3), 2);
  assert.equal(next("j", 0, 3), 1);
  assert.equal(next("j", 2, 3), 2);
  assert.equal(next("k", 0, 3), 0);
});

test("other keys, and a page without rows, lead nowhere", () => {
  assert.equal(next("n", 0, 3), null);
  assert.equal(next("j", -1, 0), null);
});
