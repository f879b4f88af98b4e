import assert from "node:assert/strict";
import { test } from "node:test";
import { firstSeen } from "../../frontend/shell/static/shell/follow.js";

/** @param {number} top @param {number} bottom @param {string} [id] */
const box = (top, bottom, id) => ({ id, getBoundingClientRect: () => ({ top, bottom }) });

/** @param {number} top @param {object[]} rows */
const part = (top, ...rows) => ({ ...box(top, 900), querySelectorAll: () => rows });

test("the row under the top edge of the window is the one that must stay", () => {
  const rows = [box(-80, -40, "run-9"), box(-20, 20, "run-8"), box(40, 80, "run-7")];
  assert.equal(firstSeen(part(-100, ...rows)).id, "run-8");
});

test("a part that begins in the window, or of which nothing is seen, moves nothing", () => {
  assert.equal(firstSeen(part(0, box(10, 40, "run-9"))), null);
  assert.equal(firstSeen(part(-100, box(-90, -50, "run-9"))), null);
});
