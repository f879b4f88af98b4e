import assert from "node:assert/strict";
import { test } from "node:test";
import { step } from "../../frontend/board/static/board/board.js";

test("j and k go through the rows and stop at their ends", () => {
  assert.equal(step("j", -1, 3), 0);
  assert.equal(step("j", 0, 3), 1);
  assert.equal(step("j", 2, 3), 2);
  assert.equal(step("k", 2, 3), 1);
  assert.equal(step("k", 0, 3), 0);
  assert.equal(step("k", -1, 3), 2);
});

test("other keys and an empty board move nothing", () => {
  assert.equal(step("n", 0, 3), -1);
  assert.equal(step("j", -1, 0), -1);
});
