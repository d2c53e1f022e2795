/**
 * Panels under the answer. Each asks kvcore only while it is open and once the inputs rest, so that
 * the answer itself never waits for one; what it showed before stays, marked as old, until then.
 */

const REST = 1000;

const isAbort = (error) => error?.name === "AbortError";

/** What the page knows of a panel. */
export const panelState = (open) => ({
  open,
  /** What it is asked about, and was: an object of its own for each question, null for none. */
  subject: null,
  /** The last answer and its subject: whole, or what there was of it when it was stopped or overtaken. */
  found: null,
  /** What there is so far of an answer on its way: the answer or null, `progress` from 0 to 1, and of which phase. */
  partial: null,
  /** {code, params} of kvcore, or "failed" where no answer came. */
  error: null,
  /** Whether an answer is being worked on, and whether somebody stopped that. */
  running: false,
  stopped: false,
});

/**
 * @param {object} app
 * @param {object} ways
 * @param {(method: string, params: object, how: object) => Promise<object>} ways.call
 * @param {(method: string, params: object, how: object) => Promise<object>} ways.callLong the same for panels that are
 *   `long`: it may take a minute, and holds up nothing else
 * @param {() => void} ways.render
 * @param {Array<{
 *   id: string,
 *   subject: (app: object) => object|null,
 *   long?: boolean,
 *   restoresFile?: boolean,
 *   known?: (subject: object) => object|null,
 *   answer: (subject: object, tools: {call: (method: string, params: object, how?: object) => Promise<object>,
 *     show: (partial: object|null, progress: number, phase?: string) => void}) => Promise<object>,
 * }>} ways.panels `answer` resolves with what the panel shows, or {error}; `show` takes the same as far as it goes
 */
export function createPanels(app, { call, callLong, render, panels }) {
  /** Answers by panel and subject, so that going back to a scenario shows its own at once. */
  const answers = new Map(panels.map(({ id }) => [id, new WeakMap()]));
  const running = new Map();

  function stop(id) {
    const run = running.get(id);
    if (!run) return;
    clearTimeout(run.timer);
    run.controller.abort();
    running.delete(id);
    const state = app.panels[id];
    // What has been found of it stays on screen until there is something newer.
    if (state.partial?.answer) state.found = { subject: state.partial.subject, answer: state.partial.answer };
    Object.assign(state, { partial: null, running: false });
  }

  /** A file that can't be read gives way to what was there before it. */
  function refuse({ id, restoresFile = false }, { file = null }, error) {
    const state = app.panels[id];
    if (!restoresFile || file === null || error.params?.file !== file.name) {
      state.error = error;
      return;
    }
    const before = state.found?.subject.file ?? null;
    app.panelFiles = { ...app.panelFiles, [id]: before === file ? null : before };
    app.panelRefused = { ...app.panelRefused, [id]: error };
  }

  function start(panel, subject) {
    const state = app.panels[panel.id];
    const controller = new AbortController();
    const { signal } = controller;
    const current = () => !signal.aborted;
    const ask = panel.long ? callLong : call;
    const tools = {
      call: (method, params, how = {}) => ask(method, params, { ...how, lane: `panel-${panel.id}`, signal }),
      show(answer, progress, phase = null) {
        if (!current()) return;
        state.partial = { subject, answer, progress, phase };
        render();
      },
    };
    async function run() {
      try {
        const answer = await panel.answer(subject, tools);
        if (!current()) return;
        if (answer.error) refuse(panel, subject, answer.error);
        else {
          state.found = { subject, answer };
          answers.get(panel.id).set(subject, answer);
        }
      } catch (error) {
        if (!current()) return;
        if (!isAbort(error)) console.warn(error);
        state.error = "failed";
      }
      running.delete(panel.id);
      Object.assign(state, { partial: null, running: false });
      render();
    }
    state.running = true;
    running.set(panel.id, { controller, timer: setTimeout(run, REST) });
  }

  return {
    /** Called before each rendering: sees what each open panel is about now, and asks where that is new. */
    keepUp() {
      for (const panel of panels) {
        const state = app.panels[panel.id];
        const subject = state.open ? panel.subject(app) : null;
        if (subject === state.subject) continue;
        stop(panel.id);
        Object.assign(state, { subject, error: null, stopped: false });
        if (subject === null) continue;
        const known = answers.get(panel.id).get(subject) ?? panel.known?.(subject) ?? null;
        if (known) state.found = { subject, answer: known };
        else start(panel, subject);
      }
    },

    /** What somebody no longer wants to wait for; what was found before stays. */
    cancel(id) {
      if (!running.has(id)) return;
      stop(id);
      app.panels[id].stopped = true;
      render();
    },

    /** Asks again where no answer came. */
    retry(id) {
      app.panels[id].subject = null;
      render();
    },
  };
}
