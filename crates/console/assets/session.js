// The session of the console: the one-time link, the form for the admin key, and signing out.
import { el } from "./dom.js";
import { failureOf, send } from "./api.js";
import { field, openForm } from "./parts.js";

/** @type {Promise<boolean> | null} the open form, one for all requests that wait for it */
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
    type: "password",
    autocomplete: "current-password",
    required: true,
    spellcheck: "false",
  });
  const hint = el(
    "p",
    { class: "soft" },
    "Open the link that the gateway printed when it started, or paste its admin key: the value of ",
    el("code", null, "SLUICEGATE_ADMIN_KEY"),
    ".",
  );
  let isSignedIn = false;
  const dialog = openForm({
    title: "Sign in",
    content: [hint, field("Admin key", key)],
    problem,
    action: "Sign in",
    cancel: "Not now",
    submit: async () => {
      const refused = await openSession({ key: key.value.trim() });
      key.select();
      if (refused) throw new Error(refused);
      isSignedIn = true;
    },
  });
  key.focus();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(isSignedIn));
  });
}
