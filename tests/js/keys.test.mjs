import assert from "node:assert/strict";
import { test } from "node:test";
import { meaning } from "../../frontend/shell/static/shell/keys.js";

test("keys have a meaning outside of fields only", () => {
  assert.equal(meaning({ key: "?" }, false), "help");
  assert.equal(meaning({ key: "/" }, false), "find");
  assert.equal(meaning({ key: "n" }, false), "link");
  assert.equal(meaning({ key: "]" }, false), "link");
  assert.equal(meaning({ key: "n" }, true), null);
  assert.equal(meaning({ key: "r", repeat: true }, false), null, "a key held down presses nothing on the next page");
});

test("Ctrl-K and ⌘K find from anywhere, from within a field too", () => {
  assert.equal(meaning({ key: "k", ctrlKey: true }, true), "find");
  assert.equal(meaning({ key: "K", metaKey: true }, false), "find");
  assert.equal(meaning({ key: "k", ctrlKey: true, altKey: true }, false), null);
  assert.equal(meaning({ key: "k" }, true), null);
});

test("combinations belong to the browser", () => {
  assert.equal(meaning({ key: "p", ctrlKey: true }, false), null);
  assert.equal(meaning({ key: "n", metaKey: true }, false), null);
  assert.equal(meaning({ key: "Enter" }, false), null);
});
