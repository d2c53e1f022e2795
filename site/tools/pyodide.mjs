// Runs a Python script inside Pyodide under Node: node pyodide.mjs [--stdlib ZIP] SCRIPT [ARGUMENT...]
// The script sees this machine's files under /host and its arguments in sys.argv.
import {readFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {resolve} from 'node:path';
import {loadPyodide} from 'pyodide';

const [options, [script, ...scriptArguments]] = splitArguments(process.argv.slice(2));
const {info} = createRequire(import.meta.url)('pyodide/pyodide-lock.json');

// The packages of Pyodide's own lock file live on a content delivery network; none is wanted here.
const python = await loadPyodide({
  ...options,
  lockFileContents: {info, packages: {}},
  packageBaseUrl: 'https://packages.invalid/',
});
python.FS.mkdirTree('/host');
python.FS.mount(python.FS.filesystems.NODEFS, {root: '/'}, '/host');
try {
  await python.runPythonAsync(readFileSync(script, 'utf8'), {
    filename: script,
    globals: python.toPy({__name__: '__main__', argv: [script, ...scriptArguments]}),
  });
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}

function splitArguments(all) {
  return all[0] === '--stdlib' ? [{stdLibURL: resolve(all[1])}, all.slice(2)] : [{}, all];
}
