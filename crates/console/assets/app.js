// The shell of the console: screens, their addresses, the theme and the session.
import { el, replace, announce } from "./dom.js";
import { onUnauthorized } from "./api.js";
import { askForKey, hasSession, signOut, useToken } from "./session.js";
import { screen as play } from "./play.js";
import { screen as live } from "./live.js";
import { screen as requests } from "./requests.js";
import { screen as usage } from "./usage.js";
import { screen as keys } from "./keys.js";
import { screen as upstreams } from "./upstreams.js";
import { screen as models } from "./models.js";
import { screen as about } from "./about.js";

/**
 * A screen. `mount` fills the container and returns a function that ends what it has begun.
 * `detail` is the rest of the address: `req_1` of `#/requests/req_1`. A change of the detail mounts
 * the screen anew, unless it has `update`.
 * @typedef {object} Screen
 * @property {string} id
 * @property {string} title
 * @property {(container: HTMLElement, detail?: string) => (() => void)} mount
 * @property {(detail?: string) => void} [update]
 */

/** @type {Map<string, Screen>} */
const screens = new Map();
/** @type {{ screen: Screen, unmount: () => void } | null} */
let shown = null;

/**
 * Adds a screen; the first one is shown where the address names none.
 * @param {Screen} screen
 */
export function registerScreen(screen) {
  screens.set(screen.id, screen);
  const link = el("a", { href: `#/${screen.id}`, "data-screen": screen.id }, screen.title);
  byId("screens").append(el("li", null, link));
}

/**
 * @param {string} id
 * @returns {HTMLElement}
 */
function byId(id) {
  const node = document.getElementById(id);
  if (!node) throw new Error(`index.html has no #${id}`);
  return node;
}

/** Shows the screen that the address names. */
function route() {
  const [, id = "", rest] = /^#\/([a-z]+)(?:\/(.+))?$/.exec(location.hash) ?? [];
  const screen = screens.get(id) ?? play;
  const detail = rest === undefined ? undefined : safeDecode(rest);
  if (shown?.screen === screen && screen.update) return screen.update(detail);
  const isFirst = shown === null;
  unmount();
  mount(screen, detail);
  // The first screen leaves the focus at the top, where the skip link is.
  if (!isFirst) byId("main").querySelector("h1")?.focus({ preventScroll: true });
}

/** @param {string} part */
function safeDecode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function unmount() {
  shown?.unmount();
  shown = null;
}

/**
 * @param {Screen} screen
 * @param {string} [detail]
 */
function mount(screen, detail) {
  const main = byId("main");
  const container = el("div", { class: "screen" });
  main.dataset.screen = screen.id;
  replace(main, el("h1", { tabindex: "-1" }, screen.title), container);
  document.title = `${screen.title} · Sluicegate`;
  for (const link of byId("screens").querySelectorAll("a")) {
    if (link.dataset.screen === screen.id) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  openMenu(false);
  scrollTo(0, 0);
  shown = { screen, unmount: screen.mount(container, detail) };
}

/** @param {boolean} isOpen */
function openMenu(isOpen) {
  byId("menu").setAttribute("aria-expanded", String(isOpen));
  byId("side").classList.toggle("open", isOpen);
}

function setUpMenu() {
  const menu = byId("menu");
  menu.addEventListener("click", () => openMenu(menu.getAttribute("aria-expanded") !== "true"));
  byId("side").addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || menu.getAttribute("aria-expanded") !== "true") return;
    openMenu(false);
    menu.focus();
  });
  // The address names the screen, so a link to #main cannot be followed.
  document.querySelector(".skip")?.addEventListener("click", (event) => {
    event.preventDefault();
    byId("main").focus();
  });
}

function setUpTheme() {
  const select = /** @type {HTMLSelectElement} */ (byId("theme"));
  const root = document.documentElement;
  select.value = root.dataset.theme ?? "";
  select.addEventListener("change", () => {
    if (select.value) root.dataset.theme = select.value;
    else delete root.dataset.theme;
    try {
      if (select.value) localStorage.setItem("sluicegate.theme", select.value);
      else localStorage.removeItem("sluicegate.theme");
    } catch {
      // Storage is blocked: the choice lasts until the page is closed.
    }
  });
}

/** @param {boolean} isSignedIn */
function showSession(isSignedIn) {
  const button = byId("session");
  button.hidden = false;
  button.textContent = isSignedIn ? "Sign out" : "Sign in";
  button.dataset.signedIn = String(isSignedIn);
}

async function switchSession() {
  if (byId("session").dataset.signedIn !== "true") return enter(null);
  await signOut();
  showSignedOut();
  announce("Signed out");
}

/** @param {string | null} problem why the key is asked for, if there was another way */
async function enter(problem) {
  const isSignedIn = await askForKey(problem);
  showSession(isSignedIn);
  if (isSignedIn) route();
  else showSignedOut();
}

function showSignedOut() {
  // A screen that goes on would ask for the key at once.
  unmount();
  showSession(false);
  const main = byId("main");
  delete main.dataset.screen;
  document.title = "Sluicegate";
  replace(
    main,
    el("h1", { tabindex: "-1" }, "Signed out"),
    el("button", { type: "button", class: "primary", onclick: () => void enter(null) }, "Sign in"),
  );
}

async function start() {
  setUpMenu();
  setUpTheme();
  byId("session").addEventListener("click", switchSession);
  for (const screen of [play, live, requests, usage, keys, upstreams, models, about]) {
    registerScreen(screen);
  }
  onUnauthorized(async () => {
    const isSignedIn = await askForKey();
    showSession(isSignedIn);
    return isSignedIn;
  });
  const problem = await useToken();
  addEventListener("hashchange", route);
  // If the gateway does not answer, the screen says so.
  if (!(await hasSession().catch(() => true))) return enter(problem);
  showSession(true);
  route();
}

void start();
