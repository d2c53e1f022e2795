// Compresses files with gzip, FILE to FILE.gz, as small as it gets: node compress.mjs FILE...
// In WebAssembly, so that the same bytes come out on every machine.
import {gzipAsync} from '@gfx/zopfli';
import {readFileSync, writeFileSync} from 'node:fs';

for (const file of process.argv.slice(2)) {
  writeFileSync(`${file}.gz`, await gzipAsync(readFileSync(file), {numiterations: 1}));
}
