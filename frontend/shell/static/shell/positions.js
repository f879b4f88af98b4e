// @ts-check
/** Walking the positions of a trace: pure, so that it is tested without a browser. */

/**
 * The index a key leads to from `current`, or null where the key is none of ours.
 * @param {string} key @param {number} current @param {number} n @returns {number | null}
 */
export function walk(key, current, n) {
  if (n === 0) return null;
  if (key === "ArrowRight") return Math.min(current + 1, n - 1);
  if (key === "ArrowLeft") return Math.max(current - 1, 0);
  if (key === "Home") return 0;
  if (key === "End") return n - 1;
  return null;
}

/**
 * The next narrow position after `current` in a direction, or null where there is none.
 * @param {number[]} narrow ascending @param {number} current @param {1 | -1} direction @returns {number | null}
 */
export function nextNarrow(narrow, current, direction) {
  const beyond = narrow.filter((position) => (direction === 1 ? position > current : position < current));
  return (direction === 1 ? beyond[0] : beyond.at(-1)) ?? null;
}
