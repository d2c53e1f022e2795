/**
 * Looks a model up on the Hugging Face Hub, when somebody asks for that and never otherwise.
 * Which files to get, and what their absence means, is kvcore's to say; here they are only fetched.
 *
 * @typedef {object} LookUp what the page shows of it; `app.hub`
 * @property {"asking"|"failed"|"found"} state
 * @property {string} query as typed
 * @property {object} about the model that was chosen when it began, or that it found
 * @property {object} [origin] name, commit and page_url, once found
 * @property {Array<object>} [warnings]
 * @property {object} [error]
 * @property {Date} [at]
 */

import { errorText } from "./messages.js";

const FILE_LIMIT = 15_000;
const LARGEST = 32 * 2 ** 20;

/** What may be the name of a repository: the list then offers to look it up. kvcore reads it properly. */
const NAME = /^[\w.-]+\/[\w.-]+(@[\w./+-]+)?$/;
const MAIN = "main";
const ADDRESS = /^(https?:\/\/)?(www\.)?(huggingface\.co|hf\.co)\/\S+$/i;

export const isRepository = (text) => text.length <= 200 && NAME.test(text);
export const mayBeRepository = (text) => isRepository(text.trim()) || ADDRESS.test(text.trim());

/** Whether a look-up is about the model that is chosen. */
export const lookUpOf = ({ hub, scenario }) =>
  hub !== null && hub.about.model === scenario.model && hub.about.text === scenario.model_text ? hub : null;

/** A look-up that has not become a model, or not yet. */
export function pending(app) {
  const hub = lookUpOf(app);
  return hub === null || hub.state === "found" ? null : hub;
}

const chosen = ({ model, model_text: text }) => ({ model, text });

/** The body as bytes, or an error where it is longer than any such file. */
async function bodyOf(response) {
  const parts = [];
  let length = 0;
  const reader = response.body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return new Blob(parts);
    parts.push(value);
    length += value.length;
    if (length > LARGEST) {
      reader.cancel();
      throw new RangeError(`longer than ${LARGEST} bytes`);
    }
  }
}

/** GETs one file as nobody in particular; a failure is a response too, unless `signal` asked for it. */
async function get({ file, url }, signal) {
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(), FILE_LIMIT);
  const stop = () => limit.abort();
  signal.addEventListener("abort", stop);
  let status = 0;
  try {
    const response = await fetch(url, {
      credentials: "omit",
      referrerPolicy: "no-referrer",
      cache: "no-store",
      signal: limit.signal,
    });
    const { headers } = response;
    const told = {
      file,
      status: response.status,
      error_code: headers.get("x-error-code") ?? "",
      commit: headers.get("x-repo-commit") ?? "",
      url: response.url,
    };
    if (!response.ok) return { told, body: null };
    status = response.status;
    const body = await bodyOf(response);
    return { told, body };
  } catch (error) {
    signal.throwIfAborted();
    if (limit.signal.aborted) return { told: { file, failure: "timeout" }, body: null };
    const came = error instanceof RangeError ? status : 0;
    return { told: { file, status: came, failure: error.message || "no answer" }, body: null };
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", stop);
  }
}

/**
 * @param {object} app
 * @param {{call: Function, render: Function, say: Function, importFiles: Function, forgetImport: Function}} ways
 */
export function createLookUp(app, { call, render, say, importFiles, forgetImport }) {
  let running = null;

  function show(patch) {
    app.hub = patch === null ? null : { ...app.hub, ...patch };
    render();
  }

  /** Asks kvcore for the next file and gets it, until kvcore wants no more; null once nobody waits for it. */
  async function follow(repo, signal) {
    const responses = [];
    const bodies = {};
    for (;;) {
      const step = await call("hub", { repo, responses }, { lane: "hub", signal });
      // Meanwhile another model may have been chosen.
      if (lookUpOf(app) === null) return null;
      if (step.error || step.next === null) return { step, bodies };
      const { told, body } = await get(step.next, signal);
      bodies[told.file] = body;
      const start = body === null ? "" : await body.slice(0, 4 * step.start_characters).text();
      responses.push({ ...told, start: start.slice(0, step.start_characters) });
    }
  }

  async function run(query, signal) {
    const followed = await follow(query, signal);
    if (followed === null || followed.step.error) return followed && { error: followed.step.error };
    const { repo, revision, commit: sha, page_url, files, warnings } = followed.step;
    const notes = [...warnings];
    const given = files.map((name) => new File([followed.bodies[name]], name));
    const name = revision === MAIN ? repo : `${repo}@${revision}`;
    const origin = { name, commit: sha, page_url };
    let verdict = await importFiles(given, { origin });
    if (verdict?.error && given.length > 1) {
      // A config counts even where its index cannot be read.
      verdict = await importFiles(given.slice(0, 1), { origin });
      notes.push({ code: "hub_no_index", params: { repo, file: files[1] } });
    }
    signal.throwIfAborted();
    return verdict && { ...verdict, origin, warnings: notes };
  }

  function finish(query, found) {
    if (found === null) show(null);
    else if (found.error) {
      show({ state: "failed", ...found });
      say(errorText(app.t, found.error, app.view.unit));
    } else {
      show({ state: "found", about: chosen(app.scenario), at: new Date(), ...found });
      say(app.t("hub.found", { repo: found.origin.name }));
    }
  }

  return {
    async lookUp(text) {
      const query = text.trim();
      running?.abort();
      running = new AbortController();
      const { signal } = running;
      app.hub = { about: chosen(app.scenario) };
      show({ state: "asking", query });
      say(app.t("hub.asking", { repo: query }));
      try {
        const found = await run(query, signal);
        if (!signal.aborted) finish(query, found);
      } catch (error) {
        if (signal.aborted) return;
        show({ state: "failed", error: { code: "internal_error", params: { reason: String(error) } } });
      }
    },
    /** Back to the model that is chosen. */
    leaveHub() {
      running?.abort();
      forgetImport();
      show(null);
      document.getElementById("model")?.focus();
    },
  };
}
