// Owns the worker in which kvcore runs: starts it, watches over it, and hands it one request at a time.
import {toBase64, unpack} from './unpack.js';

const PARTS = ['wasm', 'stdlib', 'kvcore'];
const START_LIMIT = 30_000; // without any sign of progress
const CALL_LIMIT = 20_000;
const ABANDONED_LIMIT = 2_000; // how long nobody's answer may hold up somebody's

/** Why an answer did not come. `reason`: missing, damaged, unsupported, blocked, timeout or crashed. */
export class EngineError extends Error {
  constructor(reason, detail) {
    super(`${reason}: ${detail}`);
    this.name = 'EngineError';
    this.reason = reason;
    this.detail = detail;
  }
}

/** @typedef {{name: "idle"}
 *   | {name: "starting", stage: "unpacking" | "python" | "kvcore"}
 *   | {name: "ready"}
 *   | {name: "failed", reason: string, detail: string}} EngineState */

/**
 * Creates an engine; it starts at the first call, or by `start()`, which also tries again after a failure.
 *
 * `call(method, params, {lane, signal, files, onProgress})` resolves with kvcore's answer, errors of kvcore's
 * included. `files` are [{name, file}], of which kvcore reads what it needs; `onProgress` hears how far it is.
 * A newer call in the same lane supersedes an older one, which then rejects with an "AbortError".
 *
 * @param {object} options
 * @param {(name: string) => string | null | undefined} options.payload  the packed part of that name:
 *   "worker", "wasm", "stdlib" or "kvcore"
 * @param {(state: EngineState) => void} [options.onState]  called at every change of state
 * @param {number} [options.idleLimit]  milliseconds without a call after which the worker is ended, as embeds
 *   need it; without it the worker stays
 */
