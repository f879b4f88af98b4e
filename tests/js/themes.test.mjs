import assert from "node:assert/strict";
import { test } from "node:test";
import { label, nextTheme } from "../../frontend/shell/static/shell/themes.js";

test("the switch walks system, light, dark and round again", () => {
  assert.equal(nextTheme("system"), "light");
  assert.equal(nextTheme("light"), "dark");
  assert.equal(nextTheme("dark"), "system");
  assert.equal(nextTheme("nonsense"), "system");
});

test("the switch says what it is set to", () => {
  assert.equal(label("system"), "Theme: as the system has it");
  assert.equal(label("dark"), "Theme: dark");
});
