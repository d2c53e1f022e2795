// Runs inside the worker: unpacks the engine's parts, starts Python, then answers one request after the other.
//
// From the page:  {start: {wasm, stdlib, kvcore}} (bytes, or packed text), then {id, request, files} (JSON text, and
//                 [{name, file}] where the request is about files: they are read in slices, never as a whole).
// To the page:    {stage}, {ready: true}, {failed: {reason, detail}}, {id, progress} and {id, answer} (JSON text),
//                 {id, broken}.
import createPyodideModule from 'pyodide/pyodide.asm.mjs';
import {info} from 'pyodide/pyodide-lock.json';
import {loadPyodide} from 'pyodide/pyodide.mjs';

import {unpack} from './unpack.js';

const NOWHERE = 'https://engine.invalid/';
const WASM_MAGIC = [0x00, 0x61, 0x73, 0x6d];
const EMPTY_WASM_MODULE = Uint8Array.of(...WASM_MAGIC, 1, 0, 0, 0);
const INSTALL = `
import sys, zipfile
zipfile.ZipFile('/kvcore.whl').extractall('/packages')
sys.path.insert(0, '/packages')
`;
// What comes back from JavaScript is copied into Python at once: nothing of it is left to be destroyed.
const ANSWER = `
from kvcore.api import respond
from pyodide.ffi import JsException

def source_of(file):
    from kvcore.importers.byte_source import ByteSource

    def read(offset, length):
        try:
            return file.read(offset, length).to_bytes()
        except JsException as error:
            raise OSError(error.message) from None

    return ByteSource(name=file.name, size=file.size, read=read)

def answer(request, files, tell):
    return respond(request, [source_of(file) for file in files], tell)

answer
`;

// The page may ask one host when somebody clicks; what runs here asks nobody.
for (const way of ['XMLHttpRequest', 'WebSocket', 'EventSource', 'WebTransport']) delete globalThis[way];

let answer;

self.onmessage = async ({data}) => {
  if (data.start) {
    postMessage(await start(data.start));
    return;
  }
  try {
    postMessage({id: data.id, answer: ask(data)});
  } catch (error) {
    postMessage({id: data.id, broken: String(error)});
  }
};

function ask({id, request, files = []}) {
  return answer(request, files.map(readable), (progress) => postMessage({id, progress}));
}

function readable({name, file}) {
  const reader = new FileReaderSync();
  return {
    name,
    size: file.size,
    read: (offset, length) => new Uint8Array(reader.readAsArrayBuffer(file.slice(offset, offset + length))),
  };
}

async function start(parts) {
  let reason = 'blocked';
  try {
    await WebAssembly.compile(EMPTY_WASM_MODULE);
    reason = 'damaged';
    postMessage({stage: 'unpacking'});
    const [wasm, stdlib, kvcore] = await Promise.all([parts.wasm, parts.stdlib, parts.kvcore].map(bytesOf));
    if (!WASM_MAGIC.every((byte, index) => wasm[index] === byte))
      throw new Error('the WebAssembly part is not WebAssembly');
    reason = 'crashed';
    postMessage({stage: 'python'});
    const python = await startPython({'pyodide.asm.wasm': wasm, 'python_stdlib.zip': stdlib});
    postMessage({stage: 'kvcore'});
    python.FS.writeFile('/kvcore.whl', kvcore);
    python.runPython(INSTALL);
    answer = python.runPython(ANSWER);
    return {ready: true};
  } catch (error) {
    return {failed: {reason, detail: String(error)}};
  }
}

const bytesOf = (part) => (typeof part === 'string' ? unpack(part) : part);

/** Pyodide fetches its parts by address; it is answered from memory, and nothing else is. */
async function startPython(parts) {
  globalThis.fetch = async (resource) => {
    const address = String(resource.url ?? resource);
    const name = address.slice(NOWHERE.length);
    if (!address.startsWith(NOWHERE) || !Object.hasOwn(parts, name)) throw new TypeError(`no such part: ${address}`);
    const type = name.endsWith('.wasm') ? 'application/wasm' : 'application/octet-stream';
    return new Response(parts[name], {headers: {'content-type': type}});
  };
  const refusal = whenInstantiationFails();
  const python = loadPyodide({
    indexURL: NOWHERE,
    packageBaseUrl: NOWHERE,
    lockFileContents: {info, packages: {}},
    createPyodideModule,
    stdin: () => null,
    stdout: (text) => console.info(text),
    stderr: (text) => console.warn(text),
  });
  return Promise.race([python, refusal]);
}

/** Pyodide only logs a failed instantiation and then waits for ever: this promise rejects instead. */
function whenInstantiationFails() {
  const instantiate = WebAssembly.instantiateStreaming;
  return new Promise((_, reject) => {
    WebAssembly.instantiateStreaming = (...parameters) => {
      const instance = instantiate.apply(WebAssembly, parameters);
      instance.catch(reject);
      return instance;
    };
  });
}