export function createEngine({payload, onState = () => {}, idleLimit = Infinity}) {
  let state = {name: 'idle'};
  let worker = null;
  let waiting = [];
  let current = null;
  let watchdog = null;
  let idleTimer = null;
  let heard = false; // whether the worker has said anything since it was created
  let lastId = 0;
  let deaths = 0;

  function setState(next) {
    state = next;
    onState(state);
  }

  async function start() {
    if (state.name === 'starting' || state.name === 'ready') return;
    setState({name: 'starting', stage: 'unpacking'});
    let born;
    try {
      born = await createWorker(payload);
    } catch (error) {
      if (state.name === 'starting') fail(asEngineError(error));
      return;
    }
    if (state.name !== 'starting' || worker) {
      born.terminate();
      return;
    }
    worker = born;
    heard = false;
    worker.onmessage = ({data}) => born === worker && receive(data);
    worker.onerror = (event) => born === worker && die(event.message || 'the worker ended');
    watchStart();
    try {
      const parts = await Promise.all(PARTS.map((name) => part(payload(name))));
      if (born === worker) send(parts);
    } catch (error) {
      if (born === worker) fail(new EngineError('damaged', String(error)));
    }
  }

  function send(parts) {
    const transfer = parts.flatMap((bytes) => bytes.buffer ?? []);
    worker.postMessage({start: Object.fromEntries(PARTS.map((name, index) => [name, parts[index]]))}, transfer);
  }

  function watchStart() {
    watch(START_LIMIT, () => fail(new EngineError('timeout', `stuck while starting (${state.stage})`)));
  }

  function receive(message) {
    heard = true;
    if (message.stage) {
      setState({name: 'starting', stage: message.stage});
      watchStart();
    } else if (message.ready) {
      unwatch();
      setState({name: 'ready'});
      pump();
    } else if (message.failed) {
      fail(new EngineError(message.failed.reason, message.failed.detail));
    } else if (message.progress !== undefined) {
      if (message.id !== current?.id || current.settled) return;
      watchCall();
      current.onProgress?.(JSON.parse(message.progress));
    } else if (message.id === current?.id) {
      if (message.broken) die(message.broken);
      else finish(JSON.parse(message.answer));
    }
  }

  function finish(answer) {
    unwatch();
    deaths = 0;
    current.resolve(answer);
    current = null;
    pump();
  }

  /** The first death is mended without a word and the request asked again; the second in a row is a failure. */
  function die(detail) {
    deaths += 1;
    if (deaths > 1 || state.name === 'starting') {
      fail(new EngineError(heard ? 'crashed' : 'blocked', detail));
      return;
    }
    if (current && !current.settled) waiting.unshift(current);
    restart();
  }

  function restart() {
    endWorker();
    setState({name: 'idle'});
    if (waiting.length) start();
  }

  function fail(error) {
    rejectAll(error);
    endWorker();
    deaths = 0;
    setState({name: 'failed', reason: error.reason, detail: error.detail});
  }

  /** Ends the worker and frees its memory; the next call starts it again. */
  function stop() {
    rejectAll(new DOMException('the engine was stopped', 'AbortError'));
    endWorker();
    setState({name: 'idle'});
  }

  function rejectAll(error) {
    for (const entry of [current, ...waiting]) entry?.reject(error);
    waiting = [];
  }

  function endWorker() {
    unwatch();
    clearTimeout(idleTimer);
    worker?.terminate();
    worker = null;
    current = null;
  }

  function call(method, params, {lane, signal, files, onProgress} = {}) {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      if (state.name === 'failed') return reject(new EngineError(state.reason, state.detail));
      if (lane !== undefined) supersede(lane);
      const request = JSON.stringify({method, params});
      const entry = {id: ++lastId, request, files, onProgress, lane, settled: false};
      entry.resolve = (value) => settle(entry, resolve, value);
      entry.reject = (error) => settle(entry, reject, error);
      signal?.addEventListener('abort', () => abandon(entry, signal.reason), {once: true});
      waiting.push(entry);
      if (state.name === 'idle') start();
      else pump();
    });
  }

  function settle(entry, how, value) {
    if (entry.settled) return;
    entry.settled = true;
    how(value);
  }

  function supersede(lane) {
    for (const entry of [current, ...waiting]) {
      if (entry?.lane === lane) abandon(entry, new DOMException('superseded by a newer request', 'AbortError'));
    }
  }

  function abandon(entry, error) {
    entry.reject(error);
    waiting = waiting.filter((other) => other !== entry);
    if (entry === current) watch(ABANDONED_LIMIT, restart);
  }

  function pump() {
    clearTimeout(idleTimer);
    if (state.name !== 'ready' || current) return;
    if (!waiting.length) {
      if (idleLimit !== Infinity) idleTimer = setTimeout(stop, idleLimit);
      return;
    }
    current = waiting.shift();
    const {id, request, files} = current;
    worker.postMessage({id, request, files});
    watchCall();
  }

  function watchCall() {
    watch(CALL_LIMIT, () => {
      current.reject(new EngineError('timeout', `no answer after ${CALL_LIMIT / 1000} seconds`));
      restart();
    });
  }

  function watch(milliseconds, action) {
    clearTimeout(watchdog);
    watchdog = setTimeout(action, milliseconds);
  }

  function unwatch() {
    clearTimeout(watchdog);
  }

  return {
    start() {
      if (state.name === 'failed') setState({name: 'idle'});
      return start();
    },
    stop,
    call,
    get state() {
      return state;
    },
  };
}

/** Unpacked while the worker loads, or left to the worker where decoding would hold up the page. */
const part = (packed) => (Uint8Array.fromBase64 ? unpack(packed) : packed);

let workerAddress = null;
// Whatever it is asked for, this policy gives the one address that may become a worker.
const policy = globalThis.trustedTypes?.createPolicy('kvcore', {createScriptURL: () => workerAddress});

async function createWorker(payload) {
  for (const feature of ['WebAssembly', 'Worker', 'DecompressionStream']) {
    if (!(feature in globalThis)) throw new EngineError('unsupported', `this browser has no ${feature}`);
  }
  for (const name of ['worker', ...PARTS]) {
    if (!payload(name)) throw new EngineError('missing', `this copy of the page has no part "${name}"`);
  }
  try {
    // A module worker from a data: address is the only kind that every browser starts from a file on disk.
    workerAddress ??= `data:text/javascript;base64,${toBase64(await unpack(payload('worker')))}`;
  } catch (error) {
    throw new EngineError('damaged', String(error));
  }
  try {
    return new Worker(policy ? policy.createScriptURL('') : workerAddress, {type: 'module', name: 'kvcore'});
  } catch (error) {
    throw new EngineError('blocked', String(error));
  }
}

function asEngineError(error) {
  return error instanceof EngineError ? error : new EngineError('crashed', String(error));
}
