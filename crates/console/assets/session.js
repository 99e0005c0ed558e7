// The session of the console: the one-time link, the form for the admin key, and signing out.
import { el, replace } from "./dom.js";
import { failureOf, send } from "./api.js";

/** @type {Promise<boolean> | null} the open form, of which there is one however many requests need it */
let asking = null;

/**
 * Uses the one-time token of the address, if it has one, and removes it from there.
 * @returns {Promise<string | null>} why the token was not accepted
 */
export async function useToken() {
  const token = /^#token=(.+)$/.exec(location.hash)?.[1];
  if (!token) return null;
  history.replaceState(null, "", "#/play");
  return openSession({ token: decodeURIComponent(token) });
}

/** Says whether there is a session. */
export async function hasSession() {
  return (await send("GET", "/console/session")).ok;
}

/** Ends the session. */
export async function signOut() {
  await send("DELETE", "/console/session");
  // Play forgets its conversation.
  dispatchEvent(new Event("sluicegate-signed-out"));
}

/**
 * Opens a session.
 * @param {{ key: string } | { token: string }} proof
 * @returns {Promise<string | null>} why it was not accepted
 */
async function openSession(proof) {
  try {
    const response = await send("POST", "/console/session", proof);
    if (response.ok) return null;
    return failureOf(response.status, await response.text()).message;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/**
 * Shows the form for the admin key.
 * @param {string | null} [problem] what to say above the field
 * @returns {Promise<boolean>} true once there is a session, false if the form was closed
 */
export function askForKey(problem = null) {
  asking ??= showForm(problem).finally(() => {
    asking = null;
  });
  return asking;
}

/**
 * @param {string | null} problem
 * @returns {Promise<boolean>}
 */
function showForm(problem) {
  const key = el("input", {
    id: "admin-key", type: "password", autocomplete: "current-password", required: true,
    spellcheck: "false", "aria-describedby": "admin-key-problem",
  });
  const message = el("p", { id: "admin-key-problem", class: "problem", role: "alert" }, problem);
  const button = el("button", { class: "primary" }, "Sign in");
  const form = el("form", { method: "dialog" },
    el("h2", { id: "sign-in-title" }, "Sign in"),
    el("p", { class: "soft" }, "Open the link that the gateway printed when it started, or paste its ",
      "admin key: the value of ", el("code", null, "SLUICEGATE_ADMIN_KEY"), "."),
    el("label", { for: "admin-key" }, "Admin key"), key, message,
    el("div", { class: "actions" }, button));
  const dialog = el("dialog", { class: "sign-in", "aria-labelledby": "sign-in-title" }, form);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    const refused = await openSession({ key: key.value.trim() });
    button.disabled = false;
    replace(message, refused);
    if (refused) key.select();
    else dialog.close("signed in");
  });
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "signed in");
    });
  });
}
