// @ts-check
/** What every page has. Each module improves a page that works without it. */
import { mount as mountCopy } from "./copy.js";
import { mount as mountFind } from "./find.js";
import { mount as mountFollow } from "./follow.js";
import { mount as mountKeys } from "./keys.js";
import { mount as mountOnce } from "./once.js";
import { mount as mountPlaces } from "./places.js";
import { mount as mountPrint } from "./print.js";
import { mount as mountSections } from "./sections.js";
import { mount as mountTheme } from "./themes.js";
import { mount as mountTyped } from "./typed.js";

document.querySelectorAll("[data-theme-switch]").forEach((button) => mountTheme(/** @type {HTMLElement} */ (button)));
mountCopy(document);
mountKeys(document, mountFind(document));
mountFollow(document);
mountPlaces(document);
mountPrint(document);
mountSections(document);
mountTyped(document);
mountOnce(document);  // after those that send a form themselves
